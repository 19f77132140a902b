//! Settings of the control plane: the database of rules, overrides and tokens, and access to the admin API.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tollgate_control::DatabaseUrl;
use tollgate_rules::problem::ParseError;

/// Settings of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlSettings {
    /// The database.
    pub db: DbPlace,
    /// The password of the database, so that it is neither in the URL nor in a process list.
    pub password_file: Option<PathBuf>,
    /// Whether a start brings the tables to this version.
    pub migrate: bool,
    /// How often the database is polled for changes without a notification.
    pub poll_interval: Duration,
    /// The directory of what must outlive the process.
    pub state_dir: Option<PathBuf>,
    /// How long violations are kept.
    pub violations_retention: Duration,
    /// Whether violations hold client keys in plain text, instead of digests under the site's key.
    pub violations_plain_keys: bool,
    /// How long ended periods of quotas are kept in the history of usage.
    pub usage_retention: Duration,
    /// Whether the history of usage holds client keys in plain text, instead of digests under the site's key.
    pub usage_plain_keys: bool,
    /// Certificate chain of the admin listener, PEM; set together with `tls_key`.
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Authorities that sign the certificates of permitted clients, PEM.
    pub client_ca: Option<PathBuf>,
    /// Names of which a client's certificate must have one; any, if there are none.
    pub client_names: Vec<String>,
    /// Names under which browsers and proxies may call the admin listener, beside this machine's.
    pub allowed_hosts: Vec<String>,
    /// Whether the admin listener may be reached from other machines without TLS.
    pub insecure: bool,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            db: DbPlace::Embedded,
            password_file: None,
            migrate: true,
            poll_interval: Duration::from_secs(10),
            state_dir: None,
            violations_retention: Duration::from_secs(30 * 86_400),
            violations_plain_keys: false,
            usage_retention: Duration::from_secs(400 * 86_400),
            usage_plain_keys: false,
            tls_cert: None,
            tls_key: None,
            client_ca: None,
            client_names: Vec::new(),
            allowed_hosts: Vec::new(),
            insecure: false,
        }
    }
}

impl ControlSettings {
    /// The directory of what must outlive the process: as configured, as systemd sets it, or in the user's data
    /// directory. `None` for a user without a home.
    pub fn state_dir(&self) -> Option<PathBuf> {
        let of = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let own = || of("STATE_DIRECTORY");
        let data = || of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
        self.state_dir.clone().or_else(own).or_else(|| Some(data()?.join("tollgate")))
    }

    /// The database; `None` if there is none, or no place for it.
    pub fn place(&self) -> Option<DatabaseUrl> {
        match &self.db {
            DbPlace::Off => None,
            DbPlace::Embedded => Some(DatabaseUrl::Sqlite(self.state_dir()?.join("tollgate.db"))),
            DbPlace::At(place) => Some(place.clone()),
        }
    }
}

/// The database of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DbPlace {
    /// SQLite, in the state directory.
    #[default]
    Embedded,
    /// None: rules come from the file alone.
    Off,
    /// This one.
    At(DatabaseUrl),
}

const EMBEDDED: &str = "sqlite";
const OFF: &str = "off";

impl FromStr for DbPlace {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<DbPlace, ParseError> {
        match text {
            EMBEDDED => Ok(DbPlace::Embedded),
            OFF => Ok(DbPlace::Off),
            // Never repeats the text: it may hold a password.
            _ => DatabaseUrl::parse(text).map(DbPlace::At).map_err(|_| {
                let help = "write `sqlite`, sqlite:PATH, postgres://USER@HOST:PORT/DATABASE, or `off`";
                ParseError::new("not a database", help)
            }),
        }
    }
}

impl fmt::Display for DbPlace {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DbPlace::Embedded => f.write_str(EMBEDDED),
            DbPlace::Off => f.write_str(OFF),
            DbPlace::At(place) => place.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_read_and_shown_without_passwords() {
        for (text, shown) in [
            ("sqlite", "sqlite"),
            ("off", "off"),
            ("sqlite:/x/y.db", "sqlite:/x/y.db"),
            ("postgres://u:hunter2@h:5432/limits", "postgres://u@h:5432/limits"),
        ] {
            assert_eq!(text.parse::<DbPlace>().unwrap().to_string(), shown);
        }
        let fault = "mysql://u:hunter2@h".parse::<DbPlace>().unwrap_err().to_string();
        assert!(fault.contains("postgres://") && !fault.contains("hunter2"), "{fault}");
    }
}
