//! Sessions: the token of a signed-in operator, sealed into a cookie.
//!
//! The server keeps nothing: a cookie opens on every node of a fleet and after a restart, and there is no table that
//! could grow. The token stays the only authority: each page presents it to the admin API, so a session ends with its
//! token, and at the latest after [`SESSION_SECONDS`].

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate_core::Time;

/// How long a session lasts.
pub const SESSION_SECONDS: u64 = 12 * 3600;
/// Longest cookie that is opened.
const COOKIE_BYTES_MAX: usize = 1024;
const PURPOSE: &[u8] = b"console session";
const ONCE: &[u8] = b"console secret";
/// How long a new secret waits for the page that shows it.
const ONCE_SECONDS: u64 = 60;

/// The session of an operator.
#[derive(Clone)]
pub struct ConsoleSession {
    /// The token that the operator signed in with.
    pub token: String,
    /// Sent with every form: a page of another origin cannot know it.
    pub form_token: String,
}

impl fmt::Debug for ConsoleSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleSession")
    }
}

/// Seals sessions into cookies and opens them.
pub struct SessionSealer {
    key: Option<RandomizedNonceKey>,
    form_key: Key,
    is_secure: bool,
}

impl SessionSealer {
    /// Keyed by a secret that all nodes share. `is_secure`: the console is served over TLS.
    pub fn new(secret: &[u8; 32], is_secure: bool) -> SessionSealer {
        let derive = |purpose: &[u8]| sign(&Key::new(HMAC_SHA256, secret), purpose);
        SessionSealer {
            key: RandomizedNonceKey::new(&AES_256_GCM, derive(PURPOSE).as_ref()).ok(),
            form_key: Key::new(HMAC_SHA256, derive(b"console form").as_ref()),
            is_secure,
        }
    }

    /// `__Host-` binds the cookie to this host and to TLS; browsers refuse the prefix without TLS.
    const fn cookie_name(&self) -> &'static str {
        if self.is_secure { "__Host-tollgate" } else { "tollgate_session" }
    }

    const fn once_name(&self) -> &'static str {
        if self.is_secure { "__Host-tollgate-once" } else { "tollgate_once" }
    }

    /// The value of `Set-Cookie` that begins a session.
    pub fn begin(&self, token: &str, now: Time) -> Option<String> {
        let value = self.seal(PURPOSE, token, seconds(now) + SESSION_SECONDS)?;
        Some(self.cookie(self.cookie_name(), &value, SESSION_SECONDS))
    }

    /// The value of `Set-Cookie` that takes a new secret to the next page: a form that is answered with a page would be sent
    /// again when the page is loaded again.
    pub fn hand_over(&self, secret: &str, now: Time) -> Option<String> {
        let value = self.seal(ONCE, secret, seconds(now) + ONCE_SECONDS)?;
        Some(self.cookie(self.once_name(), &value, ONCE_SECONDS))
    }

    /// The secret that was handed over, and the value of `Set-Cookie` that forgets it.
    pub fn take_over(&self, cookies: &[u8], now: Time) -> Option<(String, String)> {
        let secret = self.unseal(ONCE, value_of(cookies, self.once_name())?, now)?;
        Some((secret, self.cookie(self.once_name(), "", 0)))
    }

    fn seal(&self, purpose: &'static [u8], text: &str, expires_at: u64) -> Option<String> {
        let mut bytes = expires_at.to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        let nonce = self.key.as_ref()?.seal_in_place_append_tag(Aad::from(purpose), &mut bytes).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &bytes].concat()))
    }

    /// The value of `Set-Cookie` that ends the session of a browser.
    pub fn end(&self) -> String {
        self.cookie(self.cookie_name(), "", 0)
    }

    fn cookie(&self, name: &str, value: &str, seconds: u64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }

    /// The session in the value of a `Cookie` field, if it is ours and has not ended.
    pub fn open(&self, cookies: &[u8], now: Time) -> Option<ConsoleSession> {
        let value = value_of(cookies, self.cookie_name())?;
        let token = self.unseal(PURPOSE, value, now)?;
        let form_token = URL_SAFE_NO_PAD.encode(sign(&self.form_key, value.as_bytes()).as_ref());
        Some(ConsoleSession { token, form_token })
    }

    fn unseal(&self, purpose: &'static [u8], value: &str, now: Time) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(Some(value).filter(|value| value.len() <= COOKIE_BYTES_MAX)?).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.as_ref()?.open_in_place(nonce, Aad::from(purpose), &mut sealed).ok()?;
        let (expires_at, token) = opened.split_first_chunk::<8>()?;
        let is_over = u64::from_be_bytes(*expires_at) <= seconds(now);
        if is_over { None } else { String::from_utf8(token.to_vec()).ok() }
    }
}

/// The value of a cookie.
fn value_of<'a>(cookies: &'a [u8], name: &str) -> Option<&'a str> {
    let mut pairs = str::from_utf8(cookies).ok()?.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

impl ConsoleSession {
    /// True if a form was made for this session.
    pub fn made(&self, form_token: &str) -> bool {
        verify_slices_are_equal(self.form_token.as_bytes(), form_token.as_bytes()).is_ok()
    }
}

fn seconds(now: Time) -> u64 {
    now.nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_000_000);

    fn cookie_of(set_cookie: &str) -> Vec<u8> {
        set_cookie.split(';').next().unwrap().as_bytes().to_vec()
    }

    #[test]
    fn a_session_opens_until_it_ends_and_on_every_node() {
        let sealer = SessionSealer::new(&[7; 32], false);
        let cookie = cookie_of(&sealer.begin("tg_abc_def", NOW).unwrap());
        assert!(!String::from_utf8_lossy(&cookie).contains("abc"));
        for node in [sealer, SessionSealer::new(&[7; 32], false)] {
            let session = node.open(&cookie, NOW).unwrap();
            assert_eq!(session.token, "tg_abc_def");
            assert!(session.made(&session.form_token) && !session.made("") && !session.made("x"));
            assert!(node.open(&cookie, Time::from_secs(1_000_000 + SESSION_SECONDS - 1)).is_some());
            assert!(node.open(&cookie, Time::from_secs(1_000_000 + SESSION_SECONDS)).is_none());
        }
        assert!(SessionSealer::new(&[8; 32], false).open(&cookie, NOW).is_none(), "another secret");
    }

    #[test]
    fn made_up_cookies_open_nothing() {
        let sealer = SessionSealer::new(&[7; 32], false);
        let long = format!("tollgate_session={}", "A".repeat(5000));
        for cookie in ["", "tollgate_session", "tollgate_session=", "tollgate_session=AAAA", "x=y", long.as_str()] {
            assert!(sealer.open(cookie.as_bytes(), NOW).is_none(), "{cookie:.40}");
        }
    }

    #[test]
    fn cookies_are_for_this_site_alone() {
        let plain = SessionSealer::new(&[7; 32], false).begin("tg", NOW).unwrap();
        assert!(plain.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{plain}");
        let sealer = SessionSealer::new(&[7; 32], true);
        let secure = sealer.begin("tg", NOW).unwrap();
        assert!(secure.starts_with("__Host-tollgate=") && secure.ends_with("; Secure"), "{secure}");
        assert!(sealer.open(&cookie_of(&secure), NOW).is_some());
        assert!(sealer.open(&cookie_of(&plain), NOW).is_none());
        assert!(sealer.end().starts_with("__Host-tollgate=; Path=/; Max-Age=0;"));
    }

    #[test]
    fn a_secret_is_handed_over_for_a_minute_and_is_no_session() {
        let sealer = SessionSealer::new(&[7; 32], false);
        let cookie = cookie_of(&sealer.hand_over("tg_new", NOW).unwrap());
        let (secret, forget) = sealer.take_over(&cookie, NOW).unwrap();
        assert_eq!(secret, "tg_new");
        assert!(forget.starts_with("tollgate_once=; Path=/; Max-Age=0;"));
        assert!(sealer.take_over(&cookie, Time::from_secs(1_000_060)).is_none());
        let renamed = String::from_utf8(cookie).unwrap().replace("tollgate_once", "tollgate_session");
        assert!(sealer.open(renamed.as_bytes(), NOW).is_none());
    }

    #[test]
    fn every_session_has_a_form_token_of_its_own() {
        let sealer = SessionSealer::new(&[7; 32], false);
        let open = |_| sealer.open(&cookie_of(&sealer.begin("tg", NOW).unwrap()), NOW).unwrap().form_token;
        assert_ne!(open(1), open(2));
    }
}
