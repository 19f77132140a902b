//! JSON read as it passes: constant memory, whatever the size of the text.
//!
//! | file | has |
//! |---|---|
//! | `scan` | a scanner (RFC 8259), strict or tolerant, that is fed any pieces of a text and reports what it meets |
//! | `deep` | what is nested too deeply to be looked into |
//! | `path` | where in the text it is |
//! | `text` | the content of texts: escapes, length |
//! | `utf8` | the check of multi-byte characters, byte by byte |
//! | `number` | amounts from the text of a number |
//! | `pointer` | a place named by a JSON pointer (RFC 6901) |
//!
//! A parser that builds a tree needs the whole text, and a response can be larger than memory; bodies of requests are
//! rewritten byte by byte, for which a tree has lost the positions.

mod deep;
mod number;
mod path;
mod pointer;
mod scan;
mod text;
mod utf8;

pub use pointer::JsonPointer;

pub(crate) use number::amount;
pub(crate) use path::JsonPath;
pub(crate) use scan::{JsonEvent, JsonFault, JsonPart, JsonScanner, JsonSink, scan_all};

#[cfg(test)]
mod tests;
