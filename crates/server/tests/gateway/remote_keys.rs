//! Keys of tokens behind a URL: fetched, kept while their server fails, refreshed, and changed by their issuer.

use std::time::Duration;

use tollgate_gateway::fetch;
use tollgate_identity::JwtAlgorithm::{EdDsa, Es256};
use tollgate_identity::RemoteKeys;

use crate::callers::{IdentityRig, leap};
use crate::issuer::{Issuer, bearer};
use crate::key_server::{KeyAnswer, KeyServer, status};
use crate::rig::{until, within};
use crate::upstreams::closed_port;

/// The least time between two fetches that tokens with unknown keys cause, and the interval of the routes below.
const MINUTE: Duration = Duration::from_secs(61);
/// An interval that no test waits for.
const NEVER: &str = "7d";

async fn start(url: &str, refresh: &str) -> IdentityRig {
    let entry = format!("jwks_url: \"{url}\", algorithms: [EdDSA, ES256], audience: api, refresh: {refresh}");
    IdentityRig::start(&format!("identity: [{{ jwt: {{ {entry} }} }}]"), &[]).await
}

/// Lets minutes pass until this holds. A minute that begins while an answer is on its way ends the wait for it, so one is
/// not always enough.
async fn leap_until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        leap(MINUTE).await;
        if holds().await {
            return;
        }
    }
    panic!("it does not hold after a thousand minutes");
}

#[tokio::test]
async fn keys_are_fetched_once_and_outlive_their_server() {
    let issuer = Issuer::new("one");
    let server = KeyServer::start(KeyAnswer::Keys(issuer.jwks())).await;
    let id = start(&server.url(), NEVER).await;
    until(async || id.is_own(&bearer(&issuer.token(EdDsa, "first"))).await).await;
    for user in 0..20 {
        assert!(id.is_own(&bearer(&issuer.token(Es256, &format!("user-{user}")))).await);
    }
    assert_eq!(server.asked(), 1, "tokens with known keys cause no fetch");
    let head = server.heads().remove(0);
    assert!(head.starts_with("GET /keys?tenant=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {}\r\n", server.address)), "{head}");
    drop(server);
    leap(10 * MINUTE).await;
    assert!(id.is_own(&bearer(&issuer.token(EdDsa, "later"))).await);
}

#[tokio::test]
async fn a_key_that_its_issuer_has_changed_is_found_and_the_old_one_forgotten() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let server = KeyServer::start(KeyAnswer::Keys(old.jwks())).await;
    let id = start(&server.url(), NEVER).await;
    let (before, after) = (bearer(&old.token(EdDsa, "42")), bearer(&new.token(EdDsa, "42")));
    until(async || id.is_own(&before).await).await;
    server.answers(KeyAnswer::Keys(new.jwks()));
    for _ in 0..20 {
        assert!(!id.is_own(&after).await, "within a minute of the last fetch, unknown keys cause none");
    }
    assert_eq!(server.asked(), 1);
    leap(MINUTE).await;
    until(async || id.is_own(&after).await).await;
    assert_eq!(server.asked(), 2, "one fetch for a storm of tokens");
    assert!(!id.is_own(&before).await, "the old key is not in the set: what it verified is not believed");
}

#[tokio::test]
async fn keys_are_read_again_by_interval_and_no_answer_replaces_good_ones_by_none() {
    let (first, second) = (Issuer::new("one"), Issuer::new("one"));
    let server = KeyServer::start(KeyAnswer::Keys(first.jwks())).await;
    let elsewhere = KeyServer::start(KeyAnswer::Keys(second.jwks())).await;
    let id = start(&server.url(), "1m").await;
    let token = |user: &str| bearer(&first.token(Es256, user));
    until(async || id.is_own(&token("start")).await).await;
    let moved = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", elsewhere.url());
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
    let empty = "{\"keys\":[]}";
    let bad = [
        status("500 Internal Server Error"),
        status("204 No Content"),
        KeyAnswer::Bytes(moved.into_bytes()),
        KeyAnswer::Bytes(page.into()),
        KeyAnswer::Keys(empty.to_owned()),
        KeyAnswer::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{}", second.jwks()).into_bytes()),
        KeyAnswer::Bytes(b"no HTTP at all\r\n\r\n".to_vec()),
        KeyAnswer::Bytes(Vec::new()),
        KeyAnswer::Endless("{\"keys\":[ "),
    ];
    for (round, answer) in bad.into_iter().enumerate() {
        let asked = server.asked();
        server.answers(answer);
        leap_until(async || {
            id.left("").await;
            server.asked() > asked
        })
        .await;
        assert!(id.is_own(&token(&format!("round-{round}"))).await, "{round}: the last good keys stay in force");
    }
    assert_eq!(elsewhere.asked(), 0, "redirects are not followed");
    server.answers(KeyAnswer::Keys(second.jwks()));
    let fresh = bearer(&second.token(Es256, "fresh"));
    leap_until(async || id.is_own(&fresh).await).await;
    assert!(!id.is_own(&token("start")).await);
}

#[tokio::test]
async fn a_gateway_starts_without_the_server_of_keys_and_finds_it_later() {
    let issuer = Issuer::new("one");
    let (socket, url) = closed_port();
    let id = start(&format!("{url}/keys"), NEVER).await;
    let fields = bearer(&issuer.token(EdDsa, "42"));
    for _ in 0..5 {
        assert!(!id.is_own(&fields).await, "limited by its address until it can be verified");
    }
    let server = KeyServer::on(socket.listen(16).unwrap(), KeyAnswer::Silence);
    until(async || server.asked() > 0).await;
    server.answers(KeyAnswer::Keys(issuer.jwks()));
    // It gives up on the silent answer, and asks again after its pause.
    leap_until(async || id.is_own(&fields).await).await;
}

/// Loading the routes again must not make the users of a fetched key set strangers.
#[tokio::test]
async fn routes_that_are_loaded_again_keep_the_keys() {
    let issuer = Issuer::new("one");
    let server = KeyServer::start(KeyAnswer::Keys(issuer.jwks())).await;
    let id = start(&server.url(), NEVER).await;
    until(async || id.is_own(&bearer(&issuer.token(EdDsa, "first"))).await).await;
    server.answers(KeyAnswer::Silence);
    let path = id.rig.dir.path().join("routes.yaml");
    let routes = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{routes}trusted_proxies: [192.0.2.1]\n")).unwrap();
    until(async || server.asked() == 2).await; // what is loaded asks at once
    assert!(id.is_own(&bearer(&issuer.token(EdDsa, "second"))).await);
}

const MAX: usize = RemoteKeys::BODY_BYTES_MAX;

async fn fetched(answer: KeyAnswer) -> Result<String, String> {
    let server = KeyServer::start(answer).await;
    let fetched = within(fetch(server.url(), MAX)).await;
    fetched.map(|body| String::from_utf8_lossy(&body).into_owned()).map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn a_document_is_fetched_whole_or_not_at_all() {
    let bytes = |text: &str| KeyAnswer::Bytes(text.as_bytes().to_vec());
    assert_eq!(fetched(KeyAnswer::Keys("{}".to_owned())).await.unwrap(), "{}");
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    assert_eq!(fetched(bytes(chunks)).await.unwrap(), "abc");
    assert_eq!(fetched(KeyAnswer::Keys("x".repeat(MAX))).await.unwrap().len(), MAX);
    assert!(fetched(KeyAnswer::Keys("x".repeat(MAX + 1))).await.is_err());
    for (answer, why) in [
        (status("404 Not Found"), "it answered 404"),
        (status("301 Moved Permanently"), "it answered 301"),
        (KeyAnswer::Endless("more and more "), ""),
        (bytes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), ""),
        (bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), ""),
        (bytes("nonsense\r\n\r\n"), ""),
        (bytes(""), ""),
    ] {
        let error = fetched(answer).await.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let (_socket, url) = closed_port();
    assert!(within(fetch(url, MAX)).await.is_err());
    for url in ["", "/keys", "keys.json", "ftp://127.0.0.1/keys", "http://", "http://user:secret@127.0.0.1/keys"] {
        let error = fetch(url.to_owned(), MAX).await.unwrap_err();
        assert!(!format!("{error:#}").contains("secret"), "{error:#}");
    }
}

/// A server that answers in place of the issuer would make the keys: a certificate of no known authority is refused.
#[tokio::test]
async fn keys_over_tls_come_from_a_server_with_a_trusted_certificate() {
    let server =
        crate::tls_server::TlsServer::start(&crate::tls_server::certificate("127.0.0.1"), &[b"http/1.1"]).await;
    let error = within(fetch(format!("{}/keys", server.url()), MAX)).await.unwrap_err();
    assert_eq!(server.seen().len(), 0, "{error:#}");
}
