//! The access token. It comes from a file or the environment, never from the command line, which every user of the
//! machine can read.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hyper::header::HeaderValue;

use crate::input;

/// Environment variable with a token.
const VARIABLE: &str = "TOLLGATE_TOKEN";

/// A token, as the value of the `Authorization` header.
pub struct BearerToken(HeaderValue);

impl BearerToken {
    /// The first token of the file, or the token of the environment, if there is one.
    pub fn find(file: Option<&Path>) -> Result<Option<BearerToken>> {
        if let Some(path) = file {
            return BearerToken::read(path).map(Some);
        }
        match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => BearerToken::new(text.trim(), VARIABLE).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a file as the server does, with one token per line, and takes the first.
    fn read(path: &Path) -> Result<BearerToken> {
        let source = input::read(path)?;
        let mut lines = source.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        BearerToken::new(lines.next().with_context(|| format!("{} contains no token", source.name))?, &source.name)
    }

    fn new(text: &str, place: &str) -> Result<BearerToken> {
        let header =
            text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| HeaderValue::try_from(format!("Bearer {text}")));
        let Some(Ok(mut header)) = header else {
            bail!("{place} contains no token: a token is visible characters without spaces");
        };
        header.set_sensitive(true);
        Ok(BearerToken(header))
    }

    /// The value of the `Authorization` header.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
