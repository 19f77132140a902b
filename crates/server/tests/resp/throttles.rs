//! What the originals do wrong, done right: one test each. And what they do right, done alike.

use tollgate_core::Span;

use crate::rig::{Rig, command, five};

fn throttle(words: &str) -> Vec<u8> {
    command(&words.split(' ').collect::<Vec<_>>())
}

#[tokio::test]
async fn throttle_orders_its_fields_as_throttlecrab() {
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    caller.says(&throttle("THROTTLE k 2 1 10"), &five([1, 2, 1, 10, 0])).await;
    caller.says(&throttle("THROTTLE k 2 1 10"), &five([1, 2, 0, 20, 0])).await;
    caller.says(&throttle("throttle k 2 1 10 1"), &five([0, 2, 0, 20, 10])).await;
    caller.says(&throttle("THROTTLE k 2 1 10 3"), &five([0, 2, 0, 20, -1])).await;
    caller.says(&throttle("THROTTLE k 2 1 10 0"), &five([1, 2, 0, 20, 0])).await;
    clock.advance(Span::from_millis(9_999));
    // Rounded up: waiting for the given time is enough.
    caller.says(&throttle("THROTTLE k 2 1 10"), &five([0, 2, 0, 11, 1])).await;
    clock.advance(Span::from_millis(1));
    caller.says(&throttle("THROTTLE k 2 1 10"), &five([1, 2, 0, 20, 0])).await;
}

/// throttlecrab admits 14 here.
#[tokio::test]
async fn a_burst_after_idleness_never_exceeds_the_capacity() {
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    for (name, capacity) in [("THROTTLE idle", 10), ("CL.THROTTLE idle2", 11)] {
        let sent = throttle(&format!("{name} 10 1 1"));
        caller.send(&sent).await;
        caller.reply().await;
        clock.advance(Span::from_secs(5));
        let mut admitted = 0;
        for _ in 0..20 {
            caller.send(&sent).await;
            let reply = caller.reply().await;
            admitted += i32::from(reply.starts_with(if name.starts_with('T') { "*5\r\n:1" } else { "*5\r\n:0" }));
        }
        assert_eq!(admitted, capacity, "{name}");
    }
}

/// redis-cell tells of 2^63 − 1 left here.
#[tokio::test]
async fn rates_above_a_million_stay_right() {
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    caller.says(&throttle("CL.THROTTLE fast 4 1000000000 1 3"), &five([0, 5, 2, -1, 1])).await;
    caller.says(&throttle("CL.THROTTLE fast 4 1000000000 1 3"), &five([1, 5, 2, 1, 1])).await;
    clock.advance(Span::from_nanos(1));
    caller.says(&throttle("CL.THROTTLE fast 4 1000000000 1 3"), &five([0, 5, 0, -1, 1])).await;
    caller.says(&throttle("CL.THROTTLE five 99 5000000 1 100"), &five([0, 100, 0, -1, 1])).await;
    clock.advance(Span::from_nanos(2_000));
    caller.says(&throttle("CL.THROTTLE five 99 5000000 1 10"), &five([0, 100, 0, -1, 1])).await;
    caller.says(&throttle("CL.THROTTLE five 99 5000000 1"), &five([1, 100, 0, 1, 1])).await;
}

#[tokio::test]
async fn numbers_that_make_no_limit_are_errors() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    let usage = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
    let zero = "Zero rates are not supported";
    let negative = "Negative values are not supported";
    for (numbers, said) in [
        ("0 0 60 1", zero),
        ("0 1 0 1", zero),
        ("0 2000000000 1 1", zero),
        ("-1 1 1 1", negative),
        ("1 -1 1 1", negative),
        ("1 1 -1 1", negative),
        ("1 1 1 -1", negative),
        ("1 1 1 -9223372036854775808", negative),
        ("abc 1 1 1", "Couldn't parse as integer: abc"),
        ("1 1.5 1 1", "Couldn't parse as integer: 1.5"),
        ("1 1 9223372036854775808 1", "Couldn't parse as integer: 9223372036854775808"),
        ("1 1 1 -9223372036854775809", "Couldn't parse as integer: -9223372036854775809"),
        ("9223372036854775807 1 1", "A full bucket would last longer than 292 years"),
        ("1 1 9223372036854775807", "A full bucket would last longer than 292 years"),
        ("1 1", usage),
        ("1 1 1 1 1", usage),
    ] {
        let expected = format!("-ERR Cell error: Store error: {said}\r\n");
        caller.says(&throttle(&format!("CL.THROTTLE k {numbers}")), expected.as_bytes()).await;
    }
    for (numbers, said) in [
        ("0 1 1", "invalid max_burst"),
        ("x 1 1", "invalid max_burst"),
        ("1 0 1", "invalid count_per_period"),
        ("1 1 -1", "invalid period"),
        ("1 1 1 -1", "invalid quantity"),
        ("1 2000000000 1", "invalid count_per_period: more than one per nanosecond"),
        ("1 1", "wrong number of arguments for 'throttle' command"),
    ] {
        caller.says(&throttle(&format!("THROTTLE k {numbers}")), format!("-ERR {said}\r\n").as_bytes()).await;
    }
    caller.says(&throttle("CL.THROTTLE k 15 30 60"), &five([0, 16, 15, -1, 2])).await;
}

#[tokio::test]
async fn the_largest_numbers_are_exact() {
    let (rig, _clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    let most = i64::MAX;
    caller.says(&throttle(&format!("CL.THROTTLE a 0 {most} {most}")), &five([0, 1, 0, -1, 1])).await;
    caller.says(&throttle("CL.THROTTLE b 0 1 9223372036"), &five([0, 1, 0, -1, 9_223_372_036])).await;
    caller.says(&throttle("CL.THROTTLE b 0 1 9223372036"), &five([1, 1, 0, 9_223_372_036, 9_223_372_036])).await;
    caller.says(&throttle(&format!("CL.THROTTLE c 9 1 1 {most}")), &five([1, 10, 10, -1, 0])).await;
}

#[tokio::test]
async fn other_numbers_find_the_time_that_is_owed() {
    let (rig, _clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    caller.says(&throttle("CL.THROTTLE k 9 1 10 10"), &five([0, 10, 0, -1, 100])).await;
    caller.says(&throttle("CL.THROTTLE k 0 1 1 0"), &five([0, 1, 0, -1, 1])).await; // who reads is never refused
    caller.says(&throttle("CL.THROTTLE k 199 1 1 1"), &five([0, 200, 99, -1, 101])).await;
    caller.says(&throttle("THROTTLE k 5 1 1 1"), &five([0, 5, 0, 5, 1])).await; // back to one full bucket
    caller.says(&throttle("DEL k other"), b":2\r\n").await;
    caller.says(&throttle("CL.THROTTLE k 9 1 10 10"), &five([0, 10, 0, -1, 100])).await;
}

#[tokio::test]
async fn a_key_that_is_read_is_not_made() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    caller.says(&throttle("CL.THROTTLE read 4 1 1 0"), &five([0, 5, 5, -1, 0])).await;
    assert_eq!(rig.metric("tollgate_keys").await, 0.0);
    caller.says(&throttle("CL.THROTTLE read 4 1 60 1"), &five([0, 5, 4, -1, 60])).await;
    assert_eq!(rig.metric("tollgate_keys").await, 1.0);
    assert_eq!(rig.metric("tollgate_resp_commands_total{command=\"cl.throttle\"}").await, 2.0);
    assert_eq!(rig.metric("tollgate_resp_throttled_total{outcome=\"allowed\"}").await, 2.0);
}
