//! Everything that can be asked of the database. One file per kind of question.

mod audit;
mod clients;
mod edits;
mod mode;
mod overrides;
mod rules;
mod tokens;
mod violations;

pub use audit::{AuditFilter, AuditRecord, GenerationRecord, Verified};
pub use clients::ClientFilter;
pub use mode::{Mode, State};
pub use overrides::OverrideFilter;
pub use rules::RuleFilter;
pub use tokens::TokenDraft;
pub use violations::{By, Offender, Violation, ViolationFilter, ViolationRecord};

use crate::{Place, Result};

/// The database. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Control {}

/// How the tables stand to this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// They are what is needed.
    Current,
    /// Migrations are missing: so many were run, of so many.
    Behind(usize, usize),
    /// A newer version was here.
    Ahead,
}

impl Control {
    /// Connects. Changes no tables; see [`migrate`](Control::migrate).
    pub async fn open(_place: &Place) -> Result<Control> {
        not_yet()
    }

    /// How the tables stand.
    pub async fn schema(&self) -> Result<Schema> {
        not_yet()
    }

    /// Brings the tables to this version; answers how many steps that took. Safe to run from several nodes at once.
    pub async fn migrate(&self) -> Result<usize> {
        not_yet()
    }
}

fn not_yet<T>() -> Result<T> {
    Err(crate::Error::Unexpected("not yet".to_owned()))
}
