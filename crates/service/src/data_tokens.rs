//! The tokens of the data API: lines of a file, and tokens of the database with the role `check`. Held as hashes,
//! compared in constant time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};
use parking_lot::Mutex;
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

/// The tokens that open the data API.
#[derive(Debug, Default)]
pub struct DataTokens {
    /// Hashes of the tokens in the file. These have no name, never expire and cover every namespace.
    hashes: ArcSwap<Vec<Digest>>,
    /// The tokens of the database, once it is followed.
    issued: OnceLock<IssuedTokens>,
    /// The sets of namespaces that tokens are confined to.
    scopes: ArcSwap<ScopeTable>,
    /// Held while `scopes` is rebuilt, so that an older list of tokens never replaces a newer one.
    rebuild: Mutex<()>,
}

/// The sets of namespaces of the current tokens, each with the number of its [`TokenScope`]. Numbers are never used
/// twice: the number of a set that no token has any more covers nothing.
#[derive(Clone, Debug, Default)]
struct ScopeTable {
    numbers: HashMap<Arc<[String]>, u64>,
    sets: HashMap<u64, Arc<[String]>>,
    last: u64,
}

impl ScopeTable {
    fn scope(&self, namespaces: &[String]) -> Option<TokenScope> {
        self.numbers.get(namespaces).copied().map(TokenScope)
    }

    /// The table of these sets: known sets keep their numbers, all others are forgotten. No larger than the list of
    /// tokens, and built once per change of that list, not once per token.
    fn of(&self, sets: &HashSet<Vec<String>>) -> ScopeTable {
        let mut next = ScopeTable { last: self.last, ..ScopeTable::default() };
        for set in sets {
            let (set, number) = match self.numbers.get_key_value(set.as_slice()) {
                Some((known, number)) => (known.clone(), *number),
                None => {
                    next.last += 1;
                    (set.clone().into(), next.last)
                }
            };
            next.sets.insert(number, set.clone());
            next.numbers.insert(set, number);
        }
        next
    }
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
pub struct TokenScope(u64);

impl TokenScope {
    /// Every namespace.
    pub const ALL: TokenScope = TokenScope(0);
    /// No namespace.
    pub const NONE: TokenScope = TokenScope(u64::MAX);

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
            Some(namespaces) => self.scope_of(&issued.admin_tokens, namespaces),
        });
        opened.ok().flatten()
    }

    /// The scope of the set of namespaces of a current token.
    fn scope_of(&self, tokens: &AdminTokens, namespaces: &[String]) -> Option<TokenScope> {
        let known = || self.scopes.load().scope(namespaces);
        known().or_else(|| {
            let _rebuild = self.rebuild.lock();
            // `None` if the token was revoked since it was looked up.
            known().or_else(|| {
                self.scopes.store(Arc::new(self.scopes.load().of(&tokens.namespace_sets())));
                known()
            })
        })
    }

    /// True if a scope covers a namespace.
    pub fn covers(&self, scope: TokenScope, namespace: &str) -> bool {
        scope.is_for_all()
            || self.scopes.load().sets.get(&scope.0).is_some_and(|set| set.iter().any(|own| own == namespace))
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

    #[test]
    fn any_number_of_namespace_sets_is_served_and_sets_without_a_token_are_forgotten() {
        let names: Vec<String> = (0..3000).map(|number| format!("team-{number}")).collect();
        let token = |name: &String| issued(name, Role::Check, Some(&[name.as_str()]), None);
        let admin_tokens = Arc::new(AdminTokens::new(names.iter().map(token).collect()));
        let tokens = DataTokens::default();
        tokens.follow(admin_tokens.clone(), Arc::new(ManualClock::at(Time::from_nanos(50_000))));
        let authorize = |id: &str| tokens.authorize(Some(format!("Bearer tg_{id}_s3cret").as_bytes()));
        let first = authorize("team-0").unwrap();
        for name in &names {
            let scope = authorize(name).unwrap();
            assert!(tokens.covers(scope, name) && !tokens.covers(scope, "default"), "{name}");
        }
        assert_eq!(authorize("team-0"), Some(first), "a set keeps its number while a token has it");
        names.iter().skip(1).for_each(|name| admin_tokens.remove(name));
        admin_tokens.add(&issued("late", Role::Check, Some(&["late"]), None));
        assert!(tokens.covers(authorize("late").unwrap(), "late") && tokens.covers(first, "team-0"));
        assert_eq!(tokens.scopes.load().sets.len(), 2, "sets of revoked tokens are gone");
    }
}
