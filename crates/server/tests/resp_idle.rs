//! F53 over RESP, in a process of its own: the memory of tests beside it would be counted, too.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "resp/rig.rs"]
#[allow(dead_code, reason = "shared with the other tests of RESP")]
mod rig;

use tollgate_net::NetLimits;

use crate::rig::Rig;

#[tokio::test]
async fn f53_who_waits_costs_little_and_who_comes_too_late_is_told() {
    let net = NetLimits { max_connections: 2000, max_connections_per_address: 2000, ..NetLimits::default() };
    let rig = Rig::with(|config, _| config.net = net);
    let before = rig.metric("process_resident_memory_bytes").await;
    let mut idle = Vec::new();
    for _ in 0..1900 {
        let mut caller = rig.caller().await;
        caller.says(b"PING\r\n", b"+PONG\r\n").await;
        idle.push(caller);
    }
    let each = (rig.metric("process_resident_memory_bytes").await - before) / 1900.0;
    assert!(each < 32.0 * 1024.0, "{each} bytes each, the caller's side included");
    rig.answers_others().await;
    while idle.len() < 2000 {
        idle.push(rig.caller().await);
    }
    let mut late = rig.caller().await;
    assert_eq!(late.rest().await.unwrap(), b"-ERR max number of clients reached\r\n");
    drop(idle);
}
