//! `stream_options` of a request: whether it asks for a report of usage, and the smallest change that makes it ask.

use std::ops::Range;

use super::rewrite::BodyEdit;
use crate::json::{JsonEvent, JsonPath};

/// The value of `stream_options`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum StreamOptions {
    /// It is not there.
    #[default]
    Missing,
    /// `null`, and where it stands.
    Null(Range<usize>),
    /// An object without `include_usage`: where its fields start, and whether it has any.
    Silent { start: usize, is_empty: bool },
    /// It asks.
    Asks,
    /// It says no: where `false` or `null` stands.
    Declines(Range<usize>),
    /// Something that the upstream will refuse.
    Other,
}

impl StreamOptions {
    /// Takes an event at or below `stream_options`.
    pub(super) fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, offset: u64) {
        let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(1);
        let word = |length: usize| end.saturating_sub(length)..end;
        let is_usage = path.is(&["stream_options", "include_usage"]);
        match (event, path.depth()) {
            (JsonEvent::Key { .. }, 2) => {
                if let StreamOptions::Silent { is_empty, .. } = self {
                    *is_empty = false;
                }
            }
            (JsonEvent::End | JsonEvent::Key { .. }, _) => {}
            (JsonEvent::Object, 1) => *self = StreamOptions::Silent { start: end, is_empty: true },
            (JsonEvent::Null, 1) => *self = StreamOptions::Null(word(4)),
            (_, 1) => *self = StreamOptions::Other,
            (JsonEvent::Bool(true), 2) if is_usage => *self = StreamOptions::Asks,
            (JsonEvent::Bool(false), 2) if is_usage => *self = StreamOptions::Declines(word(5)),
            (JsonEvent::Null, 2) if is_usage => *self = StreamOptions::Declines(word(4)),
            (_, 2) if is_usage => *self = StreamOptions::Other,
            _ => {}
        }
    }

    /// Whether the caller asks for a report.
    pub(super) fn asks(&self) -> bool {
        *self == StreamOptions::Asks
    }

    /// The change that makes the request ask; `root` is where its fields start.
    pub(super) fn edit(&self, root: usize) -> Option<BodyEdit> {
        Some(match self {
            StreamOptions::Missing => {
                BodyEdit { range: root..root, text: r#""stream_options":{"include_usage":true},"# }
            }
            StreamOptions::Null(range) => BodyEdit { range: range.clone(), text: r#"{"include_usage":true}"# },
            StreamOptions::Silent { start, is_empty: true } => {
                BodyEdit { range: *start..*start, text: r#""include_usage":true"# }
            }
            StreamOptions::Silent { start, is_empty: false } => {
                BodyEdit { range: *start..*start, text: r#""include_usage":true,"# }
            }
            StreamOptions::Declines(range) => BodyEdit { range: range.clone(), text: "true" },
            StreamOptions::Asks | StreamOptions::Other => return None,
        })
    }
}
