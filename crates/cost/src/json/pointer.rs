//! A place in a JSON text: a JSON pointer (RFC 6901), as operators write it.

use std::fmt;
use std::str::FromStr;

use tollgate_rules::problem::{ParseError, quote};

use super::path::JsonPath;

/// Most steps of a pointer.
const STEPS_MAX: usize = 16;
/// Longest pointer.
const BYTES_MAX: usize = 256;

/// A JSON pointer; the empty one is the whole text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPointer {
    steps: Vec<String>,
}

impl JsonPointer {
    /// Whether it names the value at `path`.
    pub(crate) fn is_at(&self, path: &JsonPath) -> bool {
        path.depth() == self.steps.len() && self.is_around(path)
    }

    /// Whether it names the container of the value at `path`.
    pub(crate) fn is_parent_of(&self, path: &JsonPath) -> bool {
        path.depth() == self.steps.len() + 1 && self.is_around(path)
    }

    fn is_around(&self, path: &JsonPath) -> bool {
        self.steps.iter().enumerate().all(|(depth, step)| match path.index(depth) {
            Some(index) => step.parse() == Ok(index) && (step == "0" || !step.starts_with(['0', '+'])),
            None => path.key(depth) == Some(step),
        })
    }
}

impl FromStr for JsonPointer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<JsonPointer, ParseError> {
        let help = "a JSON pointer starts with `/`, such as /usage/total_tokens; `~1` is a `/` within a name";
        let refuse = |why: &str| ParseError::new(format!("{} {why}", quote(text)), help);
        if text.len() > BYTES_MAX {
            return Err(refuse("is longer than 256 bytes"));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(refuse("does not start with `/`"));
        };
        let steps: Vec<String> = rest
            .split('/')
            .map(unescaped)
            .collect::<Option<_>>()
            .ok_or_else(|| refuse("has a `~` that is not `~0` or `~1`"))?;
        match steps.len() > STEPS_MAX {
            true => Err(refuse("has more than 16 steps")),
            false => Ok(JsonPointer { steps }),
        }
    }
}

fn unescaped(step: &str) -> Option<String> {
    let is_valid = step.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    is_valid.then(|| step.replace("~1", "/").replace("~0", "~"))
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_pointers() {
        for text in ["/usage/total_tokens", "/", "/a~1b/~0/0", "/items/3"] {
            assert_eq!(text.parse::<JsonPointer>().unwrap().to_string(), text);
        }
        for text in ["", "usage", "#/usage", "/a~2", "/a~", &"/a".repeat(17), &format!("/{}", "a".repeat(256))] {
            assert!(text.parse::<JsonPointer>().is_err(), "{text}");
        }
    }
}
