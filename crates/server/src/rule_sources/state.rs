//! The state of a rule source, for readiness and metrics.

use tollgate_core::Time;

/// The state of one rule source. Counts only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSourceState {
    /// The generation of the last valid content; `None` before the first one: the server is not ready then.
    pub generation: Option<u64>,
    /// How many rules it has.
    pub rules: usize,
    /// When it was loaded.
    pub loaded_at: Option<Time>,
    /// The error of the present content; `None` if it is loaded.
    pub error: Option<String>,
    /// How often the source was checked.
    pub looks: u64,
    /// How often its content was read, changed or not.
    pub attempts: u64,
    /// How often new rules became active, the first time included.
    pub reloads: u64,
    /// How often loading failed.
    pub failures: u64,
    /// How often they were held back because more than half of the rules, or all of a tier, were missing; these are
    /// failures too.
    pub held_back: u64,
    /// How often reading panicked; these are failures too.
    pub panics: u64,
}
