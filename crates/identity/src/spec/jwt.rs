//! Reads `jwt`: keys, pinned algorithms, required claims, and claims that become attributes.

use http::header::AUTHORIZATION;
use tollgate_core::Span;
use tollgate_rules::key::is_attribute;
use tollgate_rules::problem::{Problem, Problems, quote};
use tollgate_rules::read::{FieldPath, FieldValue, MapFields};
use tollgate_rules::yaml::YamlKind;

use super::key::{SOURCES, read_source};
use super::one_of::one_of;
use crate::{CredentialSource, JwtAlgorithm};

/// Signed tokens of one issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSpec {
    /// Where requests carry them.
    pub source: CredentialSource,
    /// The keys that sign them.
    pub keys: JwtKeySpec,
    /// The algorithms that are accepted; a token cannot choose another.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The issuers of which `iss` must be one; any if empty.
    pub issuers: Vec<String>,
    /// The audiences of which `aud` must contain one; if empty, a token must have no `aud`.
    pub audiences: Vec<String>,
    /// How far the clocks of issuer and gateway may differ.
    pub leeway: Span,
    /// Claims that become attributes. `user_id` is among them.
    pub claims: Vec<ClaimSpec>,
}

/// Where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwtKeySpec {
    /// A file with a shared secret, for HS256 to HS512.
    SecretFile(String),
    /// A file with a public key, PEM.
    KeyFile(String),
    /// A file with a JSON Web Key Set.
    JwksFile(String),
    /// A JSON Web Key Set that is fetched.
    JwksUrl {
        /// Its URL.
        url: String,
        /// How often it is fetched.
        refresh: Span,
    },
}

impl JwtKeySpec {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&str> {
        match self {
            JwtKeySpec::SecretFile(file) | JwtKeySpec::KeyFile(file) | JwtKeySpec::JwksFile(file) => Some(file),
            JwtKeySpec::JwksUrl { .. } => None,
        }
    }
}

/// A claim that becomes an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSpec {
    /// The attribute.
    pub attribute: String,
    /// The name of the claim, or a JSON pointer that begins with `/`.
    pub claim: String,
}

const FIELDS: &[&str] = &[
    "secret_file",
    "key_file",
    "jwks_file",
    "jwks_url",
    "refresh",
    "header",
    "query",
    "cookie",
    "algorithms",
    "issuer",
    "audience",
    "leeway",
    "claims",
];
const KEYS: &[&str] = &["secret_file", "key_file", "jwks_file", "jwks_url"];
const EXAMPLE: &str = "jwt: { jwks_file: keys.json, algorithms: [RS256], audience: api }";

/// Most claims that become attributes.
const CLAIMS_MAX: usize = 32;
/// Longest name of a claim.
const CLAIM_BYTES_MAX: usize = 256;
const LEEWAY_MAX: Span = Span::from_secs(300);
const LEEWAY_DEFAULT: Span = Span::from_secs(30);
const REFRESH_MIN: Span = Span::from_secs(60);
const REFRESH_MAX: Span = Span::from_secs(7 * 24 * 3600);
const REFRESH_DEFAULT: Span = Span::from_secs(600);

pub(super) fn read_jwt(value: FieldValue<'_>, problems: &mut Problems) -> Option<JwtSpec> {
    let before = problems.len();
    let fields = value.fields(FIELDS, EXAMPLE, problems);
    let keys = read_keys(&fields, problems);
    let source = match SOURCES.iter().any(|name| fields.get(name).is_some()) {
        true => one_of(&fields, SOURCES, "one of header, query and cookie", problems)
            .and_then(|name| read_source(&fields, name, problems)),
        false => Some(CredentialSource::Header(AUTHORIZATION)),
    };
    let algorithms = read_algorithms(&fields, problems);
    let issuers = texts(fields.get("issuer"), problems);
    let audiences = texts(fields.get("audience"), problems);
    let leeway = fields.get("leeway").and_then(|value| value.duration(0..=LEEWAY_MAX.nanos(), problems));
    let claims = read_claims(fields.get("claims"), problems);
    if let (Some(keys), [first, ..]) = (&keys, algorithms.as_slice()) {
        check_algorithms(&fields, keys, *first, &algorithms, problems);
    }
    let leeway = leeway.map_or(LEEWAY_DEFAULT, Span::from_nanos);
    let (keys, source) = (keys?, source?);
    (problems.len() == before).then_some(JwtSpec { source, keys, algorithms, issuers, audiences, leeway, claims })
}

fn read_keys(fields: &MapFields<'_>, problems: &mut Problems) -> Option<JwtKeySpec> {
    let name = one_of(fields, KEYS, "one of jwks_url, jwks_file, key_file and secret_file", problems)?;
    let value = fields.get(name)?;
    let text = value.text(problems)?.to_owned();
    let refresh = fields.get("refresh");
    if let Some(refresh) = refresh.filter(|_| name != "jwks_url") {
        let message = format!("{} has no effect without `jwks_url`", refresh.path);
        problems.push(refresh.problem("unused-field", message).help("files are watched; remove the field"));
    }
    Some(match name {
        "secret_file" => JwtKeySpec::SecretFile(text),
        "key_file" => JwtKeySpec::KeyFile(text),
        "jwks_file" => JwtKeySpec::JwksFile(text),
        _ => {
            if !is_safe_url(&text) {
                let help = "keys that are fetched without TLS can be replaced on the way: use https";
                problems.push(value.problem("bad-url", format!("{} is {}", value.path, quote(&text))).help(help));
            }
            let range = REFRESH_MIN.nanos()..=REFRESH_MAX.nanos();
            let refresh = refresh.and_then(|value| value.duration(range, problems));
            JwtKeySpec::JwksUrl { url: text, refresh: refresh.map_or(REFRESH_DEFAULT, Span::from_nanos) }
        }
    })
}

/// https, or http to this machine.
fn is_safe_url(url: &str) -> bool {
    let rest = |scheme| url.strip_prefix(scheme).filter(|rest: &&str| !rest.is_empty());
    let local = |rest: &str| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(inner) => inner.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        !authority.contains('@') && ["localhost", "127.0.0.1", "::1"].contains(&host)
    };
    url.bytes().all(|byte| byte.is_ascii_graphic())
        && (rest("https://").is_some() || rest("http://").is_some_and(local))
}

fn read_algorithms(fields: &MapFields<'_>, problems: &mut Problems) -> Vec<JwtAlgorithm> {
    const HELP: &str = "name the algorithms of the issuer, such as `algorithms: [RS256]`";
    let Some(value) = fields.required("algorithms", HELP, problems) else { return Vec::new() };
    let mut algorithms = Vec::new();
    for item in value.one_or_more() {
        let Some(algorithm) = item.choice(JwtAlgorithm::NAMES, problems) else { continue };
        if !algorithms.contains(&algorithm) {
            algorithms.push(algorithm);
        }
    }
    if let YamlKind::List(items) = &value.node.kind
        && items.is_empty()
    {
        problems.push(value.problem("out-of-range", format!("{} is empty", value.path)).help(HELP));
    }
    algorithms
}

/// Shared secrets and public keys in one entry are how a public key becomes a shared secret.
fn check_algorithms(
    fields: &MapFields<'_>,
    keys: &JwtKeySpec,
    first: JwtAlgorithm,
    algorithms: &[JwtAlgorithm],
    problems: &mut Problems,
) {
    let Some(value) = fields.get("algorithms") else { return };
    let mut refuse = |message: String, help: &str| {
        problems.push(value.problem("wrong-algorithm", message).help(help));
    };
    if algorithms.iter().any(|other| other.is_shared_secret() != first.is_shared_secret()) {
        let message = format!("{} mixes shared secrets (HS…) with public keys", value.path);
        return refuse(message, "write two items of `identity`, each with its own keys");
    }
    match keys {
        JwtKeySpec::SecretFile(_) if !first.is_shared_secret() => {
            refuse(format!("{} needs a public key", first.name()), "use key_file, jwks_file or jwks_url");
        }
        JwtKeySpec::KeyFile(_) | JwtKeySpec::JwksUrl { .. } if first.is_shared_secret() => {
            refuse(format!("{} needs a shared secret", first.name()), "use secret_file or jwks_file");
        }
        _ => {}
    }
}

fn texts(value: Option<FieldValue<'_>>, problems: &mut Problems) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    value.one_or_more().iter().filter_map(|item| item.text(problems)).map(str::to_owned).collect()
}

fn read_claims(value: Option<FieldValue<'_>>, problems: &mut Problems) -> Vec<ClaimSpec> {
    let subject = ClaimSpec { attribute: "user_id".to_owned(), claim: "sub".to_owned() };
    let Some(value) = value else { return vec![subject] };
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map of attributes to claims", "write `claims: { user_id: sub, org: org }`"));
        return Vec::new();
    };
    let mut claims = Vec::new();
    for (key, node) in entries.iter().take(CLAIMS_MAX) {
        let item = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if !is_attribute(&key.text) || RESERVED.contains(&key.text.as_str()) {
            let message = format!("{} is not an attribute that a claim can set", quote(&key.text));
            let help = "user_id, org, tier, plan, or a name of your own in lower case";
            problems.push(Problem::error("bad-attribute", key.position(), item.path, message).help(help));
            continue;
        }
        let Some(claim) = item.text(problems) else { continue };
        if claim.len() > CLAIM_BYTES_MAX {
            let message = format!("{} is longer than {CLAIM_BYTES_MAX} bytes", item.path);
            problems.push(item.problem("out-of-range", message).help("name a claim"));
            continue;
        }
        claims.push(ClaimSpec { attribute: key.text.clone(), claim: claim.to_owned() });
    }
    if entries.len() > CLAIMS_MAX {
        let message = format!("{} has {} items", value.path, entries.len());
        problems.push(value.problem("out-of-range", message).help(format!("write at most {CLAIMS_MAX}")));
    }
    if claims.iter().all(|claim| claim.attribute != "user_id") {
        claims.push(subject);
    }
    claims
}

/// Attributes that come with the request or from elsewhere.
const RESERVED: [&str; 9] =
    ["client_key", "api_key", "ip", "endpoint", "method", "path", "namespace", "time_zone", "anchor"];
