//! The tokens of the data API: lines of a file, and tokens of the database with the role `check`. Held as hashes,
//! compared in constant time.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};
use tollgate_control::record::Role;
use tollgate_core::Clock;

use crate::admin_tokens::AdminTokens;

/// Shortest token that is accepted: 128 bits in hex.
const TOKEN_BYTES_MIN: usize = 32;
/// Longest token; longer ones are not even hashed.
const TOKEN_BYTES_MAX: usize = 512;
/// Longest token file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most tokens of a file: all of them are compared with every token that is presented.
const TOKENS_MAX: usize = 100;
/// Most different sets of namespaces that tokens of the database may be confined to.
const SCOPES_MAX: usize = 1000;

/// The tokens that open the data API.
#[derive(Debug, Default)]
pub struct DataTokens {
    /// Hashes of the tokens in the file. These have no name, never expire and cover every namespace.
    hashes: ArcSwap<Vec<Digest>>,
    /// The tokens of the database, once it is followed.
    issued: OnceLock<IssuedTokens>,
    /// The sets of namespaces that tokens are confined to, by the number of a [`TokenScope`], which counts from 1.
    scopes: ArcSwap<Vec<Vec<String>>>,
}

/// Tokens with a name, an expiry, namespaces and a role, which can be revoked.
struct IssuedTokens {
    admin_tokens: Arc<AdminTokens>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for IssuedTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedTokens").field("admin_tokens", &self.admin_tokens).finish_non_exhaustive()
    }
}

/// The namespaces that a caller may ask about: all, or some. A number, so that it travels with a call at no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenScope(u32);

impl TokenScope {
    /// Every namespace.
    pub const ALL: TokenScope = TokenScope(0);
    /// No namespace.
    pub const NONE: TokenScope = TokenScope(u32::MAX);

    /// True if it covers every namespace.
    pub const fn is_for_all(self) -> bool {
        self.0 == 0
    }
}

impl DataTokens {
    /// Reads a file of tokens, one per line; empty lines and those that begin with `#` are passed over.
    pub fn read(path: &Path) -> Result<DataTokens> {
        Ok(DataTokens { hashes: ArcSwap::from_pointee(hashes(path)?), ..DataTokens::default() })
    }

    /// Reads it again; a file that cannot be used leaves the old tokens in place.
    pub fn reload(&self, path: &Path) -> Result<()> {
        self.hashes.store(hashes(path)?.into());
        Ok(())
    }

    /// Also accepts tokens of the database with the role `check`.
    pub fn follow(&self, admin_tokens: Arc<AdminTokens>, clock: Arc<dyn Clock>) {
        let _ = self.issued.set(IssuedTokens { admin_tokens, clock }); // a server has one database
    }

    /// The scope of `Bearer TOKEN`; `None` for an unknown token. A nearly right token takes as long as any other.
    pub fn authorize(&self, authorization: Option<&[u8]>) -> Option<TokenScope> {
        let (scheme, token) = authorization?.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") || token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let token = token.trim_ascii();
        if token.starts_with(b"tg_")
            && let Some(scope) = self.issued.get().and_then(|issued| self.authorize_issued(issued, token))
        {
            return Some(scope);
        }
        let presented = digest(&SHA256, token);
        let hashes = self.hashes.load();
        let equal = |known: &Digest| verify_slices_are_equal(known.as_ref(), presented.as_ref()).is_ok();
        hashes.iter().fold(false, |found, known| found | equal(known)).then_some(TokenScope::ALL)
    }

    fn authorize_issued(&self, issued: &IssuedTokens, token: &[u8]) -> Option<TokenScope> {
        let opened = issued.admin_tokens.with(token, issued.clock.wall().into(), |record| match &record.namespaces {
            _ if !record.role.may(Role::Check) => None,
            None => Some(TokenScope::ALL),
            Some(namespaces) => self.scope_of(namespaces),
        });
        opened.ok().flatten()
    }

    /// The scope of a set of namespaces; `None` if there are too many different sets.
    fn scope_of(&self, namespaces: &[String]) -> Option<TokenScope> {
        let find = |scopes: &[Vec<String>]| scopes.iter().position(|scope| scope == namespaces);
        if find(&self.scopes.load()).is_none() {
            self.scopes.rcu(|scopes| {
                let mut scopes = Vec::clone(scopes);
                if find(&scopes).is_none() && scopes.len() < SCOPES_MAX {
                    scopes.push(namespaces.to_vec());
                }
                scopes
            });
        }
        let index = find(&self.scopes.load())?;
        u32::try_from(index + 1).ok().map(TokenScope)
    }

    /// True if a scope covers a namespace.
    pub fn covers(&self, scope: TokenScope, namespace: &str) -> bool {
        let scopes = self.scopes.load();
        let scope = (scope.0 as usize).checked_sub(1).map(|index| scopes.get(index));
        scope.is_none_or(|scope| scope.is_some_and(|scope| scope.iter().any(|own| own == namespace)))
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

    use tollgate_control::Instant;
    use tollgate_control::record::TokenRecord;
    use tollgate_core::{ManualClock, Span, Time};

    use super::*;

    fn tokens(text: &str) -> Result<DataTokens> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        DataTokens::read(file.path())
    }

    #[test]
    fn a_token_of_the_file_is_accepted() {
        let tokens =
            tokens("# ours\n\n  0123456789abcdef0123456789abcdef  \nfedcba9876543210fedcba9876543210\n").unwrap();
        for good in ["Bearer 0123456789abcdef0123456789abcdef", "bearer fedcba9876543210fedcba9876543210"] {
            assert_eq!(tokens.authorize(Some(good.as_bytes())), Some(TokenScope::ALL), "{good}");
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
            assert_eq!(tokens.authorize(Some(bad.as_bytes())), None, "{bad}");
        }
        assert_eq!(tokens.authorize(None), None);
    }

    #[test]
    fn a_file_that_protects_nothing_is_refused_and_says_why() {
        for (text, said) in
            [("", "holds no token"), ("short\n", ":1: a token has"), ("# x\na b c d e f g h i j k l\n", ":2: ")]
        {
            let error = format!("{:#}", tokens(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        assert!(DataTokens::read(Path::new("/nowhere/at-all")).is_err());
    }

    fn issued(id: &str, role: Role, namespaces: Option<&[&str]>, expires_at: Option<i64>) -> TokenRecord {
        TokenRecord {
            token_id: id.to_owned(),
            name: "ours".to_owned(),
            role,
            namespaces: namespaces.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            hash: digest(&SHA256, b"s3cret").as_ref().try_into().unwrap(),
            created_at: Instant(0),
            created_by: "cli".to_owned(),
            expires_at: expires_at.map(Instant),
            last_used_at: None,
        }
    }

    #[test]
    fn tokens_of_the_database_cover_their_namespaces_until_they_expire() {
        let clock = ManualClock::at(Time::from_nanos(50_000));
        let admin_tokens = Arc::new(AdminTokens::new(vec![
            issued("all", Role::Check, None, Some(100)),
            issued("some", Role::Check, Some(&["shop", "blog"]), None),
            issued("same", Role::Check, Some(&["shop", "blog"]), None),
            issued("boss", Role::Admin, None, None),
        ]));
        let tokens = DataTokens::default();
        let authorize = |id: &str| tokens.authorize(Some(format!("Bearer tg_{id}_s3cret").as_bytes()));
        assert_eq!(authorize("all"), None, "no database is followed yet");
        tokens.follow(admin_tokens.clone(), Arc::new(clock.clone()));
        assert_eq!(authorize("all"), Some(TokenScope::ALL));
        assert_eq!(authorize("boss"), None, "tokens of the admin API open the admin API");
        assert_eq!(tokens.authorize(Some(b"Bearer tg_all_wrong")), None);
        let some = authorize("some").unwrap();
        assert_eq!(authorize("same"), Some(some));
        assert!(tokens.covers(some, "shop") && tokens.covers(some, "blog") && !tokens.covers(some, "default"));
        assert!(tokens.covers(TokenScope::ALL, "default") && !tokens.covers(TokenScope(99), "default"));
        clock.advance(Span::from_nanos(50_000));
        assert_eq!(authorize("all"), None, "it has expired");
        admin_tokens.remove("some");
        assert_eq!((authorize("some"), authorize("same")), (None, Some(some)), "revoked here, at once");
        assert_eq!(admin_tokens.used().len(), 4, "when they were used is noted");
    }
}
