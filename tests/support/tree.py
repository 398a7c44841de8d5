"""Files of the repository."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Where there is no git, as in an unpacked source archive: folders whose files are not the repository's.
_MADE = {".git", ".venv", "target", "dist", "node_modules", "__pycache__", ".hypothesis"}


def tracked(*suffixes: str, root: Path = ROOT) -> list[Path]:
    """Return the files that git tracks and that exist, of the suffixes given or of any."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
        files = [root / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = [path for path in root.rglob("*") if not _MADE & {*path.relative_to(root).parts}]
    return [path for path in files if path.is_file() and (not suffixes or path.suffix in suffixes)]
