//! Clients that people have: `ws` for WebSocket, curl over every version of HTTP. What is missing is named, and
//! script/setup installs it.

use std::process::Command;

use rcgen::generate_simple_self_signed;
use tollgate_lab::program;

use crate::forwarding::in_flight;
use crate::rig::{Rig, until};
use crate::servers::{HyperApi, NodeApi, PACKAGES};

const WEBSOCKET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gateway/clients/websocket.js");
const SLOTS: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 50, slot_ttl: 1h } }]\n";

/// Runs a program to its end, apart from the threads that serve it; returns what it printed.
async fn run(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program::named(name));
    command.args(arguments).env("NODE_PATH", PACKAGES);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {arguments:?}: {out}{err}");
    out.into_owned()
}

#[tokio::test]
async fn websocket_by_ws_with_and_without_compression() {
    let api = NodeApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    assert_eq!(run("node", &[WEBSOCKET, &rig.gateway.port().to_string()]).await, "ok\n");
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
    until(async || rig.get("/x").await.field("Ratelimit").is_some_and(|left| left.contains("r=49"))).await;
    // 22 sessions said goodbye, one was torn down, and the server ended five for what it was sent.
    let seen = api.seen(28).await;
    let closed = |code: &str| seen.iter().filter(|seen| **seen == format!("socket closed {code}")).count();
    assert_eq!((closed("4001"), closed("1006")), (22, 1 + 4), "{seen:?}");
}

#[tokio::test]
async fn curl_over_every_version_of_http() {
    let api = HyperApi::start().await;
    let plain = Rig::start(SLOTS, &api.url());
    let pair = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Rig::with(SLOTS, |config, dir| {
        config.gateway.upstream = vec![api.url()];
        for (name, text) in [("cert.pem", pair.cert.pem()), ("key.pem", pair.signing_key.serialize_pem())] {
            std::fs::write(dir.join(name), text).unwrap();
        }
        (config.tls_cert, config.tls_key) = (Some(dir.join("cert.pem")), Some(dir.join("key.pem")));
    });
    let ca = tls.dir.path().join("cert.pem");
    let (http, https) = (format!("http://{}/x", plain.gateway), format!("https://localhost:{}/x", tls.gateway.port()));
    for (version, option, url) in [
        ("1.1", "--http1.1", &http),
        ("1.1", "--http2", &http), // offers h2c; the gateway stays with what it was asked in
        ("2", "--http2-prior-knowledge", &http),
        ("1.1", "--http1.1", &https),
        ("2", "--http2", &https),
    ] {
        let common =
            ["-sS", "-m", "30", option, "--cacert", ca.to_str().unwrap(), "-w", " %{http_version} %{http_code}"];
        let got = run("curl", &[&common[..], &[url]].concat()).await;
        assert_eq!(got, format!("from hyper {version} 200"), "{option} {url}");
        let posted = run("curl", &[&common[..], &["--data-binary", "hello", url]].concat()).await;
        assert_eq!(posted, format!("from hyper {version} 200"), "{option} {url}");
        let seen = api.seen(2).await;
        assert!(seen[0].starts_with("GET /x HTTP/1.1\r\n"), "{seen:?}");
        assert!(seen[1].starts_with("POST /x HTTP/1.1\r\n") && seen[1].ends_with("\r\n\r\nhello"), "{seen:?}");
    }
}
