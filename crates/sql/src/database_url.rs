//! The address of the database.

use std::fmt;
use std::path::PathBuf;

/// The database that the setting `db` names.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file, created if absent.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres(String),
}

impl DatabaseUrl {
    /// Parses `sqlite:PATH` or `postgres://…`; the error says what is expected.
    pub fn parse(text: &str) -> Result<DatabaseUrl, String> {
        if let Some(path) = text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            return match path {
                "" => Err("sqlite: needs a file, such as sqlite:/var/lib/tollgate/tollgate.db".to_owned()),
                path => Ok(DatabaseUrl::Sqlite(path.into())),
            };
        }
        match text.starts_with("postgres://") || text.starts_with("postgresql://") {
            true => Ok(DatabaseUrl::Postgres(text.to_owned())),
            false => Err("write sqlite:PATH or postgres://USER@HOST/DATABASE".to_owned()),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    /// Omits the password: the text is logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            DatabaseUrl::Postgres(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
                let rest = rest.split(['?', '#']).next().unwrap_or_default();
                let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(user, host)| (user, host));
                match user.split(':').next().unwrap_or_default() {
                    "" => write!(f, "{scheme}://{host}"),
                    user => write!(f, "{scheme}://{user}@{host}"),
                }
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("sqlite:a/b.db", "sqlite:a/b.db"),
            ("sqlite:///var/x.db", "sqlite:/var/x.db"),
            ("postgres://me:s3cr%40t@db:5432/limits?sslmode=require&password=x", "postgres://me@db:5432/limits"),
            ("postgresql://db/limits", "postgresql://db/limits"),
            ("postgres://me:a@b@db/limits", "postgres://me@db/limits"),
        ] {
            assert_eq!(DatabaseUrl::parse(text).unwrap().to_string(), shown);
            assert!(!format!("{:?}", DatabaseUrl::parse(text)).contains("s3cr"));
        }
        assert!(DatabaseUrl::parse("mysql://db").unwrap_err().contains("sqlite:PATH"));
    }
}
