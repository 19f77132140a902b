//! Opens the configured database and creates the first token.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use tollgate_control::change_feed::LocalCopy;
use tollgate_control::{Control, DatabaseUrl, Schema};
use tollgate_core::{KeyHasher, Secret};
use tracing::{info, warn};

use tollgate_config::{ControlSettings, DbPlace};

/// Longest password that is read.
const PASSWORD_BYTES_MAX: usize = 4096;

/// An open database with its local files.
#[derive(Debug)]
pub(crate) struct OpenedDatabase {
    pub(crate) control: Control,
    /// The copy of its last content, for a start without it; `None` for a local database.
    pub(crate) copy: Option<LocalCopy>,
    /// The first token, if this start created it.
    pub(crate) first_token: Option<FirstToken>,
}

/// Where an operator finds the first token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FirstToken {
    /// On the terminal, once.
    Shown(String),
    /// In a file that only this user can read.
    Written(PathBuf),
}

/// Opens the configured database, migrates its tables and creates the first token. `None` without a database: by
/// configuration, or because the default one has no usable directory.
pub(crate) async fn open(settings: &ControlSettings) -> Result<Option<OpenedDatabase>> {
    let Some(place) = settings.place() else {
        if settings.db != DbPlace::Off {
            warn!("no home directory for a database: rules come from the file alone; set state_dir or db");
        }
        return Ok(None);
    };
    let state_dir = settings.state_dir();
    let opened = open_at(settings, &place, state_dir.as_deref()).await;
    match (opened, &settings.db) {
        (Ok(opened), _) => Ok(Some(opened)),
        // An existing database holds rules: a node without them would allow everything.
        (Err(error), DbPlace::Embedded) if !is_there(&place) => {
            let error = format!("{error:#}");
            warn!(error, "cannot use {place}: rules come from the file alone; set db or state_dir, or `db: off`");
            Ok(None)
        }
        (Err(error), _) => Err(error.context(format!("cannot use the database {place}"))),
    }
}

fn is_there(place: &DatabaseUrl) -> bool {
    matches!(place, DatabaseUrl::Sqlite(path) if path.metadata().is_ok_and(|facts| facts.len() > 0))
}

async fn open_at(settings: &ControlSettings, place: &DatabaseUrl, state_dir: Option<&Path>) -> Result<OpenedDatabase> {
    if let Some(dir) = state_dir {
        // Without the directory there is no copy, which does not prevent serving.
        match make_private(dir) {
            Ok(()) => {}
            Err(error) if matches!(place, DatabaseUrl::Sqlite(path) if path.starts_with(dir)) => {
                return Err(error).with_context(|| format!("cannot create {}", dir.display()));
            }
            Err(error) => warn!(%error, "cannot create {}: no state outlives this process", dir.display()),
        }
    }
    let full = with_password(place, settings.password_file.as_deref())?;
    let control = Control::new(&full)?;
    let copy = match (&full, state_dir) {
        (DatabaseUrl::Postgres(_), Some(dir)) => keep_copy(dir, place, &control).await,
        _ => None,
    };
    let first_token = match prepare(&control, settings.migrate).await {
        Ok(first) => first.map(|token| hand_over(token, beside(place, state_dir))).transpose()?,
        Err(error) => match &copy {
            // The feed decides whether the copy is usable for a start.
            Some(_) if is_away(&error) => None,
            _ => return Err(error),
        },
    };
    Ok(OpenedDatabase { control, copy, first_token })
}

fn is_away(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(tollgate_control::Error::Unavailable(_)))
}

/// Migrates the tables and creates the first token; returns it if it is new.
async fn prepare(control: &Control, may_migrate: bool) -> Result<Option<String>> {
    match control.schema().await? {
        Schema::Current => {}
        Schema::Behind(..) if may_migrate => {
            let steps = control.migrate().await?;
            info!(steps, "migrated the database");
        }
        Schema::Behind(have, want) => bail!(
            "its tables are at step {have} of {want}, and db_migrate is off; bring them up to date with: tollgate db migrate"
        ),
        Schema::Ahead => bail!("a newer version of Tollgate has changed its tables; run that version"),
    }
    Ok(control.first_token().await?.map(|(_, token)| token))
}

/// Opens the copy. Without it, this node only cannot start while the database is away.
async fn keep_copy(dir: &Path, place: &DatabaseUrl, control: &Control) -> Option<LocalCopy> {
    let mut name = KeyHasher::new(Secret::new(*b"a copy of tables"));
    name.part(place.to_string().as_bytes());
    let [name, _] = name.finish().0;
    let file = dir.join(format!("copy-{name:016x}.db"));
    let copy = LocalCopy::open(&file, control.clone()).await;
    copy.inspect_err(|error| warn!(%error, "cannot keep a copy of the rules in {}", file.display())).ok()
}

fn make_private(dir: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// The URL with the password from a file.
pub fn with_password(place: &DatabaseUrl, file: Option<&Path>) -> Result<DatabaseUrl> {
    let (DatabaseUrl::Postgres(url), Some(file)) = (place, file) else { return Ok(place.clone()) };
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read db_password_file {name}"))?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        bail!("db_password_file {name} holds no password");
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| anyhow!("the URL of the database is not valid"))?;
    let (user, host) = rest.split_once('@').ok_or_else(|| {
        anyhow!(
            "db_password_file is set, and the URL of the database names no user: write postgres://USER@HOST/DATABASE"
        )
    })?;
    if user.contains(':') {
        bail!("the URL of the database has a password, and db_password_file is set: leave one of the two out");
    }
    let escaped: String = password
        .bytes()
        .map(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    Ok(DatabaseUrl::Postgres(format!("{scheme}://{user}:{escaped}@{host}")))
}

/// The directory of the first token's file: beside a database file, or the state directory.
fn beside<'a>(place: &'a DatabaseUrl, state_dir: Option<&'a Path>) -> Option<&'a Path> {
    match place {
        DatabaseUrl::Sqlite(path) => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            Some(dir.unwrap_or(Path::new(".")))
        }
        DatabaseUrl::Postgres(_) => state_dir,
    }
}

/// Shows the token on a terminal; otherwise writes it to a private file, because logs have many readers.
fn hand_over(token: String, dir: Option<&Path>) -> Result<FirstToken> {
    let Some(dir) = dir.filter(|_| !std::io::stdout().is_terminal()) else { return Ok(FirstToken::Shown(token)) };
    let path = dir.join("admin-token");
    let write = || -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(format!("{token}\n").as_bytes())
    };
    write().with_context(|| format!("cannot write the first token into {}", path.display()))?;
    Ok(FirstToken::Written(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_lies_beside_the_database() {
        let state = Path::new("/var/lib/tollgate");
        let at = |path: &str| DatabaseUrl::Sqlite(path.into());
        assert_eq!(beside(&at("/srv/limits/t.db"), Some(state)), Some(Path::new("/srv/limits")));
        assert_eq!(beside(&at("t.db"), Some(state)), Some(Path::new(".")));
        assert_eq!(beside(&DatabaseUrl::Postgres("postgres://db/x".to_owned()), Some(state)), Some(state));
    }

    #[test]
    fn a_password_from_a_file_is_escaped_into_the_url() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "p@ss/w:rd %\n").unwrap();
        let place = |url: &str| DatabaseUrl::Postgres(url.to_owned());
        let full = with_password(&place("postgres://me@db:1/x"), Some(file.path())).unwrap();
        assert_eq!(full, place("postgres://me:p%40ss%2Fw%3Ard%20%25@db:1/x"));
        for url in ["postgres://db/x", "postgres://me:pw@db/x"] {
            assert!(with_password(&place(url), Some(file.path())).is_err(), "{url}");
        }
        let sqlite = DatabaseUrl::Sqlite("a.db".into());
        assert_eq!(with_password(&sqlite, Some(file.path())).unwrap(), sqlite);
    }
}
