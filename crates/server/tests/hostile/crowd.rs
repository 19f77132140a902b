//! Caps on connections: the next one is refused with a message, and admitted once another closes. F53.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tollgate_lab::patience::Watch;
use tollgate_net::NetLimits;

use crate::caller::Caller;
use crate::rig::{GOOD, Rig};

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 1, last))
}

/// Connects and is answered.
async fn guest(rig: &Rig, last: u8) -> Caller {
    let mut caller = Caller::from(address(last), rig.data).await;
    assert_eq!(caller.ask(GOOD).await.status, 200);
    caller
}

/// Connects and is told that there is no room, before it said a word and after.
async fn is_refused(rig: &Rig, last: u8) {
    let mut silent = Caller::from(address(last), rig.data).await;
    let answer = silent.answer().await.unwrap().expect("a refusal");
    assert_eq!((answer.status, silent.rest().await.len()), (503, 0));
    assert!(answer.head.contains("Retry-After: 1\r\n") && answer.body.contains("too_many_connections"), "{answer:?}");
    let mut eager = Caller::from(address(last), rig.data).await;
    let _ = eager.send(GOOD.repeat(3)).await; // may already have been closed
    assert_eq!(eager.rest().await, [503]);
}

/// Comes in, once the server has noticed who left.
async fn comes_in_again(rig: &Rig, last: u8) {
    let watch = Watch::start();
    while watch.elapsed() < Duration::from_secs(20) {
        let mut caller = Caller::from(address(last), rig.data).await;
        if caller.send(GOOD).await.is_ok() && matches!(caller.answer().await, Ok(Some(answer)) if answer.status == 200)
        {
            return;
        }
    }
    panic!("nobody is let in, though there is room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_says_so_and_recovers() {
    let rig = Rig::open(NetLimits { max_connections: 4, ..NetLimits::default() });
    let mut guests = Vec::new();
    for last in 1..=4 {
        guests.push(guest(&rig, last).await);
    }
    is_refused(&rig, 5).await;
    for caller in &mut guests {
        assert_eq!(caller.ask(GOOD).await.status, 200, "who is in stays in");
    }
    guests.pop();
    comes_in_again(&rig, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_cannot_take_all_places() {
    let rig = Rig::open(NetLimits { max_connections_per_address: 3, ..NetLimits::default() });
    let mut crowd = vec![guest(&rig, 1).await, guest(&rig, 1).await, guest(&rig, 1).await];
    is_refused(&rig, 1).await;
    let _neighbour = guest(&rig, 2).await;
    crowd.pop();
    comes_in_again(&rig, 1).await;
}

/// Hundreds that knock at once: each is answered or closed, none is left waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rush_at_a_full_server_is_over_soon() {
    let rig = Rig::open(NetLimits { max_connections: 2, ..NetLimits::default() });
    let (_one, _other) = (guest(&rig, 1).await, guest(&rig, 2).await);
    let mut rush = Vec::new();
    for _ in 0..400 {
        rush.push(Caller::from(address(3), rig.data).await);
    }
    let mut told = 0;
    for caller in &mut rush {
        if let Ok(Some(answer)) = caller.answer().await {
            assert_eq!(answer.status, 503);
            told += 1;
        }
    }
    assert!(told >= 64, "{told} of 400 were told why");
}
