//! The token that a server writes when it starts for the first time, found where the server would put it. Whoever can
//! read that file may do everything on this machine's server anyway, and need not copy a secret about.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tollgate_control::Place;
use tollgate_server::config::{ControlSettings, DbPlace};

use crate::client::BearerToken;

/// The name of the file.
const NAME: &str = "admin-token";

/// That token, if there is one that we may read.
pub fn find() -> Result<Option<BearerToken>> {
    let state_dir = std::env::var_os("TOLLGATE_STATE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = ControlSettings { state_dir, ..ControlSettings::default() };
    // Beside the database that the server's own variable names, if it names a file.
    let db = std::env::var("TOLLGATE_DB").ok().and_then(|db| db.parse::<DbPlace>().ok());
    let beside = match db {
        Some(DbPlace::At(Place::Sqlite(path))) => path.parent().map(Path::to_owned),
        _ => None,
    };
    for path in beside.into_iter().chain(settings.state_dir()).map(|directory| directory.join(NAME)) {
        if std::fs::File::open(&path).is_ok() {
            return BearerToken::find(Some(&path));
        }
    }
    Ok(None) // no such file, or not ours: the server will say that it wants a token
}
