//! Postgres: the suite, and what is particular to it.

mod away;
mod cluster;
mod harness;
mod migrations;
mod statements;
mod together;

use harness::{fresh, fresh_polling};

mod listening {
    use super::fresh;
    crate::suite!(super::fresh);
}

/// The same without anything that outlives a transaction.
mod polling {
    use super::fresh_polling;
    crate::suite!(super::fresh_polling);
}
