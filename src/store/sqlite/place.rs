//! Whether the files under the open connections are still those that their names lead to. SQLite goes on writing into a
//! file that was moved or deleted, and whatever is acknowledged then is gone with the process.

use crate::store::{Error, Result};
use std::path::{Path, PathBuf};

/// The database file and its log, as they were when they were opened.
#[derive(Clone, Debug)]
pub(super) struct Place {
    shown: String,
    files: Vec<(PathBuf, Identity)>,
}

/// Device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    // A name that leads nowhere has no identity; why it does not makes no difference.
    let found = std::fs::metadata(path).ok()?;
    Some(Identity(found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}

impl Place {
    /// Call it with a connection open that has read: the log exists by then, and stays as long as the connection.
    pub fn of(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        let known = |path: PathBuf| identity(&path).map(|identity| (path, identity));
        let shown = path.display().to_string();
        Self { shown, files: [path, log.into()].into_iter().filter_map(known).collect() }
    }

    /// A look at two directory entries: microseconds.
    pub fn check(&self) -> Result<()> {
        if self.files.iter().all(|(path, was)| identity(path) == Some(*was)) {
            Ok(())
        } else {
            Err(Error::Gone { path: self.shown.clone() })
        }
    }
}
