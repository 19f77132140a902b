//! Where in a JSON text the scanner is.

/// The steps from the root to a value.
#[derive(Debug, Default)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
    /// The keys of all steps, one after the other.
    names: String,
}

/// One container on the way to a value, and where in it the value is.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Where its key starts in `names`.
    start: usize,
    /// Item of a list; `None` in an object.
    index: Option<u64>,
    /// Whether the key is too long to be compared.
    too_long: bool,
}

impl JsonPath {
    /// The number of containers around the value.
    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }

    /// The key at a depth, from 0; `None` for an item of a list, or a key that is too long to be one we look for.
    pub(crate) fn key(&self, depth: usize) -> Option<&str> {
        let step = self.steps.get(depth)?;
        let end = self.steps.get(depth + 1).map_or(self.names.len(), |next| next.start);
        (step.index.is_none() && !step.too_long).then(|| self.names.get(step.start..end))?
    }

    /// The index at a depth; `None` for a field of an object.
    pub(crate) fn index(&self, depth: usize) -> Option<u64> {
        self.steps.get(depth)?.index
    }

    /// The key of the innermost field.
    pub(crate) fn last_key(&self) -> Option<&str> {
        (0..self.depth()).rev().find(|depth| self.index(*depth).is_none()).and_then(|depth| self.key(depth))
    }

    /// Whether these keys lead here, and nothing else.
    pub(crate) fn is(&self, keys: &[&str]) -> bool {
        self.depth() == keys.len() && self.starts_with(0, keys)
    }

    /// Whether these keys, from a depth on, lead here or to a container around.
    pub(crate) fn starts_with(&self, from: usize, keys: &[&str]) -> bool {
        keys.iter().enumerate().all(|(depth, key)| self.key(from + depth) == Some(key))
    }

    pub(super) fn enter_object(&mut self) {
        self.steps.push(Step { start: self.names.len(), index: None, too_long: false });
    }

    pub(super) fn enter_list(&mut self) {
        self.steps.push(Step { start: self.names.len(), index: Some(0), too_long: false });
    }

    pub(super) fn leave(&mut self) {
        if let Some(step) = self.steps.pop() {
            self.names.truncate(step.start);
        }
    }

    pub(super) fn is_in_list(&self) -> bool {
        self.steps.last().is_some_and(|step| step.index.is_some())
    }

    pub(super) fn set_key(&mut self, key: Option<&str>) {
        if let Some(step) = self.steps.last_mut() {
            self.names.truncate(step.start);
            step.too_long = key.is_none();
            self.names.push_str(key.unwrap_or_default());
        }
    }

    pub(super) fn next_item(&mut self) {
        if let Some(index) = self.steps.last_mut().and_then(|step| step.index.as_mut()) {
            *index = index.saturating_add(1);
        }
    }
}
