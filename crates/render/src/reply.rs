//! An HTTP response before it is bytes: status, header fields, body. A connection reuses it for every response, so that
//! a warm connection allocates nothing.

use smallvec::SmallVec;

/// A response that any HTTP transport can send.
#[derive(Debug, Default)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Fields beside those that transports write themselves (length, date, connection).
    pub fields: HeaderFields,
    /// The body.
    pub body: Vec<u8>,
    /// The connection closes after this response.
    pub close: bool,
}

impl Reply {
    /// Empties it for the next response; keeps its allocations.
    pub fn clear(&mut self) {
        let Reply { status, fields, body, close } = self;
        (*status, *close) = (200, false);
        fields.clear();
        body.clear();
    }

    /// The same reply without fields and body. `status` and `close` stay as they are.
    pub(crate) fn emptied(&mut self) -> &mut Reply {
        self.fields.clear();
        self.body.clear();
        self
    }
}

/// The values of the fields of most decisions.
const DECISION_BYTES: usize = 256;

/// Header fields: static names, values in one buffer. Callers must add only values of visible ASCII and spaces.
#[derive(Debug, Default)]
pub struct HeaderFields {
    names: SmallVec<[(&'static str, u32); 16]>,
    values: Vec<u8>,
}

impl HeaderFields {
    /// Removes all fields.
    pub fn clear(&mut self) {
        self.names.clear();
        self.values.clear();
    }

    /// Makes room for the values of a decision's fields at once, not field by field.
    pub(crate) fn reserve_values(&mut self) {
        self.values.reserve(DECISION_BYTES);
    }

    /// Adds a field whose value `write` appends to the buffer it is given.
    pub fn push_with(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.values);
        self.names.push((name, self.values.len() as u32)); // values are far shorter than 4 GiB
    }

    /// Adds a field.
    pub fn push(&mut self, name: &'static str, value: &str) {
        self.push_with(name, |values| values.extend_from_slice(value.as_bytes()));
    }

    /// All fields, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let mut start = 0;
        self.names.iter().map(move |(name, end)| {
            let value = self.values.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            (*name, value)
        })
    }

    /// The values of all fields, one behind the other, and where each ends.
    pub fn joined(&self) -> (&[u8], impl Iterator<Item = (&'static str, usize)>) {
        (&self.values, self.names.iter().map(|(name, end)| (*name, *end as usize)))
    }

    /// The value of a field, by its name in any case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
