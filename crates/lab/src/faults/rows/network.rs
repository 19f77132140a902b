//! The network between the nodes and their store.

use std::time::Duration;

use super::processes::{charged, send_without_answer};
use crate::fault_proxy::{Direction, FaultProxy, LinkMode};
use crate::faults::rules::{EXACT, TALLY};
use crate::faults::{BackgroundLoad, Lab, RowResult};
use crate::redis::RedisServer;

/// A store behind a fault proxy, and a fleet of two nodes under load.
struct Scene {
    server: RedisServer,
    proxy: FaultProxy,
    load: BackgroundLoad,
}

fn begin(lab: &mut Lab) -> Scene {
    let server = RedisServer::start();
    let proxy = FaultProxy::start(server.port());
    lab.use_rules(&[EXACT, &[TALLY]].concat());
    lab.fleet(&proxy.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    Scene { server, proxy, load }
}

/// Half a second more, then the end; `expect` checks what callers observed.
fn end(mut lab: Lab, scene: Scene, expect: impl FnOnce(&mut Lab)) -> RowResult {
    lab.pause(500);
    lab.stop(scene.load);
    expect(&mut lab);
    lab.expect_alive();
    lab.expect_ttls(&[scene.server.port()]);
    lab.conclude()
}

/// F4, delays below the store timeout: the store decides.
pub fn late_in_time(mut lab: Lab) -> RowResult {
    lab.use_long_timeouts();
    late(lab, &[5, 20], |lab, delay, from, to| {
        let share = lab.store_share(from, to);
        lab.expect(share == 100, || format!("only {share} % by the store at {delay} ms"));
        lab.expect_answers(from, to);
    })
}

/// F4, delays near the default store timeout: for an idle machine.
pub fn late_by_default(lab: Lab) -> RowResult {
    late(lab, &[5, 20], |lab, delay, from, to| {
        let (share, least) = (lab.store_share(from + 50_000_000, to), if delay == 5 { 95 } else { 60 });
        lab.remark(format!("{delay} ms: {share} % by the store"));
        lab.expect(share >= least, || format!("only {share} % by the store at {delay} ms"));
        lab.expect_timely(from, to);
    })
}

/// F4, delays above the store timeout: as if the store were unavailable.
pub fn too_late(lab: Lab) -> RowResult {
    late(lab, &[100, 1000], |lab, _, from, to| lab.expect_outage(from, to))
}

/// Delays replies by these milliseconds, one delay after the other.
fn late(mut lab: Lab, delays: &[u64], expect: impl Fn(&mut Lab, u64, u64, u64)) -> RowResult {
    let scene = begin(&mut lab);
    let mut spans = Vec::new();
    for delay in delays {
        let from = lab.now();
        scene.proxy.set_only(Direction::Replies, LinkMode::Delay(Duration::from_millis(*delay)));
        lab.pause(1200);
        spans.push((*delay, from, lab.now()));
        let waiting = lab.metric("tollgate_redis_waiting");
        lab.expect(waiting <= 2000, || format!("{waiting} checks wait at {delay} ms"));
        scene.proxy.set(LinkMode::Pass);
        lab.expect_return();
        lab.pause(200);
    }
    end(lab, scene, |lab| spans.into_iter().for_each(|(delay, from, to)| expect(lab, delay, from, to)))
}

/// F5, for CI.
pub fn jitter_shortly(lab: Lab) -> RowResult {
    jitter(lab, 4)
}

/// F5.
pub fn jitter_long(lab: Lab) -> RowResult {
    jitter(lab, 60)
}

fn jitter(mut lab: Lab, seconds: u64) -> RowResult {
    let scene = begin(&mut lab);
    let before = lab.metric("tollgate_redis_breaker_openings");
    scene.proxy.set_only(Direction::Replies, LinkMode::Jitter(Duration::from_millis(200)));
    let from = lab.now();
    lab.pause(seconds * 1000);
    let (to, openings) = (lab.now(), lab.metric("tollgate_redis_breaker_openings") - before);
    scene.proxy.set(LinkMode::Pass);
    lab.expect_return();
    end(lab, scene, |lab| expect_few_flaps(lab, from, to, openings))
}

/// Decisions in time, and breakers that do not flap more than four times a minute.
fn expect_few_flaps(lab: &mut Lab, from: u64, to: u64, openings: u64) {
    lab.expect_timely(from, to);
    let p999 = lab.latency(from, to, 0.999);
    lab.expect(p999 <= 75.0, || format!("p99.9 of decisions {p999:.1} ms"));
    let flaps = openings / lab.nodes.len() as u64;
    let minutes = (to - from).div_ceil(60_000_000_000);
    lab.expect(flaps <= 4 * minutes, || format!("{flaps} flaps per node in {minutes} minutes"));
    lab.remark(format!("p99.9 {p999:.1} ms, breakers opened {openings} times"));
}

/// F6.
pub fn replies_lost(mut lab: Lab) -> RowResult {
    let mut scene = begin(&mut lab);
    lab.stop(scene.load);
    let from = lab.now();
    scene.proxy.set_only(Direction::Replies, LinkMode::Drop);
    let sent = send_without_answer(&mut lab, "once") as u64;
    scene.load = lab.load(8);
    lab.pause(1000);
    let to = lab.now();
    scene.proxy.set(LinkMode::Pass);
    lab.expect_return();
    let charged = charged(&mut lab, "once");
    lab.expect((1..=sent).contains(&charged), || format!("E11: {sent} requests without a reply, {charged} charges"));
    lab.remark(format!("{sent} requests without a reply, {charged} of them charged"));
    end(lab, scene, |lab| lab.expect_outage(from, to))
}

/// F7.
pub fn black_hole(mut lab: Lab) -> RowResult {
    let scene = begin(&mut lab);
    let descriptors = lab.nodes[0].descriptors();
    let from = lab.now();
    scene.proxy.set(LinkMode::Drop);
    lab.pause(2500);
    let to = lab.now();
    scene.proxy.set(LinkMode::Pass);
    lab.expect_return();
    let is_back = |lab: &Lab| lab.nodes[0].descriptors() <= descriptors + 3;
    let returned = crate::patience::try_until(Duration::from_secs(5), || is_back(&lab));
    let now = lab.nodes[0].descriptors();
    lab.expect(returned.is_some(), || format!("{now} descriptors, {descriptors} before"));
    end(lab, scene, |lab| lab.expect_outage(from, to))
}

/// F8.
pub fn reset_mid_reply(mut lab: Lab) -> RowResult {
    let scene = begin(&mut lab);
    let from = lab.now();
    for _ in 0..15 {
        scene.proxy.set_only(Direction::Replies, LinkMode::Reset);
        lab.pause(60);
        scene.proxy.set(LinkMode::Pass);
        lab.pause(100);
    }
    let to = lab.now();
    lab.expect_return();
    lab.remark(format!("{} connections in all", scene.proxy.accepted()));
    // `conclude` checks that every answer belongs to its request.
    end(lab, scene, |lab| lab.expect_timely(from, to))
}

/// F9.
pub fn trickle(mut lab: Lab) -> RowResult {
    let scene = begin(&mut lab);
    let from = lab.now();
    scene.proxy.set_only(Direction::Replies, LinkMode::Trickle(1));
    lab.pause(2000);
    let to = lab.now();
    scene.proxy.set(LinkMode::Pass);
    lab.expect_return();
    end(lab, scene, |lab| lab.expect_outage(from, to))
}

/// F10.
pub fn refused(mut lab: Lab) -> RowResult {
    let mut scene = begin(&mut lab);
    let from = lab.now();
    scene.proxy.refuse();
    lab.pause(1500);
    let to = lab.now();
    scene.proxy.admit();
    lab.expect_return();
    // Kill the server behind a proxy that accepts: its accepted connections count the attempts.
    scene.server.kill();
    let (before, gone) = (scene.proxy.accepted(), lab.now());
    lab.pause(3000);
    let attempts = scene.proxy.accepted() - before;
    let most = 20 * 3 * lab.nodes.len() as u64;
    lab.expect(attempts <= most, || format!("{attempts} attempts to connect in 3 s, at most {most}"));
    lab.remark(format!("{attempts} attempts to connect in 3 s by two nodes"));
    scene.server.restart();
    let back = lab.now();
    lab.lost(gone, back);
    lab.expect_return();
    end(lab, scene, |lab| lab.expect_outage(from, to))
}
