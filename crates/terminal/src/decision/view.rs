//! The displayed part of a decision, and its text.

use tollgate_core::{Span, Wait};

use crate::{Palette, TextTable, human_duration, visible};

/// The displayed part of a decision.
#[derive(Debug, PartialEq, Eq)]
pub struct DecisionView {
    pub(super) allowed: bool,
    /// The deciding rule, if there is one.
    pub(super) rule: Option<String>,
    /// Why no rule decided.
    pub(super) reason: Option<String>,
    /// Remaining units and limit of the deciding rule.
    pub(super) room: Option<(u64, u64)>,
    pub(super) wait: Wait,
    pub(super) delay: Span,
    pub(super) mode: String,
    pub(super) generation: u64,
    pub(super) rows: Vec<RulingRow>,
}

/// The outcome of one rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RulingRow {
    pub(super) decides: bool,
    pub(super) name: String,
    pub(super) verdict: RowVerdict,
    pub(super) limit: Option<u64>,
    pub(super) remaining: Option<u64>,
    pub(super) wait: Wait,
    /// Time until the bucket is like new; responses of a server do not include it.
    pub(super) reset: Option<Span>,
    pub(super) delay: Span,
    pub(super) shadow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowVerdict {
    Allowed,
    Denied,
    Unlimited,
}

impl DecisionView {
    /// True if the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The decision in one line: `denied by per-key: retry after 1s`.
    pub fn headline(&self, palette: Palette) -> String {
        let verdict = if self.allowed { palette.good("allowed") } else { palette.bad("denied") };
        let Some(rule) = &self.rule else {
            return format!("{verdict}: {}", visible(self.reason.as_deref().unwrap_or("no rule decided")));
        };
        let detail = match (self.wait, self.room) {
            (Wait::None, Some((left, limit))) => room_text(left, limit),
            (Wait::None, None) => "no limit".to_owned(),
            (wait, _) => wait_text(wait),
        };
        let delay = match self.delay {
            Span::ZERO => String::new(),
            delay => format!(", after waiting {}", human_duration(delay)),
        };
        format!("{verdict} by {}: {detail}{delay}", palette.strong(rule))
    }

    /// The whole decision: the headline, the outcome of every rule, mode and generation.
    pub fn text(&self, palette: Palette) -> String {
        let mut text = self.headline(palette) + "\n";
        if !self.rows.is_empty() {
            text.push('\n');
            text.push_str(&self.table(palette).to_string());
        }
        let facts = format!("mode {}, rules generation {}", self.mode, self.generation);
        text.push_str(&format!("\n{}\n", palette.faint(&facts)));
        text
    }

    fn table(&self, palette: Palette) -> TextTable {
        let reset = if self.rows.iter().any(|row| row.reset.is_some()) { "RESET AFTER" } else { "" };
        let heading = ["", "RULE", "OUTCOME", "LIMIT", "REMAINING", "RETRY AFTER", reset, ""];
        let mut table = TextTable::new(heading, |text| palette.faint(text));
        self.rows.iter().for_each(|row| table.row(row.cells(!reset.is_empty(), palette)));
        table
    }
}

impl RulingRow {
    fn cells(&self, with_reset: bool, palette: Palette) -> [(String, String); 8] {
        let plain = |text: String| (text.clone(), visible(&text));
        let number = |number: Option<u64>| plain(number.map_or_else(|| "-".to_owned(), |number| number.to_string()));
        let retry = match self.wait {
            Wait::None => "-".to_owned(),
            Wait::For(span) => human_duration(span),
            Wait::Never => "never".to_owned(),
        };
        let verdict = match self.verdict {
            RowVerdict::Denied => ("denied".to_owned(), palette.bad("denied")),
            RowVerdict::Unlimited => ("unlimited".to_owned(), palette.good("unlimited")),
            RowVerdict::Allowed => ("allowed".to_owned(), palette.good("allowed")),
        };
        let reset = match self.reset {
            Some(span) => human_duration(span),
            None if with_reset => "-".to_owned(),
            None => String::new(),
        };
        let mark = if self.decides { ">" } else { " " };
        let note = match self.delay {
            _ if self.shadow => "shadow: does not deny".to_owned(),
            Span::ZERO => String::new(),
            delay => format!("queued for {}", human_duration(delay)),
        };
        [
            (mark.to_owned(), palette.strong(mark)),
            plain(self.name.clone()),
            verdict,
            number(self.limit),
            number(self.remaining),
            plain(retry),
            plain(reset),
            (note.clone(), palette.warn(&note)),
        ]
    }
}

pub(super) fn room_text(left: u64, limit: u64) -> String {
    format!("{left} of {limit} left")
}

pub(super) fn wait_text(wait: Wait) -> String {
    match wait {
        Wait::None => "now".to_owned(),
        Wait::For(span) => format!("retry after {}", human_duration(span)),
        Wait::Never => "can never pass, the cost exceeds the limit".to_owned(),
    }
}
