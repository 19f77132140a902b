//! A key set behind a URL, on a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::RemoteKeys;
use super::*;

/// A server of key sets: what it answers, and how often it was asked.
#[derive(Default)]
struct KeyServer {
    body: parking_lot::Mutex<Option<String>>,
    asked: AtomicUsize,
}

impl KeyServer {
    async fn fetch(&self) -> Result<String, &'static str> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.body.lock().clone().ok_or("502 Bad Gateway")
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_refreshed_by_interval_and_the_last_good_ones_stay() {
    let (issuer, rotated) = (Issuer::new(), Issuer::new());
    let server = Arc::new(KeyServer::default());
    let url = JwtKeySpec::JwksUrl { url: "https://login.example.com/keys".to_owned(), refresh: Span::from_secs(600) };
    let verifier = JwtVerifier::load(spec(url, &[JwtAlgorithm::Es256]), std::path::Path::new("")).unwrap();
    let remote = verifier.remote_keys().unwrap().clone();
    let token = issuer.token(JwtAlgorithm::Es256, &claims());
    assert_eq!(verify(&verifier, &token), Err(CredentialFailure::UnknownSigningKey), "nothing was fetched yet");
    let (follower, asked) = (remote.clone(), server.clone());
    let following = tokio::spawn(async move {
        follower
            .follow(|url| {
                assert_eq!(url, "https://login.example.com/keys");
                let server = asked.clone();
                async move { server.fetch().await }
            })
            .await;
    });
    settle().await;
    assert!(!remote.is_ready());
    *server.body.lock() = Some(issuer.jwks().to_string());
    tokio::time::sleep(Duration::from_secs(2)).await;
    settle().await;
    assert!(remote.is_ready() && verify(&verifier, &token).is_ok(), "a failed fetch is tried again");

    // A set that cannot be used does not replace one that can.
    for broken in [None, Some("<html>".to_owned()), Some("{\"keys\":[]}".to_owned())] {
        *server.body.lock() = broken;
        tokio::time::sleep(Duration::from_secs(1300)).await;
        settle().await;
        assert!(verify(&verifier, &token).is_ok());
    }

    // With other keys, what the old ones verified is verified again.
    *server.body.lock() = Some(rotated.jwks().to_string());
    tokio::time::sleep(Duration::from_secs(700)).await;
    settle().await;
    assert_eq!(verify(&verifier, &token), Err(CredentialFailure::BadSignature));
    assert!(verify(&verifier, &rotated.token(JwtAlgorithm::Es256, &claims())).is_ok());
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_unknown_keys_fetches_once_a_minute() {
    let issuer = Issuer::new();
    let server = Arc::new(KeyServer::default());
    *server.body.lock() = Some(issuer.jwks().to_string());
    let url =
        JwtKeySpec::JwksUrl { url: "https://login.example.com/keys".to_owned(), refresh: Span::from_secs(86_400) };
    let verifier = JwtVerifier::load(spec(url, &[JwtAlgorithm::Es256]), std::path::Path::new("")).unwrap();
    let remote: Arc<RemoteKeys> = verifier.remote_keys().unwrap().clone();
    let asked = server.clone();
    let following = tokio::spawn(async move {
        remote
            .follow(|_| {
                let server = asked.clone();
                async move { server.fetch().await }
            })
            .await;
    });
    settle().await;
    assert_eq!(server.asked(), 1);
    for second in 0..600 {
        let header = json!({ "alg": "ES256", "kid": format!("unknown-{second}") });
        let token = issuer.token_with(JwtAlgorithm::Es256, &header, &claims());
        assert_eq!(verify(&verifier, &token), Err(CredentialFailure::UnknownSigningKey));
        tokio::time::sleep(Duration::from_secs(1)).await;
        settle().await;
    }
    assert!((9..=11).contains(&server.asked()), "{}", server.asked());
    following.abort();
}

#[tokio::test]
async fn a_configuration_that_is_loaded_again_keeps_the_keys_of_the_same_place() {
    let issuer = Issuer::new();
    let load = |url: &str| {
        let url = JwtKeySpec::JwksUrl { url: url.to_owned(), refresh: Span::from_secs(600) };
        JwtVerifier::load(spec(url, &[JwtAlgorithm::Es256]), std::path::Path::new("")).unwrap()
    };
    let [before, same, other] =
        ["https://a.example/keys", "https://a.example/keys", "https://b.example/keys"].map(load);
    let keys = before.remote_keys().unwrap();
    keys.offer(issuer.jwks().to_string().as_bytes()).unwrap();
    for verifier in [&same, &other] {
        verifier.remote_keys().unwrap().adopt(keys);
    }
    let token = issuer.token(JwtAlgorithm::Es256, &claims());
    assert!(verify(&same, &token).is_ok());
    assert_eq!(verify(&other, &token), Err(CredentialFailure::UnknownSigningKey));
}
