//! Numbers of allowed and denied requests.

use tollgate_core::Time;

use tollgate_terminal::{DecisionView, Palette, human_duration};

/// Numbers of allowed and denied requests so far.
#[derive(Default)]
pub(super) struct DecisionCounts {
    pub(super) allowed: u64,
    pub(super) denied: u64,
    first: Option<Time>,
}

impl DecisionCounts {
    pub(super) fn count(&mut self, is_allowed: bool) {
        match is_allowed {
            true => self.allowed += 1,
            false => self.denied += 1,
        }
    }

    /// A decision in one line, with its number and time.
    pub(super) fn line(&mut self, shown: &DecisionView, now: Time, palette: Palette) -> String {
        let since = now.since(*self.first.get_or_insert(now));
        let when = format!("{:>5}  +{:<8}", self.allowed + self.denied, human_duration(since));
        format!("{}  {}", palette.faint(&when), shown.headline(palette))
    }
}
