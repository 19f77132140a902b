//! Failover by Sentinels.

use std::time::Duration;

use tollgate_testkit::checker::AdmissionMode;

use crate::faults::{BackgroundLoad, Lab, RowResult};
use crate::redis::Sentinels;

fn begin(lab: &mut Lab) -> (Sentinels, BackgroundLoad) {
    let sentinels = Sentinels::start();
    lab.fleet(&sentinels.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    (sentinels, load)
}

/// Waits for the other server to become the primary, and for the nodes to find it.
fn fail_over(lab: &mut Lab, sentinels: &Sentinels, from: u64) {
    let took = sentinels.wait_for_failover_from(0);
    lab.remark(format!("failover after {} ms", took.as_millis()));
    lab.expect_return();
    let to = lab.now();
    lab.lost(from, to);
    lab.expect_metric("tollgate_store_epoch_changes", 1, Duration::from_millis(1500));
}

/// F14.
pub fn failover(mut lab: Lab) -> RowResult {
    let (sentinels, load) = begin(&mut lab);
    let from = lab.now();
    sentinels.servers[0].stop();
    fail_over(&mut lab, &sentinels, from);
    lab.pause(1000);
    let to = lab.now();
    lab.stop(load);
    let fallen = lab.modes(from, to).get(&Some(AdmissionMode::Fallback)).copied().unwrap_or(0);
    lab.expect(fallen > 0, || "no request was answered by policy during the failover".to_owned());
    lab.expect_timely(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[sentinels.servers[1].port()]);
    lab.conclude()
}

/// F15.
pub fn split_brain(mut lab: Lab) -> RowResult {
    let (sentinels, load) = begin(&mut lab);
    let from = lab.now();
    sentinels.servers[0].stop();
    fail_over(&mut lab, &sentinels, from);
    let before = sentinels.servers[1].client().figure("stats", "total_commands_processed");
    sentinels.servers[0].cont();
    lab.pause(4000);
    lab.stop(load);
    // No node returns to the old primary, which accepts writes until the Sentinels demote it.
    let after = sentinels.servers[1].client().figure("stats", "total_commands_processed");
    lab.expect(after > before, || "the new primary is not asked".to_owned());
    let to = lab.now();
    lab.expect_timely(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[sentinels.servers[1].port()]);
    lab.conclude()
}

/// F16.
pub fn stale_replica(mut lab: Lab) -> RowResult {
    let (mut sentinels, load) = begin(&mut lab);
    let from = lab.now();
    sentinels.cut_replication(0);
    lab.pause(1000);
    sentinels.servers[0].kill();
    fail_over(&mut lab, &sentinels, from);
    lab.pause(1000);
    let to = lab.now();
    lab.stop(load);
    lab.expect_timely(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[sentinels.servers[1].port()]);
    lab.conclude()
}
