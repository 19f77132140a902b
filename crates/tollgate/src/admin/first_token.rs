//! The token that a server writes when it starts for the first time, found where the server would put it. Whoever can
//! read that file may do everything on this machine's server anyway, and need not copy a secret about.

use std::path::PathBuf;

use anyhow::Result;
use tollgate_server::config::ControlSettings;

use crate::client::Token;

/// The name of the file.
const NAME: &str = "admin-token";

/// That token, if there is one that we may read.
pub fn find() -> Result<Option<Token>> {
    let told = std::env::var_os("TOLLGATE_STATE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = ControlSettings { state_dir: told, ..ControlSettings::default() };
    let Some(path) = settings.state_dir().map(|directory| directory.join(NAME)) else { return Ok(None) };
    match std::fs::File::open(&path) {
        Ok(_) => Token::find(Some(&path)),
        Err(_) => Ok(None), // no such file, or not ours: the server will say that it wants a token
    }
}
