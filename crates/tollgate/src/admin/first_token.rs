//! The token file that a server writes at its first start, at the server's default location. An account that can read
//! the file has full access to the local server anyway, so that copying the token would add nothing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tollgate_config::{ControlSettings, DbPlace};
use tollgate_control::DatabaseUrl;

use crate::client::BearerToken;

/// Name of the file.
const NAME: &str = "admin-token";

/// The token, if there is a readable file.
pub fn find() -> Result<Option<BearerToken>> {
    let state_dir = std::env::var_os("TOLLGATE_STATE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = ControlSettings { state_dir, ..ControlSettings::default() };
    // The server writes it beside its database, if TOLLGATE_DB names a file.
    let db = std::env::var("TOLLGATE_DB").ok().and_then(|db| db.parse::<DbPlace>().ok());
    let beside = match db {
        Some(DbPlace::At(DatabaseUrl::Sqlite(path))) => path.parent().map(Path::to_owned),
        _ => None,
    };
    for path in beside.into_iter().chain(settings.state_dir()).map(|directory| directory.join(NAME)) {
        if std::fs::File::open(&path).is_ok() {
            return BearerToken::find(Some(&path));
        }
    }
    Ok(None) // no readable file: the server will ask for a token
}
