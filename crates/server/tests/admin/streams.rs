//! Streams of events: capped per token, and as long as their token.

use std::time::Duration;

use tokio::net::TcpStream;
use tollgate_control::record::Role;
use tollgate_core::Span;
use tollgate_lab::patience::eventually;

use crate::rig::Rig;
use crate::traffic::read_until;

/// As the API has it.
const PER_TOKEN: usize = 32;

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_so_many_streams_and_the_next_is_refused_by_name() {
    let rig = Rig::start().await;
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..PER_TOKEN {
        let (head, stream) = rig.stream("/v1/events", &bearer(&rig.viewer)).await;
        head.expect(200);
        streams.push(stream);
    }
    let refused = rig.call_as(&rig.viewer, "GET", "/v1/events", "", "").await.expect(429);
    assert_eq!((refused.code().as_str(), refused.field("retry-after")), ("too_many_streams_of_token", Some("10")));
    let refused = rig.head_of("/v1/events", &bearer(&rig.viewer)).await.expect(429);
    assert_eq!(refused.field("connection"), Some("close"), "a refused client keeps no connection");
    rig.call_as(&rig.viewer, "GET", "/v1/status", "", "").await.expect(200);
    rig.head_of("/v1/events", &bearer(&rig.operator)).await.expect(200);

    drop(streams.pop());
    eventually("a closed stream makes room", Duration::from_secs(20), async || {
        // Each second a tick is written, which a closed connection does not take.
        rig.clock.advance(Span::SECOND);
        rig.traffic.collect();
        let head = rig.head_of("/v1/events", &bearer(&rig.viewer)).await;
        Some(head).filter(|head| head.status == 200)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_lasts_as_long_as_its_token() {
    let rig = Rig::start().await;
    let ends = tollgate_control::Instant(rig.now().0 + 60_000_000);
    let token = rig.token_until(Role::Viewer, None, Some(ends)).await;
    let (head, mut stream) = rig.stream("/v1/events", &bearer(&token)).await;
    head.expect(200);
    for _ in 0..3 {
        rig.clock.advance(Span::from_secs(11));
        rig.traffic.collect();
        read_until(&mut stream, "event: tick").await;
    }
    rig.clock.advance(Span::from_secs(60));
    rig.traffic.collect();
    let rest = read_until(&mut stream, "0\r\n\r\n").await;
    assert!(!rest.contains("event: tick"), "the token has expired: {rest}");
}
