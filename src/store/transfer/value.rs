//! Rows as both databases understand them, and what they add up to.

use super::tables::Table;
use crate::store::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use uuid::Uuid;

/// A column's value; texts as they were given to the store, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    Null,
    Id(Uuid),
    Int(i64),
    Text(String),
}

impl Value {
    fn add_to(&self, digest: &mut Sha256) {
        let (tag, bytes): (u8, &[u8]) = match self {
            Self::Null => (0, &[]),
            Self::Id(id) => (1, id.as_bytes()),
            Self::Int(number) => (2, &number.to_be_bytes()),
            Self::Text(text) => (3, text.as_bytes()),
        };
        digest.update([tag]);
        digest.update(bytes.len().to_be_bytes());
        digest.update(bytes);
    }
}

/// Values in the order of [`Table::columns`].
pub type Row = Vec<Value>;

/// The key of the last row that was taken; rows go on behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub Vec<Value>);

impl Key {
    pub fn of(table: &Table, row: &Row) -> Self {
        Self(table.key_places().into_iter().filter_map(|place| row.get(place).cloned()).collect())
    }

    /// As it is kept.
    pub fn kept(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::Undecodable { what: "a key", why: e.to_string() })
    }

    pub fn read(kept: &str) -> Result<Self> {
        serde_json::from_str(kept).map_err(|e| Error::Undecodable { what: "a key", why: e.to_string() })
    }
}

/// How many rows there are, and the sum of what each of them comes to: the same in whatever order they are read, and
/// another one if any value of any row is another. A sum, not an exclusive or, so that two equal rows do not cancel
/// each other out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    digest: u128,
}

impl Sum {
    pub fn of(rows: &[Row]) -> Self {
        let mut sum = Self::default();
        for row in rows {
            sum.add(row);
        }
        sum
    }

    pub fn add(&mut self, row: &Row) {
        let mut digest = Sha256::new();
        for value in row {
            value.add_to(&mut digest);
        }
        let mut half = [0; 16];
        half.copy_from_slice(&digest.finalize()[..16]);
        self.digest = self.digest.wrapping_add(u128::from_be_bytes(half));
        self.rows += 1;
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, digest: self.digest.wrapping_add(other.digest) }
    }

    /// The number of rows, and the digest as it is kept and shown.
    pub fn read(rows: i64, digest: &str) -> Result<Self> {
        let wrong = |why: String| Error::Undecodable { what: "the progress of a move", why };
        Ok(Self {
            rows: u64::try_from(rows).map_err(|e| wrong(e.to_string()))?,
            digest: u128::from_str_radix(digest, 16).map_err(|e| wrong(e.to_string()))?,
        })
    }

    /// Rows as the database counts them.
    pub fn counted(&self) -> i64 {
        i64::try_from(self.rows).unwrap_or(i64::MAX)
    }
}

/// The digest, in 32 hexadecimal digits.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.digest)
    }
}

/// How many rows of what weight a chunk takes, from the bytes of each candidate in order: at least one.
pub fn rows_within(bytes: usize, sizes: impl IntoIterator<Item = i64>) -> usize {
    let mut rows = 0;
    let mut sum = 0_usize;
    for size in sizes {
        sum = sum.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        if rows > 0 && sum > bytes {
            break;
        }
        rows += 1;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str]) -> Row {
        texts.iter().map(|text| Value::Text((*text).to_owned())).collect()
    }

    #[test]
    fn a_sum_knows_no_order_and_every_difference() {
        let alone = |row: &Row| Sum::of(std::slice::from_ref(row));
        let (one, other) = (row(&["a", "b"]), row(&["ab", ""]));
        assert_eq!(Sum::of(&[one.clone(), other.clone()]), Sum::of(&[other.clone(), one.clone()]));
        assert_ne!(alone(&one).to_string(), alone(&other).to_string());
        assert_ne!(Sum::of(&[one.clone(), one.clone()]).to_string(), Sum::of(&[other.clone(), other]).to_string());
        assert_ne!(Sum::of(&[vec![Value::Null]]), Sum::of(&[vec![Value::Text(String::new())]]));
        let sum = alone(&one).and(alone(&one));
        assert_eq!(Sum::read(2, &sum.to_string()).unwrap(), sum);
    }

    #[test]
    fn a_key_is_kept_whatever_it_holds() {
        let key = Key(vec![Value::Id(Uuid::nil()), Value::Int(-7), Value::Text("\0\u{1a}\"é".into())]);
        let kept = key.kept().unwrap();
        assert!(!kept.contains(['\0', '\u{1a}']), "{kept}");
        assert_eq!(Key::read(&kept).unwrap(), key);
    }

    #[test]
    fn a_chunk_is_light_or_one_row() {
        assert_eq!(rows_within(10, [4, 4, 4, 4]), 2);
        assert_eq!(rows_within(10, [400, 4]), 1);
        assert_eq!(rows_within(10, []), 0);
    }
}
