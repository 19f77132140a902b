//! F66: a server whose replies are longer than what was asked for. No reply may make this node hold more than 64 KiB
//! beyond the reply that it expects; the connection ends instead. The proxy sends a part of each reply and then stays
//! silent with the connection open, and all timeouts are long: only the bound ends the connection.

use tollgate_core::Span;
use tollgate_lab::redis::RedisServer;
use tollgate_store_redis::RedisConfig;

use crate::proxy::{Mode, Proxy};
use crate::rig::{config, consume, recovered, start, take, until, used, warm};

/// What a reply may have beyond its expected length, and enough for what is expected of one bucket.
const TOO_MANY_BYTES: usize = (64 << 10) + (4 << 10);

/// Longer than any test takes.
const FOR_EVER: Span = Span::from_secs(600);

/// Beginnings of replies that are too long.
fn lies() -> Vec<Vec<u8>> {
    let in_parts = [b"*100\r\n".to_vec(), b"$1000\r\n".iter().chain(&[b'x'; 1000]).chain(b"\r\n").copied().collect()];
    let [header, part] = in_parts;
    vec![
        b"$67108864\r\n".to_vec(),                             // announced, and never sent
        b"*1000000\r\n".to_vec(),                              // as many elements
        [b"+".to_vec(), vec![b'x'; TOO_MANY_BYTES]].concat(),  // a line without an end
        [header, part.repeat(TOO_MANY_BYTES / 1000)].concat(), // elements that are short, one by one
        b"*1\r\n".repeat(20),                                  // aggregates inside each other
    ]
}

fn patient(port: u16) -> RedisConfig {
    RedisConfig { within: FOR_EVER, connect_timeout: FOR_EVER, ..config(port) }
}

#[tokio::test]
async fn f66_a_reply_that_is_too_long_ends_the_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(patient(proxy.port)).await;
    for lie in lies() {
        let before = primary.stats().broken;
        proxy.set(Mode::Lie(lie.clone()));
        // The lie may hit a command of the watch task; the request is then answered, or fails with it.
        if let Err(error) = take(&primary, consume(1), FOR_EVER).await {
            let what = String::from_utf8_lossy(&lie[..lie.len().min(20)]);
            assert!(error.detail.contains("malformed reply"), "{what:?}: {error}");
        }
        until("the connection is given up", || primary.stats().broken > before).await;
        recovered(&primary).await;
        used(&primary, 1).await; // on a new connection
    }
    assert!(used(&primary, 1).await <= lies().len() as u64, "no request was sent twice");
}

#[tokio::test]
async fn f66_a_handshake_is_bounded_too() {
    let server = RedisServer::start();
    for lie in lies() {
        let proxy = Proxy::start(server.port()).await;
        proxy.set(Mode::Lie(lie));
        let primary = start(patient(proxy.port));
        until("another connection is tried", || proxy.accepted() >= 2).await;
        recovered(&primary).await;
    }
}
