//! Requests in a Unicode form.

use tollgate_core::{Attribute, Request};
use tollgate_rules::normalize::{Normalize, has_canonical_spelling};

/// Values of one request, rewritten to the Unicode form of its namespace.
pub(crate) struct NormalizedValues {
    known: Vec<(Attribute, String)>,
    custom: Vec<(usize, String)>,
}

impl NormalizedValues {
    /// The values of a request that are not in `form`, rewritten; `None` if all are.
    #[cold]
    pub(crate) fn new(form: Normalize, request: &Request<'_>) -> Option<NormalizedValues> {
        let known = Attribute::ALL.into_iter().filter(|attribute| !has_canonical_spelling(attribute.name()));
        let known = known.filter_map(|attribute| Some((attribute, form.rewritten(request.get(attribute)?)?)));
        let known: Vec<(Attribute, String)> = known.collect();
        let custom = request.custom.iter().enumerate().filter(|(_, (name, _))| !has_canonical_spelling(name));
        let custom = custom.filter_map(|(index, (_, value))| Some((index, form.rewritten(value)?)));
        let custom: Vec<(usize, String)> = custom.collect();
        (!known.is_empty() || !custom.is_empty()).then_some(NormalizedValues { known, custom })
    }

    /// Calls `read` with the request and these values.
    pub(crate) fn with<T>(&self, request: &Request<'_>, read: impl FnOnce(&Request<'_>) -> T) -> T {
        let mut custom: Vec<(&str, &str)> = request.custom.to_vec();
        for (index, value) in &self.custom {
            if let Some((_, entry)) = custom.get_mut(*index) {
                *entry = value;
            }
        }
        let mut rewritten = request.with_custom(&custom);
        for (attribute, value) in &self.known {
            rewritten.set(*attribute, value);
        }
        read(&rewritten)
    }
}
