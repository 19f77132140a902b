//! The token that a server writes when it starts for the first time, found where the server would put it. Whoever can
//! read that file may do everything on this machine's server anyway, and need not copy a secret about.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;

use crate::client::Token;

/// The name of the file.
const NAME: &str = "admin-token";

/// That token, if there is one that we may read.
pub fn find() -> Result<Option<Token>> {
    let Some(path) = directory(|name| std::env::var_os(name)).map(|directory| directory.join(NAME)) else {
        return Ok(None);
    };
    match std::fs::File::open(&path) {
        Ok(_) => Token::find(Some(&path)),
        Err(_) => Ok(None), // no such file, or not ours: the server will say that it wants a token
    }
}

/// Where a server of this user keeps its state: as it is told, as systemd says, or where users keep such things.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("TOLLGATE_STATE_DIR")
        // systemd may name several, of which the first is ours.
        .or_else(|| path("STATE_DIRECTORY").map(|all| all.to_string_lossy().split(':').next().unwrap_or("").into()))
        .or_else(|| path("XDG_DATA_HOME").map(|data| data.join("tollgate")))
        .or_else(|| path("HOME").map(|home| home.join(".local/share/tollgate")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_says_something_wins() {
        let found = |set: &[(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            directory(variable).map(|path| path.to_string_lossy().into_owned())
        };
        let all = [("HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("STATE_DIRECTORY", "/s:/t"), ("TOLLGATE_STATE_DIR", "/d")];
        let expected = ["/h/.local/share/tollgate", "/x/tollgate", "/s", "/d"];
        for (number, expected) in (1..).zip(expected) {
            assert_eq!(found(all.get(..number).unwrap()).as_deref(), Some(expected));
        }
        assert_eq!(found(&[("TOLLGATE_STATE_DIR", ""), ("HOME", "/h")]).as_deref(), Some("/h/.local/share/tollgate"));
        assert_eq!(found(&[]), None);
    }
}
