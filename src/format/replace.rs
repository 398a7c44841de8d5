//! Replaces a file in one step when all of it is on disk.
//!
//! On Linux the new file has no name until it is complete, so a process that is killed leaves nothing behind, with one
//! exception: a file cannot get a name that another file has in one step. A file that a kill leaves there is removed by
//! the next call that saves to the same file. On file systems without nameless files the new file has a temporary name.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

/// Number of links to follow before they count as a circle, as in Linux.
const MAX_LINKS: usize = 40;

/// What a file is replaced for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// Saves a filter.
    Save,
    /// Converts a saved file into one that processes share. The caller has the lock of the file, and opens the file
    /// again, because another process may replace it at the same time.
    Share,
}

/// Replaces the file at `path`, or the file that a link there leads to, by the bytes that `write` writes. Only the
/// owner can read a new file with a secret in it.
pub fn file(path: &Path, secret: bool, purpose: Purpose, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let path = &followed(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let old = match path.symlink_metadata() {
        Ok(old) if old.is_file() => Some(old),
        // If the path is a folder, the system reports the error.
        Ok(old) if old.is_dir() => None,
        Ok(_) => return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file")),
        // There is no such file, or the system will report what is wrong.
        Err(_) => None,
    };
    if old.is_some() && is_mounted(path) {
        let message = "the file is mounted alone, so it cannot be replaced: mount the folder that it is in";
        return Err(Error::new(ErrorKind::ResourceBusy, message));
    }
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
        None => link(&file, folder, path, purpose, old.is_some())?,
    }
    // The rename itself is on disk only with its folder. Where folders cannot be synced, this is as safe as it gets.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Returns whether another file is mounted at a path, as a container does with a file. It cannot be replaced.
#[cfg(target_os = "linux")]
fn is_mounted(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

    let status = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    status.is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mounted(_: &Path) -> bool {
    false
}

/// Returns the path that links lead to.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // The path is no link, or nothing is there.
            Err(_) => return Ok(path),
        }
    }
    Err(Error::other("too many links"))
}

/// Creates a file under a new name in a folder; it is removed when the returned path is dropped.
fn named<T>(folder: &Path, mut make: impl FnMut(&Path) -> Result<T>) -> Result<(T, TempPath)> {
    // tempfile wraps errors and hides their number, by which callers distinguish a full disk from a missing folder.
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
        // Only root may give files away; if the owner cannot be kept, the group may.
        let _ = fchown(file, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(file, None, Some(old.gid())));
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep(_: &File, _: &Metadata) -> Result<()> {
    Ok(())
}

/// Removes the right to read a file from all users without the right to write to it.
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

/// Restricts the right to read a file to its owner.
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

/// Creates a file without a name in a folder; `None` if the system has no such files.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;

    // The mode is that of `File::create`, less the umask. Read and write, since the file is opened again by its number.
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

/// Gives a nameless file its name. If the name is taken, the file first gets another name, because a link replaces
/// nothing. That name is always the same, so a file that a kill has left there is found.
///
/// A saved file that is found is complete and was to be the next file, so the process that finds it finishes that step
/// first. If two processes save a file at once, either may finish for the other. A converted file that is found is
/// removed. It must not get its name and then be replaced, because a process may open it in between.
#[cfg(target_os = "linux")]
fn link(file: &File, folder: &Path, path: &Path, purpose: Purpose, replaces: bool) -> Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, CWD, linkat};
    use xxhash_rust::xxh3::xxh3_64;

    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| linkat(CWD, &*from, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(Error::from);
    let own = path.file_name().map_or(0, |name| xxh3_64(name.as_bytes()));
    let [name, converted] = ["", ".shared"].map(|of| folder.join(format!(".lately-{own:016x}{of}.tmp")));
    let _ = std::fs::remove_file(&converted);
    if purpose == Purpose::Share {
        return match link(&converted).and_then(|()| std::fs::rename(&converted, path)) {
            // Another process replaces the file. The caller opens it again.
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(()),
            done => done.inspect_err(|_| drop(std::fs::remove_file(&converted))),
        };
    }
    if !replaces {
        // The file that this one was to replace is gone.
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
            // Another process has finished this step.
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
fn link(_: &File, _: &Path, _: &Path, _: Purpose, _: bool) -> Result<()> {
    unreachable!("files have names here")
}
