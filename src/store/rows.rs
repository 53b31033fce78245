//! The domain rows: what goes into the store and what comes out of it. Nothing here knows a database.

mod ids;
mod lists;
mod records;
mod schedules;
mod standing;
mod steering;
mod verbs;

pub use ids::*;
pub use lists::*;
pub use records::*;
pub use schedules::*;
pub use standing::*;
pub use steering::*;
pub use verbs::*;
