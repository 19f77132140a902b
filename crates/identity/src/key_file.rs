//! Keys from a file, for gateways without a database.
//!
//! ```yaml
//! keys:
//!   - { id: mobile, sha256: 2c70e12b…, client_key: "user:42", tier: free }
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tollgate_core::Time;
use tollgate_rules::key::is_attribute;
use tollgate_rules::problem::{Problem, Problems};
use tollgate_rules::read::{FieldPath, FieldValue, decode};
use tollgate_rules::yaml::{self, YamlKind};
use tollgate_rules::{Report, datetime};

use crate::{DirectoryKey, IdentityError, KeyDigest, KeyDirectory, ProofKind, ProvenIdentity};

/// Longest file.
const FILE_BYTES_MAX: usize = 16 << 20;
/// Most keys.
const KEYS_MAX: usize = 100_000;

/// The keys of one file.
#[derive(Debug, Default)]
pub struct KeyFile {
    keys: HashMap<KeyDigest, DirectoryKey>,
}

const FIELDS: &[&str] = &["keys"];
const KEY_FIELDS: &[&str] =
    &["id", "sha256", "client_key", "namespace", "user_id", "org", "tier", "plan", "expires", "attributes"];
const EXAMPLE: &str = "- { id: mobile, sha256: …, client_key: \"user:42\" }";

impl KeyFile {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<KeyFile, IdentityError> {
        let name = path.display().to_string();
        let bytes = read_small(path, FILE_BYTES_MAX)?;
        let text = decode(&name, &bytes);
        text.and_then(|text| KeyFile::read(&name, text)).map_err(|report| IdentityError::new(report.to_string()))
    }

    /// Reads the text of a file.
    pub fn read(file_name: &str, text: &str) -> Result<KeyFile, Report> {
        let mut problems = Problems::default();
        let mut file = KeyFile::default();
        match yaml::parse(text) {
            Ok(root) => file.fill(FieldValue { node: &root, path: FieldPath::Root("file") }, &mut problems),
            Err(found) => problems.extend(found),
        }
        match problems.is_empty() {
            true => Ok(file),
            false => Err(Report::new(file_name, text, problems)),
        }
    }

    fn fill(&mut self, root: FieldValue<'_>, problems: &mut Problems) {
        let fields = root.fields(FIELDS, "keys: [ ... ]", problems);
        let Some(value) = fields.required("keys", "write `keys:` and one key per item", problems) else { return };
        let items: Vec<FieldValue<'_>> = value.items("keys", problems).collect();
        if items.len() > KEYS_MAX {
            let message = format!("the file has {} keys", items.len());
            return problems.push(value.problem("out-of-range", message).help(format!("write at most {KEYS_MAX}")));
        }
        for item in items {
            let Some(key) = read_key(item, problems) else { continue };
            if self.keys.insert(key.digest, key).is_some() {
                let message = format!("{} has the digest of an earlier key", item.path);
                problems.push(item.problem("duplicate", message).help("give each client a key of its own"));
            }
        }
    }
}

impl KeyDirectory for KeyFile {
    fn find(&self, digest: &KeyDigest) -> Option<DirectoryKey> {
        self.keys.get(digest).cloned()
    }
}

fn read_key(value: FieldValue<'_>, problems: &mut Problems) -> Option<DirectoryKey> {
    let before = problems.len();
    let fields = value.fields(KEY_FIELDS, EXAMPLE, problems);
    let id = fields.required("id", "name the key: its id is the attribute `api_key`", problems);
    let sha256 = fields.required("sha256", "the digest of the key: printf %s \"$KEY\" | sha256sum", problems);
    let client = fields.required("client_key", "say whose key it is, such as `client_key: \"user:42\"`", problems);
    let mut text = |value: Option<FieldValue<'_>>| value.and_then(|value| value.text(problems)).map(str::to_owned);
    let mut identity = ProvenIdentity::new(ProofKind::ApiKey, text(client).unwrap_or_default());
    identity.api_key = text(id);
    identity.user_id = text(fields.get("user_id"));
    identity.org = text(fields.get("org"));
    identity.tier = text(fields.get("tier"));
    let namespace = text(fields.get("namespace")).map(Arc::from);
    identity.custom.extend(text(fields.get("plan")).map(|plan| ("plan".to_owned(), plan)));
    if let Some(attributes) = fields.get("attributes") {
        identity.custom.extend(read_attributes(&attributes, problems));
    }
    let expires_at = fields.get("expires").and_then(|value| read_time(&value, problems));
    let digest = sha256.and_then(|value| {
        let digest = KeyDigest::from_hex(value.text(problems)?);
        if digest.is_none() {
            // The text may be the key itself: it is not repeated.
            let message = format!("{} is not a SHA-256 digest", value.path);
            let help = "write 64 hexadecimal digits: printf %s \"$KEY\" | sha256sum";
            problems.push(value.problem("bad-digest", message).help(help));
        }
        digest
    });
    let key = DirectoryKey { namespace, digest: digest?, expires_at, is_revoked: false, identity: Arc::new(identity) };
    (problems.len() == before).then_some(key)
}

fn read_time(value: &FieldValue<'_>, problems: &mut Problems) -> Option<Time> {
    let text = value.text(problems)?;
    let nanos = datetime::parse(text).map_err(|fault| problems.push(value.fault("bad-time", fault))).ok()?;
    Some(Time::from_nanos(nanos))
}

fn read_attributes(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map", "write `attributes: { region: eu }`"));
        return Vec::new();
    };
    let mut attributes = Vec::new();
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        let own = ["user_id", "org", "tier", "plan", "api_key", "ip", "client_key", "endpoint", "namespace"];
        if !is_attribute(&key.text) || own.contains(&key.text.as_str()) {
            let message = format!("{} is not the name of a custom attribute", entry.path);
            let help =
                "lower-case letters, digits, `_`, `-` and `.`; user_id, org, tier and plan are fields of the key";
            problems.push(Problem::error("bad-attribute", key.position(), entry.path, message).help(help));
        } else if let Some(text) = entry.text(problems) {
            attributes.push((key.text.clone(), text.to_owned()));
        }
    }
    attributes
}

/// Reads a file that has at most `bytes_max` bytes.
pub(crate) fn read_small(path: &Path, bytes_max: usize) -> Result<Vec<u8>, IdentityError> {
    let unreadable = |error| IdentityError::new(format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    File::open(path).map_err(unreadable)?.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() > bytes_max {
        true => Err(IdentityError::new(format!("{} is longer than {bytes_max} bytes", path.display()))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_key_is_found_by_its_digest() {
        let text = format!(
            "keys:\n  - {{ id: mobile, sha256: {ABC}, client_key: \"user:42\", tier: free, plan: basic, expires: \
             2027-01-01T00:00:00Z, attributes: {{ region: eu }} }}\n"
        );
        let file = KeyFile::read("keys.yaml", &text).unwrap_or_else(|report| panic!("{report}"));
        let key = file.find(&KeyDigest::of("abc")).unwrap();
        assert_eq!((key.identity.client_key.as_str(), key.identity.api_key.as_deref()), ("user:42", Some("mobile")));
        assert_eq!(key.expires_at, Some(Time::from_secs(1_798_761_600)));
        let custom = [("plan", "basic"), ("region", "eu")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(key.identity.custom, custom);
        assert!(file.find(&KeyDigest::of("abd")).is_none());
    }

    #[test]
    fn every_mistake_has_its_place_and_no_secret_is_repeated() {
        let text = format!(
            "keys:\n  - {{ id: a, sha256: {ABC}, client_key: a }}\n  - {{ id: b, sha256: {ABC}, client_key: b }}\n  - {{ \
             id: c, sha256: topsecret, client_key: c }}\n  - {{ id: d, client_key: d, teir: x }}\n"
        );
        let report = KeyFile::read("keys.yaml", &text).unwrap_err();
        let codes: Vec<_> = report.problems.iter().map(|problem| (problem.code, problem.line)).collect();
        let expected = [("duplicate", 3), ("bad-digest", 4), ("missing-field", 5), ("unknown-field", 5)];
        assert_eq!(codes, expected);
        assert!(report.problems.iter().all(|problem| !problem.message.contains("topsecret")));
    }
}
