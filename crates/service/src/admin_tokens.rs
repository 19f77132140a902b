//! The tokens of the admin API, all in memory: authentication never waits for the database.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use tokio::time;
use tollgate_control::record::{Role, TokenRecord};
use tollgate_control::{Author, Instant};

/// Longest token; longer ones are not even hashed.
const TOKEN_BYTES_MAX: usize = 512;
/// Token uses are recorded to the minute.
const MINUTE_MICROS: i64 = 60_000_000;

/// The tokens that are valid now. The change feed replaces the whole set.
#[derive(Default)]
pub struct AdminTokens {
    tokens: ArcSwap<HashMap<String, KnownToken>>,
    /// Uses that are not in the database yet; of known tokens only, so never more than there are tokens.
    used: Mutex<HashMap<String, Instant>>,
    /// Taken while `tokens` is changed by more than one token.
    history: Mutex<TokenHistory>,
}

/// Resolves contradictions between the database and this node.
#[derive(Debug, Default)]
struct TokenHistory {
    /// Revoked through this node; ids are never used again.
    revoked: HashSet<String>,
    /// When the reading of the last list began.
    read_at: Option<time::Instant>,
}

/// A token, when this node learned of it, and the last minute of use that was recorded.
#[derive(Clone, Debug)]
struct KnownToken {
    record: TokenRecord,
    learned_at: time::Instant,
    recorded_minute: Arc<AtomicI64>,
}

impl KnownToken {
    fn new(record: TokenRecord, learned_at: time::Instant) -> KnownToken {
        let recorded_minute = record.last_used_at.map_or(i64::MIN, |last| last.0);
        KnownToken { record, learned_at, recorded_minute: Arc::new(AtomicI64::new(recorded_minute)) }
    }
}

/// The caller that a valid token identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminIdentity {
    /// The token's public half.
    pub token_id: String,
    /// The token's name.
    pub name: String,
    /// What the token permits.
    pub role: Role,
    /// The namespaces it covers; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// First instant at which it is no longer valid.
    pub expires_at: Option<Instant>,
}

/// Why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRejection {
    /// No such token, or it was revoked.
    Unknown,
    /// It has expired. Reported only if the presented secret is right.
    Expired,
}

impl AdminTokens {
    /// Starts with these tokens.
    pub fn new(tokens: Vec<TokenRecord>) -> AdminTokens {
        let admin_tokens = AdminTokens::default();
        admin_tokens.replace(tokens, time::Instant::now());
        admin_tokens
    }

    /// The tokens of the database, as a reader that began at `read_at` found them. What this node did since then
    /// stands: tokens revoked here stay revoked, and tokens added later than `read_at` stay.
    pub fn replace(&self, tokens: Vec<TokenRecord>, read_at: time::Instant) {
        let mut history = self.history.lock();
        history.read_at = Some(read_at);
        let good = tokens.into_iter().filter(|token| !history.revoked.contains(&token.token_id));
        let good: HashMap<_, _> = good.map(|token| (token.token_id.clone(), KnownToken::new(token, read_at))).collect();
        self.tokens.rcu(|before| {
            let mut tokens = good.clone();
            for (id, known) in before.iter().filter(|(_, known)| known.learned_at > read_at) {
                tokens.entry(id.clone()).or_insert_with(|| known.clone());
            }
            tokens
        });
    }

    /// Adds a token that was made through this node: it is valid here at once.
    pub fn add(&self, token: &TokenRecord) {
        self.add_at(token, time::Instant::now());
    }

    fn add_at(&self, token: &TokenRecord, learned_at: time::Instant) {
        let known = KnownToken::new(token.clone(), learned_at);
        self.change(|tokens| drop(tokens.insert(token.token_id.clone(), known.clone())));
    }

    /// Adds a token that a query begun at `asked_at` found in the database, unless it was revoked here or a later list
    /// is known.
    pub fn add_found(&self, token: &TokenRecord, asked_at: time::Instant) {
        let history = self.history.lock();
        let is_outdated = history.read_at.is_some_and(|read_at| asked_at < read_at);
        if !is_outdated && !history.revoked.contains(&token.token_id) {
            self.add_at(token, asked_at);
        }
    }

    /// The id in a well-formed token.
    pub fn id_of(token: &[u8]) -> Option<&str> {
        halves(token).map(|(id, _)| id)
    }

    /// Removes a revoked token.
    pub fn remove(&self, token_id: &str) {
        self.history.lock().revoked.insert(token_id.to_owned());
        self.change(|tokens| drop(tokens.remove(token_id)));
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, KnownToken>)) {
        self.tokens.rcu(|tokens| {
            let mut tokens = HashMap::clone(tokens);
            change(&mut tokens);
            tokens
        });
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.load().len()
    }

    /// True if there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The different sets of namespaces that tokens are confined to.
    pub fn namespace_sets(&self) -> HashSet<Vec<String>> {
        self.tokens.load().values().filter_map(|known| known.record.namespaces.clone()).collect()
    }

    /// Authenticates `tg_<id>_<secret>`.
    pub fn find(&self, token: &[u8], now: Instant) -> Result<AdminIdentity, TokenRejection> {
        self.with(token, now, |token| {
            let TokenRecord { token_id, name, role, namespaces, expires_at, .. } = token.clone();
            AdminIdentity { token_id, name, role, namespaces, expires_at }
        })
    }

    /// Calls `look` with the record of a valid token. An unknown id takes as long as a wrong secret.
    pub fn with<T>(
        &self,
        token: &[u8],
        now: Instant,
        look: impl FnOnce(&TokenRecord) -> T,
    ) -> Result<T, TokenRejection> {
        let (id, secret) = halves(token).unwrap_or_default();
        let presented = digest(&SHA256, secret.as_bytes());
        let tokens = self.tokens.load();
        let known = tokens.get(id);
        let hash = known.map_or([0; 32], |known| known.record.hash);
        let is_equal = verify_slices_are_equal(&hash, presented.as_ref()).is_ok();
        let known = known.filter(|_| is_equal).ok_or(TokenRejection::Unknown)?;
        if known.record.expires_at.is_some_and(|end| end <= now) {
            return Err(TokenRejection::Expired);
        }
        self.record_use(known, now);
        Ok(look(&known.record))
    }

    /// Takes the uses since the last call, to be written to the database.
    pub fn used(&self) -> Vec<(String, Instant)> {
        self.used.lock().drain().collect()
    }

    /// At most once per minute and token: callers of the data API present one with every request.
    fn record_use(&self, known: &KnownToken, now: Instant) {
        let minute = Instant(now.0 - now.0.rem_euclid(MINUTE_MICROS));
        if known.recorded_minute.load(Ordering::Relaxed) >= minute.0
            || known.recorded_minute.swap(minute.0, Ordering::Relaxed) == minute.0
        {
            return;
        }
        let mut used = self.used.lock();
        match used.get_mut(&known.record.token_id) {
            Some(last) => *last = minute.max(*last),
            None => drop(used.insert(known.record.token_id.clone(), minute)),
        }
    }
}

impl AdminIdentity {
    /// The author in the audit log.
    pub fn author(&self) -> Author {
        Author { id: self.token_id.clone(), name: self.name.clone() }
    }

    /// True if the token covers the namespace.
    pub fn may_see(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|own| own.iter().any(|own| own == namespace))
    }
}

impl fmt::Debug for AdminTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminTokens").field("tokens", &self.len()).finish_non_exhaustive()
    }
}

fn halves(token: &[u8]) -> Option<(&str, &str)> {
    let token = str::from_utf8(token).ok().filter(|token| token.len() <= TOKEN_BYTES_MAX)?;
    token.strip_prefix("tg_")?.split_once('_').filter(|(_, secret)| !secret.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &str, secret: &str, expires_at: Option<i64>) -> TokenRecord {
        let hash = digest(&SHA256, secret.as_bytes());
        TokenRecord {
            token_id: id.to_owned(),
            name: "ours".to_owned(),
            role: Role::Operator,
            namespaces: None,
            hash: hash.as_ref().try_into().unwrap(),
            created_at: Instant(0),
            created_by: "cli".to_owned(),
            expires_at: expires_at.map(Instant),
            last_used_at: None,
        }
    }

    #[test]
    fn a_token_expires_at_its_last_instant() {
        let admin_tokens = AdminTokens::new(vec![token("a1", "s3cret", Some(90_000_000)), token("b2", "s_3", None)]);
        let find = |text: &str, now| admin_tokens.find(text.as_bytes(), Instant(now)).map(|identity| identity.token_id);
        assert_eq!(find("tg_a1_s3cret", 89_999_999).as_deref(), Ok("a1"));
        assert_eq!(find("tg_a1_s3cret", 90_000_000), Err(TokenRejection::Expired));
        assert_eq!(find("tg_a1_other", 90_000_000), Err(TokenRejection::Unknown), "a wrong secret learns nothing more");
        assert_eq!(find("tg_b2_s_3", 1).as_deref(), Ok("b2"));
        for bad in ["", "tg_", "tg_a1", "tg_a1_", "tg__s3cret", "a1_s3cret", "tg_zz_s3cret", "tg_a1_s3cret "] {
            assert_eq!(find(bad, 1), Err(TokenRejection::Unknown), "{bad}");
        }
        assert_eq!(admin_tokens.find(&[b'x'; 10_000], Instant(1)), Err(TokenRejection::Unknown));
    }

    #[test]
    fn uses_are_reported_once_and_to_the_minute() {
        let admin_tokens = AdminTokens::new(vec![token("a", "s", None)]);
        for now in [61_000_000, 62_000_000, 119_999_999] {
            admin_tokens.find(b"tg_a_s", Instant(now)).unwrap();
        }
        assert!(admin_tokens.find(b"tg_a_wrong", Instant(500_000_000)).is_err());
        assert_eq!(admin_tokens.used(), [("a".to_owned(), Instant(60_000_000))]);
        assert_eq!(admin_tokens.used(), []);
    }

    #[test]
    fn creation_and_revocation_take_effect_at_once() {
        let admin_tokens = AdminTokens::default();
        assert!(admin_tokens.is_empty());
        admin_tokens.add(&token("a", "s", None));
        assert!(admin_tokens.find(b"tg_a_s", Instant(1)).is_ok());
        admin_tokens.remove("a");
        assert_eq!(admin_tokens.find(b"tg_a_s", Instant(1)), Err(TokenRejection::Unknown));
    }

    #[test]
    fn a_list_that_was_read_before_a_token_was_made_does_not_remove_it() {
        let admin_tokens = AdminTokens::default();
        let before = time::Instant::now();
        admin_tokens.add(&token("a", "s", None));
        admin_tokens.replace(vec![token("b", "s", None)], before);
        assert!(admin_tokens.find(b"tg_a_s", Instant(1)).is_ok() && admin_tokens.find(b"tg_b_s", Instant(1)).is_ok());
        admin_tokens.replace(vec![], before);
        assert!(admin_tokens.find(b"tg_a_s", Instant(1)).is_ok() && admin_tokens.find(b"tg_b_s", Instant(1)).is_err());
        admin_tokens.replace(vec![], time::Instant::now());
        assert!(admin_tokens.is_empty(), "read after it was made: revoked elsewhere");
        admin_tokens.add(&token("c", "s", None));
        admin_tokens.remove("c");
        admin_tokens.replace(vec![token("c", "s", None)], before);
        assert!(admin_tokens.is_empty(), "revoked here");
    }

    #[test]
    fn a_token_that_was_looked_up_before_the_list_was_read_is_not_added() {
        let admin_tokens = AdminTokens::default();
        let asked_at = time::Instant::now();
        admin_tokens.replace(vec![], time::Instant::now());
        admin_tokens.add_found(&token("a", "s", None), asked_at);
        assert!(admin_tokens.is_empty(), "revoked elsewhere in between");
        admin_tokens.add_found(&token("a", "s", None), time::Instant::now());
        assert_eq!(admin_tokens.len(), 1);
    }
}
