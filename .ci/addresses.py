"""Write the address of the repository into what an index shows: the project's URLs and the links of the README.

The workflow `release` runs it before it builds. GITHUB_SERVER_URL, GITHUB_REPOSITORY and GITHUB_REF_NAME are its own.
"""

import os
import re
from pathlib import Path

URLS = """\
[project.urls]
Source = "{home}"
Documentation = "{home}/tree/{ref}/docs"
Changelog = "{home}/blob/{ref}/CHANGELOG.md"
Issues = "{home}/issues"

[project.scripts]
"""


def main(folder: Path) -> None:
    """Change `pyproject.toml` and `README.md` of a folder."""
    home = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    ref = os.environ["GITHUB_REF_NAME"]
    project, readme = folder / "pyproject.toml", folder / "README.md"
    settings = project.read_text(encoding="utf-8")
    project.write_text(settings.replace("[project.scripts]\n", URLS.format(home=home, ref=ref), 1), encoding="utf-8")

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({home}/{kind}/{ref}/{found[3]})"

    link = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")
    readme.write_text(link.sub(absolute, readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path())
