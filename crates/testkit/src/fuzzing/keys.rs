//! Keys: two requests share a bucket exactly when namespace, rule and all canonical key parts are equal.
//!
//! The parts are computed here again, from the text of the requests and a table of the rules, into values that are
//! compared and never hashed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tollgate_core::{Attribute, Digest, Request, Time};
use tollgate_ruleset::{Charges, CompileOptions, RuleSet};

use super::{addresses, spelling};

/// The rules under test, in two namespaces that differ in every spelling option.
const FILES: [&str; 2] = [include_str!("keys/default.yaml"), include_str!("keys/shop.yaml")];

static SET: LazyLock<RuleSet> = LazyLock::new(|| {
    let file = |text| tollgate_rules::read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&FILES.map(file), &CompileOptions::reproducible())
        .unwrap_or_else(|problems| panic!("{problems:?}"))
});

/// A rule as this model sees it: name, key parts with their alternatives, and whether missing parts share a bucket.
struct Sketch {
    name: &'static str,
    key: &'static [&'static [&'static str]],
    shares: bool,
    /// Patterns of paths in canonical form, each with whether it names methods.
    endpoints: &'static [(&'static [&'static str], &'static str)],
}

/// The rules of both files, which differ in spelling options only.
const RULES: [Sketch; 9] = [
    Sketch { name: "api-key", key: &[&["api_key"]], shares: false, endpoints: &[] },
    Sketch { name: "anonymous", key: &[&["api_key", "ip"]], shares: false, endpoints: &[] },
    Sketch { name: "address", key: &[&["ip"]], shares: true, endpoints: &[] },
    Sketch { name: "pair", key: &[&["a"], &["b"]], shares: true, endpoints: &[] },
    Sketch { name: "who-where", key: &[&["user_id", "org", "b"], &["endpoint"], &["a"]], shares: true, endpoints: &[] },
    Sketch { name: "places", key: &[&["method"], &["path"], &["namespace"]], shares: true, endpoints: &[] },
    Sketch {
        name: "templates",
        key: &[&["endpoint"], &["tier"]],
        shares: true,
        endpoints: &[
            (&["GET", "POST"], "/users/{id}/orders"),
            (&[], "/users/{id}/*"),
            (&["GET"], "/Files/*.txt"),
            (&[], "/a/*/{id}/b"),
        ],
    },
    Sketch { name: "shards", key: &[&["org"]], shares: false, endpoints: &[] },
    Sketch { name: "global", key: &[], shares: false, endpoints: &[] },
];

/// Attributes by name.
type Sent = BTreeMap<String, String>;

/// One part of a key: nothing, or the attribute that fills it, whether it was borrowed, and its canonical value.
type Part = Option<(String, bool, String)>;

/// The identity of a bucket: namespace, rule, parts, shard.
type Key = (String, &'static str, Vec<Part>, u64);

/// Two paragraphs of lines `attribute=value`: a request, and the differences of a second one; `-attribute` removes one.
/// `\n` and `\0` in a value stand for these two bytes.
pub fn key_builder(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, second) = text.split_once("\n\n").unwrap_or((&text, ""));
    let first = attributes(Sent::new(), first);
    let second = attributes(first.clone(), second);
    let lot = data.len() as u64;
    let mut all: Vec<(Key, Digest)> = Vec::new();
    for (sent, lot) in [(&first, lot), (&second, lot / 2)] {
        all.extend(buckets(sent, lot));
    }
    for (at, (key, bucket)) in all.iter().enumerate() {
        for (other_key, other_bucket) in &all[..at] {
            assert_eq!(key == other_key, bucket == other_bucket, "{key:?}\n{other_key:?}");
        }
    }
}

fn attributes(mut sent: Sent, paragraph: &str) -> Sent {
    for line in paragraph.lines() {
        if let Some(name) = line.strip_prefix('-') {
            sent.remove(name);
        } else if let Some((name, value)) = line.split_once('=') {
            sent.insert(name.to_owned(), value.replace("\\n", "\n").replace("\\0", "\0"));
        }
    }
    sent
}

/// The buckets of a request, with the expected key of each.
fn buckets(sent: &Sent, lot: u64) -> Vec<(Key, Digest)> {
    let custom: Vec<(&str, &str)> = sent
        .iter()
        .filter(|(name, _)| *name != "@" && Attribute::from_name(name).is_none())
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let namespace = sent.get("@").map_or(Request::DEFAULT_NAMESPACE, String::as_str);
    let mut request = Request::new().in_namespace(namespace).with_custom(&custom);
    for attribute in Attribute::ALL {
        if let Some(value) = sent.get(attribute.name()) {
            request.set(attribute, value);
        }
    }
    let mut charges = Charges::default();
    charges.random = lot;
    let found = SET.charges(&request, Time::from_secs(1_800_000_000), &mut charges);
    let expected = keys(namespace, sent, custom.len(), lot);
    assert_eq!(found.is_ok(), expected.is_some(), "{sent:?}: {found:?}");
    let expected = expected.unwrap_or_default();
    let names = charges.applied.iter().map(|applied| SET.rule(applied.rule).map(|rule| rule.name.as_str()));
    assert!(names.eq(expected.iter().map(|key| Some(key.1))), "{sent:?}: {expected:?}");
    expected.into_iter().zip(charges.charges.iter().map(|charge| charge.bucket)).collect()
}

/// Keys of all rules that apply; `None` for a request that cannot be read.
fn keys(namespace: &str, sent: &Sent, custom: usize, lot: u64) -> Option<Vec<Key>> {
    let (prefix, lax) = match namespace {
        "default" => (64, false),
        "shop" => (48, true),
        _ => return Some(Vec::new()),
    };
    let mentioned = |name: &str| {
        Attribute::from_name(name).is_some() || "method path namespace a b".split(' ').any(|own| own == name)
    };
    let most = |name: &str| if name == "endpoint" { 8192 + 64 } else { 4096 };
    if custom > 64 || sent.iter().any(|(name, value)| mentioned(name) && value.len() > most(name)) {
        return None;
    }
    let known = filled_in(sent, namespace);
    let endpoint = match known.get("endpoint") {
        None => {
            let path = known.get("path").filter(|path| path.starts_with('/'));
            let method = known.get("method").map(String::as_str);
            path.and_then(|path| spelling::endpoint(path, lax)).map(|(_, path)| (method, path))
        }
        Some(text) => Some(spelling::endpoint(text, lax)?),
    };
    let ip = match known.get("ip") {
        None => None,
        Some(text) => Some(addresses::counted(addresses::reference(text)?, prefix)),
    };
    let value = |rule: &Sketch, name: &str| match name {
        "ip" => ip.map(|counted| format!("{counted:?}")),
        "endpoint" => endpoint.as_ref().map(|(method, path)| place(rule, *method, path, lax)),
        "method" if let Some((method, _)) = &endpoint => method.map(str::to_owned),
        "path" if let Some((_, path)) = &endpoint => Some(path.clone()),
        "client_key" => known.get(name).map(|text| client(text, prefix)),
        _ => known.get(name).cloned(),
    };
    let mut keys = Vec::new();
    for rule in RULES {
        let applies = rule.endpoints.is_empty()
            || endpoint.as_ref().is_some_and(|(method, path)| pattern_of(&rule, *method, path, lax).is_some());
        let filled = |names: &&[&str]| {
            let own = names.iter().find_map(|name| {
                let value = value(&rule, name)?;
                let hidden = names.len() > 1 && known.get(*name).is_some_and(String::is_empty);
                (!hidden).then(|| ((*name).to_owned(), false, value))
            });
            let borrows = names.iter().any(|name| ["api_key", "user_id"].contains(name));
            own.or_else(|| Some(("client_key".to_owned(), true, value(&rule, "client_key").filter(|_| borrows)?)))
        };
        let parts: Vec<Part> = rule.key.iter().map(filled).collect();
        if applies && (rule.shares || !parts.contains(&None)) {
            let shard = if rule.name == "shards" { lot % 4 } else { 0 };
            keys.push((namespace.to_owned(), rule.name, parts, shard));
        }
    }
    Some(keys)
}

/// A client key in canonical form: an address in its one spelling, anything else unchanged.
fn client(text: &str, prefix: u8) -> String {
    let address = text.strip_prefix("ip:").and_then(addresses::reference);
    address.map_or_else(|| text.to_owned(), |address| format!("address {:?}", addresses::counted(address, prefix)))
}

/// Attributes of the request, of the client key and of the client directory, in this order of precedence.
fn filled_in(sent: &Sent, namespace: &str) -> Sent {
    let mut known = sent.clone();
    known.insert("namespace".to_owned(), namespace.to_owned());
    let mut raw = None;
    if let Some(client_key) = sent.get("client_key") {
        let (kind, name) = client_key.split_once(':').unwrap_or(("", client_key));
        match [("key", "api_key"), ("user", "user_id"), ("ip", "ip"), ("org", "org")]
            .iter()
            .find(|(own, _)| *own == kind)
        {
            Some((_, attribute)) => drop(known.entry((*attribute).to_owned()).or_insert_with(|| name.to_owned())),
            None => raw = Some(client_key.as_str()),
        }
    }
    let is = |name: &str, value: &str| known.get(name).is_some_and(|own| own == value);
    let address = known.get("ip").and_then(|text| addresses::reference(text));
    let lent = [
        (raw == Some("walk-in"), "org", "none"),
        (is("user_id", "42"), "org", "acme"),
        (address == Some([192, 0, 2, 9].into()), "tier", "lab"),
    ];
    for (applies, name, value) in lent {
        if applies {
            known.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    known
}

fn pattern_of<'a>(
    rule: &'a Sketch,
    method: Option<&str>,
    path: &str,
    folds: bool,
) -> Option<&'a (&'a [&'a str], &'a str)> {
    rule.endpoints.iter().find(|(methods, pattern)| {
        let wanted = methods.is_empty() || method.is_none_or(|method| methods.contains(&method));
        wanted && spelling::path_has_form(pattern, path, folds)
    })
}

/// An endpoint in canonical form: the method if the pattern names some, the path with parameters by their names.
fn place(rule: &Sketch, method: Option<&str>, path: &str, folds: bool) -> String {
    let Some((methods, pattern)) = pattern_of(rule, method, path, folds) else { return format!("any {path}") };
    let method = method.filter(|_| !methods.is_empty()).unwrap_or("any");
    // Parameters before the first star are replaced by their names.
    let mut words: Vec<&str> = path.split('/').collect();
    for (word, form) in words.iter_mut().zip(pattern.split('/').take_while(|form| !form.contains('*'))) {
        *word = if form.starts_with('{') { form } else { word };
    }
    let path = words.join("/");
    format!("{method} {}", if folds { path.to_ascii_lowercase() } else { path })
}
