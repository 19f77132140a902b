//! Refuses JSON whose objects have a key twice: of two values, servers differ in which they take.

use std::collections::HashSet;

use crate::error::{CostError, CostErrorKind};
use crate::json::{JsonEvent, JsonPath, JsonSink, scan_all};

/// The keys of the objects around a value.
#[derive(Default)]
struct Keys {
    open: Vec<HashSet<String>>,
    duplicate: bool,
}

impl JsonSink for Keys {
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, _offset: u64) {
        match event {
            JsonEvent::Object | JsonEvent::List => self.open.push(HashSet::new()),
            JsonEvent::End => drop(self.open.pop()),
            JsonEvent::Key { .. } => {
                // Keys that are too long to be compared are none that decide a cost.
                let key = path.depth().checked_sub(1).and_then(|depth| path.key(depth));
                if let (Some(key), Some(keys)) = (key, self.open.last_mut()) {
                    self.duplicate |= !keys.insert(key.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Checks that the text is JSON, and that no object has a key twice.
pub(super) fn refuse_duplicates(text: &[u8]) -> Result<(), CostError> {
    let mut keys = Keys::default();
    scan_all(text, &mut keys).map_err(CostError::of_json)?;
    match keys.duplicate {
        true => Err(CostErrorKind::DuplicateField.error("an object of the request has a field twice")),
        false => Ok(()),
    }
}
