//! Reads `api_key` and `basic`, and where a secret is carried.

use http::HeaderName;
use tollgate_rules::problem::{ParseError, Problems, quote};
use tollgate_rules::read::{FieldValue, MapFields};

use super::one_of::one_of;
use crate::CredentialSource;

/// A key that the directory knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeySpec {
    /// Where requests carry it.
    pub source: CredentialSource,
    /// A file of keys, instead of the directory of the database.
    pub file: Option<String>,
}

/// Users' names and passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicSpec {
    /// The file of users.
    pub file: String,
}

impl Default for ApiKeySpec {
    fn default() -> ApiKeySpec {
        ApiKeySpec { source: CredentialSource::Header(HeaderName::from_static("x-api-key")), file: None }
    }
}

/// Longest name of a query parameter or cookie.
const NAME_BYTES_MAX: usize = 256;

/// Fields that say where a secret is carried.
pub(super) const SOURCES: &[&str] = &["header", "query", "cookie"];

const KEY_FIELDS: &[&str] = &["header", "query", "cookie", "file"];
const BASIC_FIELDS: &[&str] = &["file"];
const KEY_EXAMPLE: &str = "api_key: { header: x-api-key }";

pub(super) fn read_api_key(value: FieldValue<'_>, problems: &mut Problems) -> Option<ApiKeySpec> {
    let fields = value.fields(KEY_FIELDS, KEY_EXAMPLE, problems);
    let file = fields.get("file").and_then(|file| file.text(problems)).map(str::to_owned);
    let name = one_of(&fields, SOURCES, "one of header, query and cookie", problems)?;
    Some(ApiKeySpec { source: read_source(&fields, name, problems)?, file })
}

pub(super) fn read_basic(value: FieldValue<'_>, problems: &mut Problems) -> Option<BasicSpec> {
    let fields = value.fields(BASIC_FIELDS, "basic: { file: users.txt }", problems);
    let file = fields.required("file", "name the file of users: `basic: { file: users.txt }`", problems)?;
    Some(BasicSpec { file: file.text(problems)?.to_owned() })
}

/// The field `name` as the place of a secret.
pub(super) fn read_source(
    fields: &MapFields<'_>,
    name: &'static str,
    problems: &mut Problems,
) -> Option<CredentialSource> {
    let place = fields.get(name)?;
    let text = place.text(problems)?;
    if name == "header" {
        return header_name(text).map_err(|error| problems.push(place.fault("bad-header", error))).ok();
    }
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"=;,\"\\&#%+".contains(&byte);
    if text.len() > NAME_BYTES_MAX || !text.bytes().all(is_name) {
        let help = "use letters, digits, `-` and `_`";
        problems.push(place.problem("bad-name", format!("{} is {}", place.path, quote(text))).help(help));
        return None;
    }
    let text = text.to_owned();
    Some(if name == "query" { CredentialSource::Query(text) } else { CredentialSource::Cookie(text) })
}

/// Fields that belong to the connection, to the framing or to the address of the client.
const RESERVED: [&str; 13] = [
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
];

fn header_name(text: &str) -> Result<CredentialSource, ParseError> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
        let message = format!("{} is not the name of a header field", quote(text));
        ParseError::new(message, "use letters, digits and `-`, such as x-api-key")
    })?;
    match RESERVED.contains(&name.as_str()) {
        true => {
            let help = "use a field of its own, such as x-api-key, or authorization for a bearer token";
            Err(ParseError::new(format!("{} cannot carry a credential", quote(text)), help))
        }
        false => Ok(CredentialSource::Header(name)),
    }
}
