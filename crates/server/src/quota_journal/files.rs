//! Where the journal of quotas lies: beside a database file, else in the state directory.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tollgate_config::{Config, Durability, StorePlace};
use tollgate_control::DatabaseUrl;

/// The journal, and the secret that its digests depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaFiles {
    pub(crate) journal: PathBuf,
    /// Where a secret is kept, unless `secret_file` names one.
    pub(crate) secret: PathBuf,
}

impl QuotaFiles {
    /// The files of this configuration; `None` if quotas are not durable here, or if there is no directory.
    pub(crate) fn of(config: &Config) -> Option<QuotaFiles> {
        if config.store.durable == Durability::Off || config.store.place != StorePlace::Memory {
            return None;
        }
        match config.control.place() {
            Some(DatabaseUrl::Sqlite(database)) => Some(QuotaFiles::beside(&database)),
            _ => Some(QuotaFiles::beside(&config.control.state_dir()?.join("tollgate.db"))),
        }
    }

    /// `limits.quotas` beside `limits.db`.
    fn beside(database: &Path) -> QuotaFiles {
        let stem = match database.extension() {
            Some(extension) if extension == "db" => database.with_extension(""),
            _ => database.to_owned(),
        };
        let with = |ending: &str| {
            let mut path = stem.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        QuotaFiles { journal: with(".quotas"), secret: with(".secret") }
    }

    /// Creates the directory, for this user alone.
    pub(crate) fn create_directory(&self) -> io::Result<()> {
        match self.journal.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            Some(directory) => DirBuilder::new().recursive(true).mode(0o700).create(directory),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal_of(change: impl FnOnce(&mut Config)) -> Option<String> {
        let mut config = Config::default();
        config.control.state_dir = Some("/var/lib/tollgate".into());
        change(&mut config);
        QuotaFiles::of(&config).map(|files| files.journal.display().to_string())
    }

    #[test]
    fn the_journal_lies_beside_the_database_or_in_the_state_directory() {
        let db = |db: &'static str| journal_of(move |config| config.control.db = db.parse().unwrap()).unwrap();
        assert_eq!(journal_of(|_| ()).as_deref(), Some("/var/lib/tollgate/tollgate.quotas"));
        assert_eq!(db("off"), "/var/lib/tollgate/tollgate.quotas");
        assert_eq!(db("postgres://me@host/limits"), "/var/lib/tollgate/tollgate.quotas");
        assert_eq!(db("sqlite:/srv/limits.db"), "/srv/limits.quotas");
        assert_eq!(db("sqlite:/srv/limits.v2"), "/srv/limits.v2.quotas");
        assert_eq!(db("sqlite:limits.quotas"), "limits.quotas.quotas", "never the database itself");
    }

    #[test]
    fn shared_buckets_and_those_that_need_not_last_have_no_journal() {
        assert_eq!(journal_of(|config| config.store.durable = Durability::Off), None);
        assert_eq!(journal_of(|config| config.store.place = "redis://127.0.0.1:6379".parse().unwrap()), None);
    }
}
