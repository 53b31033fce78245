//! A provider's credential at the moment of a send. One from a file is read again when the file's time or length
//! changed. It is never printed, and nothing here says more about it than that it is there.

use crate::config;
use crate::failure::{Ending, Fault, is_out_of_resources};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The longest key file that is read, in bytes.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// Why there is no key to send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyGap {
    #[error("the provider's key is missing: set the variable {0}")]
    Missing(String),
    #[error("the provider's key file {0} cannot be read")]
    Unreadable(PathBuf),
    #[error("the provider's key file {0} holds no key: put one line into it")]
    Empty(PathBuf),
    #[error("the provider's key file {0} cannot be opened: this machine is out of files or memory")]
    Exhausted(PathBuf),
    #[error("the provider's key contains characters that no header can carry")]
    Unsendable,
}

impl KeyGap {
    /// What it means to a call.
    pub(super) fn ending(&self) -> Ending {
        match self {
            Self::Exhausted(_) => Ending::Fault(Fault::exhausted()),
            Self::Missing(_) | Self::Unreadable(_) | Self::Empty(_) | Self::Unsendable => {
                super::terminal("the provider has no key that can be sent")
            }
        }
    }
}

/// What is wrong with an entry's key as it stands; `None`: it can be sent, or none is needed.
#[must_use]
pub fn key_gap(key: &config::Key) -> Option<KeyGap> {
    KeySource::new(key.clone()).current().err()
}

/// Where an entry's key comes from, and the last one read from a file.
pub(super) struct KeySource {
    key: config::Key,
    read: Mutex<Option<ReadKey>>,
}

struct ReadKey {
    changed: Option<SystemTime>,
    length: u64,
    key: String,
}

impl KeySource {
    pub fn new(key: config::Key) -> Self {
        Self { key, read: Mutex::new(None) }
    }

    /// The key to send now; `None`: the provider takes none.
    pub fn current(&self) -> Result<Option<String>, KeyGap> {
        let key = match &self.key {
            config::Key::None => return Ok(None),
            config::Key::Value(key) => key.clone(),
            config::Key::Missing(variable) => return Err(KeyGap::Missing(variable.clone())),
            config::Key::File(path) => self.read_file(path)?,
        };
        if key.is_empty() || !key.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
            return Err(KeyGap::Unsendable);
        }
        Ok(Some(key))
    }

    /// Two short reads of a small local file; not worth leaving the thread for.
    fn read_file(&self, path: &Path) -> Result<String, KeyGap> {
        let unreadable = || KeyGap::Unreadable(path.to_owned());
        let meta = std::fs::metadata(path).map_err(|_| unreadable())?;
        let (changed, length) = (meta.modified().ok(), meta.len());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*read
            && known.changed == changed
            && known.length == length
        {
            return Ok(known.key.clone());
        }
        if length > MAX_KEY_FILE {
            return Err(unreadable());
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            if is_out_of_resources(&error) { KeyGap::Exhausted(path.to_owned()) } else { unreadable() }
        })?;
        let key = text.trim().to_owned();
        if key.is_empty() {
            return Err(KeyGap::Empty(path.to_owned()));
        }
        *read = Some(ReadKey { changed, length, key: key.clone() });
        Ok(key)
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_key_file_is_read_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let source = KeySource::new(config::Key::File(file.path().to_owned()));
        assert_eq!(source.current(), Err(KeyGap::Empty(file.path().to_owned())));
        std::fs::write(file.path(), "first\n").unwrap();
        assert_eq!(source.current(), Ok(Some("first".into())));
        std::fs::write(file.path(), "second-one\n").unwrap();
        assert_eq!(source.current(), Ok(Some("second-one".into())));
        file.close().unwrap();
        assert!(matches!(source.current(), Err(KeyGap::Unreadable(_))));
    }

    #[test]
    fn a_gap_is_named_and_a_key_is_not_printed() {
        let missing = KeySource::new(config::Key::Missing("A_KEY".into()));
        assert_eq!(missing.current(), Err(KeyGap::Missing("A_KEY".into())));
        assert_eq!(KeySource::new(config::Key::None).current(), Ok(None));
        let broken = KeySource::new(config::Key::Value("two\nlines".into()));
        assert_eq!(broken.current(), Err(KeyGap::Unsendable));
        let source = KeySource::new(config::Key::Value("canary".into()));
        assert!(!format!("{source:?}").contains("canary"));
    }
}
