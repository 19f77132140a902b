//! Settings of the store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tollgate_rules::problem::ParseError;
use tollgate_store_redis::{Login, Password, StoreUrl};

use crate::choice::Durability;

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Where buckets live.
    pub place: StorePlace,
    /// Whether usage of quotas in memory survives a restart. Quotas of a shared store survive as the store does.
    pub durable: Durability,
    /// How long one call of a shared store may take.
    pub timeout: Duration,
    /// How long a decision may take, whatever the store does.
    pub decision_deadline: Duration,
    /// Connections to each server.
    pub connections: usize,
    /// Authorities that sign the certificates of the servers, PEM; those of this machine if none.
    pub ca: Option<PathBuf>,
    /// The certificate that servers are shown, PEM.
    pub cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// Whether the name in a certificate may be another than the host's.
    pub skip_hostname: bool,
    /// Whether any certificate is accepted.
    pub insecure_tls: bool,
    /// The password, so that it is neither in the URL nor in a process list.
    pub password_file: Option<PathBuf>,
    /// Whether a server that may evict buckets prevents the start, or only causes a warning.
    pub require_noeviction: bool,
    /// How many nodes share the limits; counted in the store if none.
    pub nodes: Option<usize>,
    /// New buckets that each namespace may make in a second while the store's memory is nearly full; zero for any
    /// number.
    pub new_keys_per_second: usize,
    /// How long a refusal is remembered here.
    pub deny_cache_ttl: Duration,
    /// How long a lease lasts.
    pub lease_ttl: Duration,
    /// How often local decisions are sent to the store.
    pub async_interval: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            place: StorePlace::Memory,
            durable: Durability::On,
            timeout: Duration::from_millis(25),
            decision_deadline: Duration::from_millis(50),
            connections: 1,
            ca: None,
            cert: None,
            key: None,
            skip_hostname: false,
            insecure_tls: false,
            password_file: None,
            require_noeviction: false,
            nodes: None,
            new_keys_per_second: 10_000,
            deny_cache_ttl: Duration::from_millis(100),
            lease_ttl: Duration::from_secs(1),
            async_interval: Duration::from_millis(250),
        }
    }
}

/// Where buckets live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorePlace {
    /// In this process, not shared.
    #[default]
    Memory,
    /// In servers that all nodes of a fleet share.
    Shared(StoreUrl),
}

const MEMORY: &str = "memory";

impl FromStr for StorePlace {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<StorePlace, ParseError> {
        if text == MEMORY {
            return Ok(StorePlace::Memory);
        }
        let (user, url) = split_user(text);
        // Names the position of the error and never the text: it may be a password.
        let url = url.parse::<StoreUrl>().map_err(|error| {
            let help = match text.contains("://") {
                true => error.help.to_owned(),
                false => format!("write `{MEMORY}`, or a URL: {}", error.help),
            };
            ParseError::new(format!("not a store: {} (character {})", error.what, error.at), help)
        })?;
        let named = user.map(|user| Login { user: Some(user), password: Password::new(String::new()) });
        Ok(StorePlace::Shared(StoreUrl { login: named.or(url.login.clone()), ..url }))
    }
}

/// Splits a user without a password off the URL: the password is in a file. A name with special characters is left to
/// the URL parser.
fn split_user(text: &str) -> (Option<String>, String) {
    let is_plain =
        |user: &str| !user.is_empty() && user.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let split = text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)));
    match split {
        Some((scheme, (user, rest))) if is_plain(user) => (Some(user.to_owned()), format!("{scheme}://{rest}")),
        _ => (None, text.to_owned()),
    }
}

/// True if there is a password to go with the user.
fn has_password(login: &Login) -> bool {
    login.password != Password::new(String::new())
}

/// Without passwords.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Memory => f.write_str(MEMORY),
            StorePlace::Shared(url) => match &url.login {
                Some(login) if !has_password(login) => f.write_str(&url.to_string().replacen(":…@", "@", 1)),
                _ => write!(f, "{url}"),
            },
        }
    }
}

impl StoreSettings {
    /// Conflicting settings: the one to report, and why.
    pub(super) fn conflicts(&self) -> Vec<(&'static str, ParseError)> {
        let set = [
            ("store_ca", self.ca.is_some()),
            ("store_cert", self.cert.is_some()),
            ("store_key", self.key.is_some()),
            ("store_skip_hostname", self.skip_hostname),
            ("store_insecure_tls", self.insecure_tls),
            ("store_password_file", self.password_file.is_some()),
        ];
        let conflict = |name: &str| match &self.place {
            StorePlace::Memory => Some(("the store is in memory", "name a shared store with `store`")),
            StorePlace::Shared(url) if name == "store_password_file" => {
                let known = url.login.as_ref().is_some_and(has_password);
                known.then_some(("the store's URL has a password", "leave one of the two out"))
            }
            StorePlace::Shared(url) => {
                (!url.tls).then_some(("the store's URL asks for no TLS", "write rediss://, with two s"))
            }
        };
        let conflicting = set.into_iter().filter(|(_, is_set)| *is_set).filter_map(|(name, _)| {
            let (why, help) = conflict(name)?;
            Some((name, ParseError::new(format!("{name} is set, and {why}"), help)))
        });
        conflicting.chain(self.user_without_password()).chain(self.half_a_certificate()).collect()
    }

    fn half_a_certificate(&self) -> Option<(&'static str, ParseError)> {
        let (set, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("store_cert", "store_key"),
            (None, Some(_)) => ("store_key", "store_cert"),
            _ => return None,
        };
        Some((set, ParseError::new(format!("{set} is set, and {missing} is not"), "name both files, or none")))
    }

    fn user_without_password(&self) -> Option<(&'static str, ParseError)> {
        let StorePlace::Shared(StoreUrl { login: Some(login), .. }) = &self.place else { return None };
        let help = "write user:password@ or :password@, or set store_password_file";
        (!has_password(login) && self.password_file.is_none())
            .then(|| ("store", ParseError::new("the URL names a user and no password", help)))
    }
}

/// The text of a file with the credentials of URLs masked: reports show the lines of problems.
pub(super) fn without_passwords(text: &str) -> String {
    let hide = |line: &str| match line.split_once("://") {
        Some((before, after)) => match after.rsplit_once('@') {
            Some((login, rest)) => format!("{before}://{}@{rest}", "*".repeat(login.chars().count())),
            None => line.to_owned(),
        },
        None => line.to_owned(),
    };
    text.split('\n').map(hide).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Result<StorePlace, ParseError> {
        text.parse()
    }

    #[test]
    fn places_are_read_and_shown_without_passwords() {
        for (text, shown) in [
            ("memory", "memory"),
            ("redis://localhost", "redis://localhost:6379"),
            ("rediss://u:hunter2@h:1/2", "rediss://u:…@h:1/2"),
            ("redis://tollgate@h:1", "redis://tollgate@h:1"),
            ("redis-sentinel://:hunter2@a:1,b:2/m", "redis-sentinel://:…@a:1,b:2/m"),
        ] {
            assert_eq!(place(text).unwrap().to_string(), shown);
            assert!(!format!("{:?}", place(text)).contains("hunter2"));
        }
        for text in ["", "Memory", "redis:/u:hunter2@h", "redis://u:hunter2@h:port", "http://u:hunter2@h"] {
            let fault = place(text).unwrap_err().to_string();
            assert!(fault.starts_with("not a store: ") && !fault.contains("hunter2"), "{text}: {fault}");
        }
    }

    #[test]
    fn a_user_without_a_password_needs_a_file() {
        let settings = |password_file| StoreSettings {
            place: place("redis://u@h").unwrap(),
            password_file,
            ..StoreSettings::default()
        };
        let names =
            |settings: StoreSettings| settings.conflicts().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(settings(None)), ["store"]);
        assert_eq!(names(settings(Some("password".into()))), [""; 0]);
    }

    #[test]
    fn lines_that_are_shown_lose_their_passwords_and_keep_their_columns() {
        let hidden = without_passwords("a: 1\nstore: redis://u:p@ss@h:1 # x\nb: http://h\n");
        assert_eq!(hidden, "a: 1\nstore: redis://******@h:1 # x\nb: http://h\n");
    }
}
