//! Long lists in pieces.

/// Which piece of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most entries; 1 to 1000.
    pub limit: u32,
    /// Where the last piece ended: its `next`, opaque to everybody else.
    pub after: Option<String>,
}

impl Default for Page {
    fn default() -> Page {
        Page { limit: 100, after: None }
    }
}

/// A piece of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Where the next piece begins; `None` at the end.
    pub next: Option<String>,
}
