//! Tokens of those who may ask: read from a file, kept as hashes, compared in constant time.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};

/// Shortest token that is accepted: 128 bits in hex.
const TOKEN_BYTES_MIN: usize = 32;
/// Longest token; longer ones are not even hashed.
const TOKEN_BYTES_MAX: usize = 512;
/// Longest token file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most tokens of a file: all of them are compared with every token that is presented.
const TOKENS_MAX: usize = 100;

/// The tokens that open the data API.
#[derive(Debug)]
pub struct Tokens {
    hashes: ArcSwap<Vec<Digest>>,
}

impl Tokens {
    /// Reads a file of tokens, one per line; empty lines and those that begin with `#` are passed over.
    pub fn read(path: &Path) -> Result<Tokens> {
        Ok(Tokens { hashes: ArcSwap::from_pointee(hashes(path)?) })
    }

    /// Reads it again; a file that cannot be used leaves the old tokens in place.
    pub fn reload(&self, path: &Path) -> Result<()> {
        self.hashes.store(hashes(path)?.into());
        Ok(())
    }

    /// True for `Bearer` and one of the tokens. Takes as long for a token that is nearly right as for any other.
    pub fn open_to(&self, authorization: Option<&[u8]>) -> bool {
        let Some((scheme, token)) = authorization.and_then(|value| value.split_at_checked(7)) else { return false };
        if !scheme.eq_ignore_ascii_case(b"bearer ") || token.len() > TOKEN_BYTES_MAX {
            return false;
        }
        let presented = digest(&SHA256, token.trim_ascii());
        let hashes = self.hashes.load();
        let equal = |known: &Digest| verify_slices_are_equal(known.as_ref(), presented.as_ref()).is_ok();
        hashes.iter().fold(false, |found, known| found | equal(known))
    }
}

fn hashes(path: &Path) -> Result<Vec<Digest>> {
    let name = path.display();
    let file = fs::File::open(path).with_context(|| format!("cannot read the token file {name}"))?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read the token file {name}"))?;
    let mut hashes = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&line.len()) || !line.bytes().all(|b| b.is_ascii_graphic()) {
            bail!(
                "{name}:{number}: a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} visible characters and no spaces; \
                 make one with: openssl rand -hex 20"
            );
        }
        hashes.push(digest(&SHA256, line.as_bytes()));
    }
    match hashes.len() {
        0 => bail!("{name} holds no token: write one per line; make one with: openssl rand -hex 20"),
        count if count > TOKENS_MAX => bail!("{name} holds {count} tokens, at most {TOKENS_MAX} are read"),
        _ => Ok(hashes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tokens(text: &str) -> Result<Tokens> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Tokens::read(file.path())
    }

    #[test]
    fn open_to_whoever_presents_one() {
        let tokens =
            tokens("# ours\n\n  0123456789abcdef0123456789abcdef  \nfedcba9876543210fedcba9876543210\n").unwrap();
        for good in ["Bearer 0123456789abcdef0123456789abcdef", "bearer fedcba9876543210fedcba9876543210"] {
            assert!(tokens.open_to(Some(good.as_bytes())), "{good}");
        }
        let long = format!("Bearer {}", "x".repeat(10_000));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic 0123456789abcdef0123456789abcdef",
            "Bearer 0123456789abcdef0123456789abcde",
            "Bearer # ours",
            &long,
        ] {
            assert!(!tokens.open_to(Some(bad.as_bytes())), "{bad}");
        }
        assert!(!tokens.open_to(None));
    }

    #[test]
    fn a_file_that_protects_nothing_is_refused_and_says_why() {
        for (text, said) in
            [("", "holds no token"), ("short\n", ":1: a token has"), ("# x\na b c d e f g h i j k l\n", ":2: ")]
        {
            let error = format!("{:#}", tokens(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        assert!(Tokens::read(Path::new("/nowhere/at-all")).is_err());
    }
}
