//! Where buckets live, as it was configured.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tollgate_rules::problem::Fault;

use crate::backend::StoreUrl;

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Where buckets live.
    pub place: StorePlace,
    /// How long one call of a shared store may take.
    pub timeout: Duration,
    /// How long a decision may take, whatever the store does.
    pub decision_deadline: Duration,
    /// Connections to each server.
    pub connections: usize,
    /// Authorities that sign the certificates of the servers, PEM; those of this machine if none.
    pub ca: Option<PathBuf>,
    /// Whether certificates are taken as they come.
    pub insecure_tls: bool,
    /// The password, so that it stands neither in the URL nor in a list of processes.
    pub password_file: Option<PathBuf>,
    /// Whether a server that may evict buckets is refused at the start, or only complained about.
    pub require_noeviction: bool,
    /// How many nodes share the limits; counted in the store if none.
    pub nodes: Option<usize>,
    /// New buckets that each namespace may make in a second.
    pub new_keys_per_second: usize,
    /// How long a refusal is remembered here.
    pub deny_cache_ttl: Duration,
    /// How long a lease lasts.
    pub lease_ttl: Duration,
    /// How often what was decided locally is told to the store.
    pub async_interval: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            place: StorePlace::Memory,
            timeout: Duration::from_millis(25),
            decision_deadline: Duration::from_millis(50),
            connections: 2,
            ca: None,
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
    /// In this process: nobody shares them.
    #[default]
    Memory,
    /// In servers that all nodes of a fleet share.
    Shared(StoreUrl),
}

const MEMORY: &str = "memory";

impl FromStr for StorePlace {
    type Err = Fault;

    fn from_str(text: &str) -> Result<StorePlace, Fault> {
        if text == MEMORY {
            return Ok(StorePlace::Memory);
        }
        // Says where it goes wrong and never what stands there: it may be a password.
        text.parse().map(StorePlace::Shared).map_err(|error| {
            let help = match text.contains("://") {
                true => error.help.to_owned(),
                false => format!("write `{MEMORY}`, or a URL: {}", error.help),
            };
            Fault::new(format!("not a store: {} (character {})", error.what, error.at), help)
        })
    }
}

/// Without passwords.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Memory => f.write_str(MEMORY),
            StorePlace::Shared(url) => write!(f, "{url}"),
        }
    }
}

impl StoreSettings {
    /// Settings that do not go together: the one to point at, and why.
    pub(super) fn conflicts(&self) -> Vec<(&'static str, Fault)> {
        let set = [
            ("store_ca", self.ca.is_some()),
            ("store_insecure_tls", self.insecure_tls),
            ("store_password_file", self.password_file.is_some()),
        ];
        let is_odd = |name: &str| match &self.place {
            StorePlace::Memory => Some(("the store is in memory", "name a shared store with `store`")),
            StorePlace::Shared(url) if name == "store_password_file" => {
                url.login.is_some().then_some(("the store's URL has a password", "leave one of the two out"))
            }
            StorePlace::Shared(url) => {
                (!url.tls).then_some(("the store's URL asks for no TLS", "write rediss://, with two s"))
            }
        };
        let odd = set.into_iter().filter(|(_, is_set)| *is_set).filter_map(|(name, _)| {
            let (why, help) = is_odd(name)?;
            Some((name, Fault::new(format!("{name} is set, and {why}"), help)))
        });
        odd.collect()
    }
}

/// The text of a file without what stands between `://` and `@`: problems show the lines they are about.
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
