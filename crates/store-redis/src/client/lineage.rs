//! The identity of a server's data, and what a change of it means.

/// The identity of a server's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// The value of the epoch key, which only data loss removes.
    pub(crate) epoch: String,
    /// The run id of the server process.
    pub(crate) run: String,
    /// The replication id: the history of writes that the server continues.
    pub(crate) history: String,
}

impl Lineage {
    /// What happened if `new` follows; `None` if nothing changed.
    pub(crate) fn change_to(&self, new: &Lineage) -> Option<&'static str> {
        match (self.epoch != new.epoch, self.run != new.run, self.history != new.history) {
            (false, false, false) => None,
            (true, false, _) => Some("the store was emptied: limits start anew"),
            (true, true, _) => Some("the store was restarted or replaced without its data: limits start anew"),
            (false, true, false) => Some("the store was restarted with its data"),
            (false, true, true) => Some("another server has taken over, with the data it had copied"),
            (false, false, true) => Some("the store continues another history of writes: it may lack the last ones"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(epoch: &str, run: &str, history: &str) -> Lineage {
        Lineage { epoch: epoch.into(), run: run.into(), history: history.into() }
    }

    #[test]
    fn every_change_has_its_message() {
        let old = lineage("e", "r", "h");
        let told = |epoch, run, history| old.change_to(&lineage(epoch, run, history));
        assert_eq!(told("e", "r", "h"), None);
        assert!(told("E", "r", "h").unwrap().contains("emptied"));
        assert!(told("E", "R", "H").unwrap().contains("without its data"));
        assert!(told("e", "R", "h").unwrap().contains("restarted with its data"));
        assert!(told("e", "R", "H").unwrap().contains("another server"));
        assert!(told("e", "r", "H").unwrap().contains("another history"));
    }
}
