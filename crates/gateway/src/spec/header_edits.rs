//! Header fields that a route sets or removes.

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate_rules::problem::{ParseError, Problems, quote};
use tollgate_rules::read::FieldValue;
use tollgate_rules::yaml::YamlKind;

/// Changes of header fields: removed first, then set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Fields that are removed.
    pub remove: Vec<HeaderName>,
    /// Fields that replace those of the same name.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

/// Fields that belong to the connection or to the framing: the gateway writes them itself.
const OWN: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const FIELDS: &[&str] = &["set", "remove"];

impl HeaderEdits {
    /// Applies the changes.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name.clone(), value.clone());
        }
    }

    /// The names of all fields that are removed or set.
    pub(crate) fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.remove.iter().chain(self.set.iter().map(|(name, _)| name))
    }

    pub(super) fn read(value: FieldValue<'_>, problems: &mut Problems) -> HeaderEdits {
        let fields = value.fields(FIELDS, "{ set: { x-team: orders }, remove: [x-debug] }", problems);
        let mut edits = HeaderEdits::default();
        if let Some(set) = fields.get("set") {
            match &set.node.kind {
                YamlKind::Map(entries) => {
                    for (key, node) in entries {
                        let path = tollgate_rules::read::FieldPath::Field(&set.path, &key.text);
                        let value = FieldValue { node, path };
                        let Some(text) = value.text(problems) else { continue };
                        match (field_name(&key.text), HeaderValue::from_str(text)) {
                            (Ok(name), Ok(value)) => edits.set.push((name, value)),
                            (Err(error), _) => problems.push(value.fault("bad-header", error)),
                            (_, Err(_)) => problems.push(value.fault(
                                "bad-header",
                                ParseError::new(
                                    format!("{} cannot be the value of a header field", quote(text)),
                                    "use visible characters and spaces",
                                ),
                            )),
                        }
                    }
                }
                _ => problems.push(set.mismatch("a map of header fields", "write `{ x-team: orders }`")),
            }
        }
        if let Some(remove) = fields.get("remove") {
            for item in remove.one_or_more() {
                let Some(text) = item.text(problems) else { continue };
                match field_name(text) {
                    Ok(name) => edits.remove.push(name),
                    Err(error) => problems.push(item.fault("bad-header", error)),
                }
            }
        }
        edits
    }
}

/// The name of a field that a route may change.
pub(super) fn field_name(text: &str) -> Result<HeaderName, ParseError> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
        ParseError::new(
            format!("{} is not the name of a header field", quote(text)),
            "use letters, digits and `-`, such as x-api-key",
        )
    })?;
    match OWN.contains(&name.as_str()) {
        true => Err(ParseError::new(
            format!("{} belongs to the connection", quote(text)),
            "the gateway writes it itself; leave it out",
        )),
        false => Ok(name),
    }
}
