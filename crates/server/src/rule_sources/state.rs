//! What the feed has to say about itself, for readiness and metrics.

use tollgate_core::Time;

/// How the rules of this server stand. Counts only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSourceState {
    /// The generation that the last valid content became; `None` while there was none yet, and then the server is not
    /// ready.
    pub generation: Option<u64>,
    /// How many rules it has.
    pub rules: usize,
    /// When it was loaded.
    pub loaded_at: Option<Time>,
    /// What is wrong with the file as it is now; `None` if it is what is loaded.
    pub error: Option<String>,
    /// How often the file was looked at, whether anything came of it or not.
    pub looks: u64,
    /// How often the file's content was looked at, changed or not.
    pub attempts: u64,
    /// How often new rules came into force, the first time included.
    pub reloads: u64,
    /// How often they did not.
    pub failures: u64,
    /// How often they were held back because more than half of the rules, or all of a tier, would have gone; these are
    /// failures, too.
    pub held_back: u64,
    /// How often reading them panicked; these are failures, too.
    pub panics: u64,
}
