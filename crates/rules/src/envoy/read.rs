//! Reads a file into an [`EnvoyDomain`], and reports every mistake at once, with its position.
//!
//! As strict as envoyproxy/ratelimit, and as lenient: text without quotes, numbers for text, `yes` for `true`, and
//! blank fields count as absent.

use std::collections::HashMap;

use super::{Allowance, EnvoyDescriptor, EnvoyDomain, Metadata, RateLimit, Unit};
use crate::nearest::suggest;
use crate::pattern::Pattern;
use crate::position::SourcePosition;
use crate::problem::{Problem, Problems, quote};
use crate::read::{FieldPath, FieldValue, MapFields};
use crate::report::Report;
use crate::yaml::{self, YamlKind, is_blank};

/// Deepest nesting of lists and maps: 30 levels of descriptors.
const DEPTH_MAX: usize = 64;

const FILE_FIELDS: &[&str] = &["domain", "descriptors"];
const DESCRIPTOR_FIELDS: &[&str] = &[
    "key",
    "value",
    "rate_limit",
    "shadow_mode",
    "quota_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
    "descriptors",
];
const LIMIT_FIELDS: &[&str] = &["unit", "requests_per_unit", "unlimited", "name", "replaces"];
const REPLACES_FIELDS: &[&str] = &["name"];

const LIMIT_EXAMPLE: &str = "rate_limit: { unit: minute, requests_per_unit: 100 }";

/// Reads the file of one domain.
///
/// ```
/// let text = "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: Minute, requests_per_unit: 100 }\n";
/// let domain = tollgate_rules::envoy::read("edge.yaml", text).unwrap();
/// assert_eq!((domain.name.as_str(), domain.descriptors[0].key.as_str()), ("edge", "user"));
///
/// let report = tollgate_rules::envoy::read("edge.yaml", "domain: edge\ndescriptors: [{ key: '' }]").unwrap_err();
/// assert!(report.to_string().starts_with("error[blank]: descriptors[0].key is empty"));
/// ```
pub fn read(file_name: &str, text: &str) -> Result<EnvoyDomain, Report> {
    let mut problems = Problems::default();
    match yaml::parse_to_depth(text, DEPTH_MAX) {
        Ok(root) => {
            let domain = read_root(FieldValue { node: &root, path: FieldPath::Root("file") }, &mut problems);
            if problems.is_empty() {
                return Ok(domain);
            }
        }
        Err(found) => problems.extend(found),
    }
    Err(Report::new(file_name, text, problems))
}

fn read_root(root: FieldValue<'_>, problems: &mut Problems) -> EnvoyDomain {
    let fields = root.fields(FILE_FIELDS, "domain: edge", problems);
    let named = fields.required("domain", "name the domain that requests carry: `domain: edge`", problems);
    let name = named.and_then(|value| required_text(&value, "a domain", problems)).unwrap_or_default();
    let at = named.map_or_else(|| root.position(), |value| value.position());
    EnvoyDomain { name, at, descriptors: read_level(&fields, problems) }
}

/// One level of the tree.
fn read_level(parent: &MapFields<'_>, problems: &mut Problems) -> Vec<EnvoyDescriptor> {
    let Some(list) = filled(parent, "descriptors") else { return Vec::new() };
    let items: Vec<FieldValue<'_>> = list.items("descriptors", problems).collect();
    let mut level = Vec::with_capacity(items.len());
    let mut seen = HashMap::new();
    for item in items {
        let descriptor = read_descriptor(item, problems);
        if descriptor.key.is_empty() {
            continue; // reported already
        }
        let pair = (descriptor.key.clone(), descriptor.value.clone());
        if let Some(first) = seen.insert(pair, descriptor.at) {
            problems.push(duplicate(&descriptor, item.path, &format!("on line {}", first.line)));
        }
        level.push(descriptor);
    }
    level
}

/// The problem of two siblings with the same key and value; `other` is the position of the first.
pub(super) fn duplicate(second: &EnvoyDescriptor, field: impl ToString, other: &str) -> Problem {
    let value = second.value.as_ref().map(|value| format!(" with the value {}", quote(value)));
    let message = format!("the key {}{} is there twice", quote(&second.key), value.unwrap_or_default());
    Problem::error("duplicate-descriptor", second.at, field, message)
        .help(format!("the first one is {other}; remove one of them, or put what is below both under one"))
}

fn read_descriptor(item: FieldValue<'_>, problems: &mut Problems) -> EnvoyDescriptor {
    let fields = item.fields(DESCRIPTOR_FIELDS, "key: user_id", problems);
    let key = fields.required("key", "every descriptor has a key: `key: user_id`", problems);
    let share = filled(&fields, "share_threshold");
    let descriptor = EnvoyDescriptor {
        at: item.position(),
        file_name: None,
        key: key.and_then(|value| required_text(&value, "a key", problems)).unwrap_or_default(),
        value: optional_text(&fields, "value", problems),
        rate_limit: filled(&fields, "rate_limit").and_then(|value| read_limit(value, problems)),
        shadow_mode: flag(&fields, "shadow_mode", problems),
        quota_mode: flag(&fields, "quota_mode", problems),
        detailed_metric: flag(&fields, "detailed_metric", problems),
        value_to_metric: flag(&fields, "value_to_metric", problems),
        share_threshold: flag(&fields, "share_threshold", problems),
        metadata: filled(&fields, "metadata").map(|value| Metadata::of(value.node)),
        descriptors: read_level(&fields, problems),
    };
    for (name, text) in [("key", Some(&descriptor.key)), ("value", descriptor.value.as_ref())] {
        let pattern = text.filter(|text| text.contains('*')).map(|text| Pattern::parse(text));
        if let (Some(value), Some(Err(fault))) = (fields.get(name), pattern) {
            problems.push(value.fault("bad-pattern", fault));
        }
    }
    if let Some(share) = share.filter(|_| descriptor.share_threshold && !descriptor.is_pattern()) {
        let help = "write a value with `*`, such as `value: \"files/*\"`, or remove `share_threshold`";
        let message = format!("{} needs a pattern: there is only one value to share by", share.path);
        problems.push(share.problem("misplaced-field", message).help(help));
    }
    descriptor
}

fn read_limit(value: FieldValue<'_>, problems: &mut Problems) -> Option<RateLimit> {
    let fields = value.fields(LIMIT_FIELDS, LIMIT_EXAMPLE, problems);
    let unlimited = flag(&fields, "unlimited", problems);
    let requests = filled(&fields, "requests_per_unit");
    let requests = requests.and_then(|value| value.integer(0..=u64::from(u32::MAX), problems)).unwrap_or(0);
    let allowance = match unlimited {
        true => {
            refuse_unit(&fields, problems);
            Some(Allowance::Unlimited)
        }
        false => read_unit(&fields, problems)
            .map(|unit| Allowance::Limited { requests_per_unit: u32::try_from(requests).unwrap_or(u32::MAX), unit }),
    };
    let name = optional_text(&fields, "name", problems);
    let replaces = read_replaces(&fields, name.as_deref(), problems);
    Some(RateLimit { allowance: allowance?, name, replaces })
}

fn read_unit(fields: &MapFields<'_>, problems: &mut Problems) -> Option<Unit> {
    let help = format!("write for example `{LIMIT_EXAMPLE}`, or `unlimited: true`");
    let value = fields.required("unit", &help, problems)?;
    let text = required_text(&value, "a unit", problems)?;
    let unit = Unit::from_name(&text);
    if unit.is_none() {
        let message = format!("{} is {}", value.path, quote(&text));
        let help = suggest(&text.to_ascii_lowercase(), &Unit::ALL.map(Unit::name));
        problems.push(value.problem("unknown-value", message).help(help));
    }
    unit
}

fn refuse_unit(fields: &MapFields<'_>, problems: &mut Problems) {
    if let Some(unit) = filled(fields, "unit") {
        let message = format!("{} together with `unlimited`", unit.path);
        let help = "remove one of them: what is unlimited is not counted";
        problems.push(unit.problem("misplaced-field", message).help(help));
    }
}

fn read_replaces(fields: &MapFields<'_>, own: Option<&str>, problems: &mut Problems) -> Vec<String> {
    let Some(list) = filled(fields, "replaces") else { return Vec::new() };
    let mut names = Vec::new();
    for item in list.items("names", problems).collect::<Vec<_>>() {
        let fields = item.fields(REPLACES_FIELDS, "replaces: [{ name: other }]", problems);
        let help = "name the limit that this one replaces: `replaces: [{ name: other }]`";
        let Some(value) = fields.required("name", help, problems) else { continue };
        let Some(name) = required_text(&value, "a name", problems) else { continue };
        if Some(name.as_str()) == own {
            let message = format!("{} is this limit's own name", value.path);
            problems.push(value.problem("self-reference", message).help("name another limit, or remove it"));
        }
        names.push(name);
    }
    names
}

/// A field that is not blank.
fn filled<'a>(fields: &'a MapFields<'_>, name: &'static str) -> Option<FieldValue<'a>> {
    fields
        .get(name)
        .filter(|value| !matches!(&value.node.kind, YamlKind::Scalar { text, quoted: false } if is_blank(text)))
}

/// The text of a scalar of any type.
fn text<'a>(value: &FieldValue<'a>, wanted: &str, problems: &mut Problems) -> Option<&'a str> {
    match &value.node.kind {
        YamlKind::Scalar { text, quoted } if *quoted || !is_blank(text) => Some(text),
        YamlKind::Scalar { .. } => Some(""),
        _ => {
            let message = format!("{} should be {wanted}, found {}", value.path, value.node.describe());
            problems.push(value.problem("wrong-type", message).help("write plain text"));
            None
        }
    }
}

fn required_text(value: &FieldValue<'_>, wanted: &str, problems: &mut Problems) -> Option<String> {
    let found = text(value, wanted, problems)?;
    if found.is_empty() {
        let message = format!("{} is empty", value.path);
        problems.push(value.problem("blank", message).help(format!("write {wanted}")));
        return None;
    }
    Some(found.to_owned())
}

fn optional_text(fields: &MapFields<'_>, name: &'static str, problems: &mut Problems) -> Option<String> {
    let found = fields.get(name).and_then(|value| text(&value, "text", problems).map(str::to_owned));
    found.filter(|found| !found.is_empty())
}

/// A boolean of YAML 1.1, which envoyproxy/ratelimit reads.
fn flag(fields: &MapFields<'_>, name: &'static str, problems: &mut Problems) -> bool {
    let Some(value) = filled(fields, name) else { return false };
    let word = match &value.node.kind {
        YamlKind::Scalar { text, quoted: false } => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        "true" | "yes" | "on" | "y" => true,
        "false" | "no" | "off" | "n" => false,
        _ => value.boolean(problems).unwrap_or_default(),
    }
}

/// A position in words.
pub(super) fn line(at: SourcePosition) -> String {
    format!("line {}", at.line)
}
