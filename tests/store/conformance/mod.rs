//! What every store must do. Functions over a [`Harness`]; each database names them all through `conformance!`.

pub mod audit;
mod build;
pub mod by_hand;
pub mod claim;
pub mod complete;
pub mod holds;
pub mod lists;
pub mod messages;
pub mod schedules;
pub mod sequences;
pub mod standing;
pub mod steer;
pub mod submit;
pub mod workers;

pub use build::*;

use reprieve::store::Store;
use std::future::Future;

/// A fresh database on a clock that the test owns.
pub trait Harness: Sized + Send {
    type S: Store;
    fn store(&self) -> &Self::S;
    /// Writes as a newer release would: past this release's checks, in words that it does not know.
    fn write_as_newer(&self, statement: &'static str) -> impl Future<Output = ()> + Send;
    /// What the database's rows contradict each other in: counters against the rows they count, at most one record an
    /// execution, at most one open hold a scope. Empty: nothing.
    fn contradictions(&self) -> impl Future<Output = Vec<String>> + Send;
}

/// Runs the suite on one database. `$open` is an async function that opens a fresh [`Harness`].
#[macro_export]
macro_rules! conformance {
    ($open:path; $($module:ident: $($test:ident),+ $(,)?;)+) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $test() {
                let harness = $open().await;
                $crate::conformance::$module::$test(&harness).await;
                assert_eq!($crate::conformance::Harness::contradictions(&harness).await, Vec::<String>::new());
            })+
        })+
    };
}
