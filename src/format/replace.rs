//! Replaces a file in one step when all of it is on disk.
//!
//! On Linux the new file has no name until it is whole, so a process that is killed leaves nothing behind, but for one
//! step: a name cannot be given and taken from another file at once. What a kill leaves there, the next to replace the
//! same file takes away. On file systems without nameless files it has a temporary name.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

/// Links to follow before they are taken for a circle, as in Linux.
const MOST_LINKS: usize = 40;

/// Replaces the file at `path`, or the one a link there leads to, by what `write` writes. A new file with a secret in
/// it is its owner's alone.
pub fn file(path: &Path, secret: bool, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let path = &followed(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let old = match path.symlink_metadata() {
        Ok(old) if old.is_file() => Some(old),
        // For a folder the system itself reports the error.
        Ok(old) if old.is_dir() => None,
        Ok(_) => return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
        // Nothing is there, or the system will report what is wrong.
        Err(_) => None,
    };
    let (mut file, name) = match nameless(folder)? {
        Some(file) => (file, None),
        None => {
            let (file, name) = named(folder, |name| File::create_new(name))?;
            (file, Some(name))
        }
    };
    match old.as_ref() {
        Some(old) => keep(&file, old)?,
        None if secret => close(&file)?,
        None => {}
    }
    write(&mut file)?;
    file.sync_all()?;
    match name {
        Some(name) => name.persist(path).map_err(|error| error.error)?,
        None => link(&file, folder, path, old.is_some())?,
    }
    // The rename itself is on disk only with its folder. Where folders cannot be synced, this is as safe as it gets.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Where links lead.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // No link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(Error::other("too many links"))
}

/// Whatever `make` makes under a new name in a folder; dropped, it is removed.
fn named<T>(folder: &Path, mut make: impl FnMut(&Path) -> Result<T>) -> Result<(T, TempPath)> {
    // tempfile wraps errors and hides their number, which tells callers a full disk from a missing folder.
    let mut cause = None;
    let make = |name: &Path| make(name).map_err(|error| Error::from(cause.insert(error).kind()));
    let made = Builder::new().prefix(".lately-").suffix(".tmp").make_in(folder, make);
    Ok(made.map_err(|wrapped| cause.unwrap_or(wrapped))?.into_parts())
}

/// Gives a file the mode and the owner of the one it replaces.
#[cfg(unix)]
fn keep(file: &File, old: &Metadata) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};

    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give files away; where the owner may not be kept, the group may.
        let _ = fchown(file, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(file, None, Some(old.gid())));
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep(_: &File, _: &Metadata) -> Result<()> {
    Ok(())
}

/// Takes the right to read a file from all who may not write to it.
#[cfg(unix)]
pub fn for_writers_alone(file: &File) -> Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    let mode = file.metadata()?.permissions().mode();
    let may_write = mode & 0o222;
    file.set_permissions(Permissions::from_mode(mode & !0o444 | mode & may_write << 1))
}

#[cfg(not(unix))]
pub fn for_writers_alone(_: &File) -> Result<()> {
    Ok(())
}

/// Lets only the owner of a file read it.
#[cfg(unix)]
fn close(file: &File) -> Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn close(_: &File) -> Result<()> {
    Ok(())
}

/// A file without a name in a folder, where the system has such files.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;

    // The mode of `File::create`, less the umask. Read and write, since it is opened again by its number.
    match open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)) {
        Ok(file) if Path::new("/proc/self/fd").exists() => Ok(Some(file.into())),
        // These errors come from file systems and kernels without such files.
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Result<Option<File>> {
    Ok(None)
}

/// Gives a nameless file its name. If the name is taken, it has another for a moment, since a link replaces nothing:
/// always the same, so that what a kill has left there is found. It is whole, and was to be the next file, so whoever
/// finds it finishes that step first. Of two that replace a file at once, either may finish for the other.
#[cfg(target_os = "linux")]
fn link(file: &File, folder: &Path, path: &Path, replaces: bool) -> Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, CWD, linkat};
    use xxhash_rust::xxh3::xxh3_64;

    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| linkat(CWD, &*from, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(Error::from);
    let own = path.file_name().map_or(0, |name| xxh3_64(name.as_bytes()));
    let name = folder.join(format!(".lately-{own:016x}.tmp"));
    if !replaces {
        // What was to replace a file that is gone since.
        let _ = std::fs::remove_file(&name);
        match link(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    loop {
        let linked = link(&name);
        let taken = linked.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        if !taken {
            linked?;
        }
        match std::fs::rename(&name, path) {
            // Another has finished it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let _ = std::fs::remove_file(&name);
                return Err(error);
            }
            Ok(()) => {}
        }
        if !taken {
            return Ok(());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path, _: &Path, _: bool) -> Result<()> {
    unreachable!("files have names here")
}
