//! Redis Clusters that lose nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tollgate_testkit::checker::AdmissionMode;

use crate::faults::{BackgroundLoad, Lab, LoadProfile, LoadRequest, RowResult};
use crate::redis::{self, RedisCluster};

const MILLI: u64 = 1_000_000;
/// Keys of the load: enough for all shards.
const KEYS: usize = 96;
/// A slot of the shard that fails.
const SLOT: u16 = 0;

pub(super) fn begin(lab: &mut Lab, cluster: &RedisCluster) -> BackgroundLoad {
    lab.fleet(&cluster.url(), 2);
    let names: Vec<&str> = crate::faults::rules::EXACT.iter().map(|rule| rule.name).collect();
    let load = lab.load_as(&LoadProfile {
        callers: 12,
        pace: Duration::from_millis(1),
        script: Arc::new(move |caller, turn| {
            let turn = turn as usize;
            let key = (caller + turn / names.len()) % KEYS;
            LoadRequest::new(names[turn % names.len()], &format!("k{key}"))
        }),
    });
    lab.pause(1000);
    load
}

fn ports(cluster: &RedisCluster) -> Vec<u16> {
    cluster.nodes.iter().map(redis::RedisServer::port).collect()
}

/// F17. The other shards stay available only without `cluster-require-full-coverage`.
pub fn primary_killed(mut lab: Lab) -> RowResult {
    let plan = redis::RedisOptions::default().with(&["--cluster-require-full-coverage", "no"]);
    let mut cluster = RedisCluster::start_as(&plan);
    let load = begin(&mut lab, &cluster);
    let from = lab.now();
    let owner = cluster.primary_of(SLOT);
    cluster.nodes[owner].kill();
    let took = cluster.wait_for_failover(SLOT, owner);
    let to = lab.now();
    lab.remark(format!("failover after {} ms", took.as_millis()));
    lab.expect_return();
    let back = lab.now();
    lab.lost(from, back);
    lab.pause(1000);
    lab.stop(load);
    let answered = |mode: AdmissionMode| -> BTreeSet<String> {
        let observations = lab.between(from + 300 * MILLI, to).filter(|observation| observation.mode == Some(mode));
        observations.map(|observation| observation.key.clone()).collect()
    };
    let (stored, fallen) = (answered(AdmissionMode::Store), answered(AdmissionMode::Fallback));
    let untouched = stored.difference(&fallen).count();
    lab.expect(!fallen.is_empty(), || "no key lost its shard".to_owned());
    lab.expect(untouched >= KEYS * 2 / 5, || format!("only {untouched} of {KEYS} keys stayed with the store"));
    lab.remark(format!("{untouched} of {KEYS} keys stayed with the store all the time"));
    lab.expect_timely(from, back);
    lab.expect_alive();
    lab.expect_ttls(&ports(&cluster));
    lab.conclude()
}

/// F18.
pub fn shard_gone(mut lab: Lab) -> RowResult {
    let mut cluster = RedisCluster::start();
    let load = begin(&mut lab, &cluster);
    let from = lab.now();
    let owner = cluster.primary_of(SLOT);
    let partner = cluster.partner_of(owner);
    cluster.nodes[owner].kill();
    cluster.nodes[partner].kill();
    let down = crate::patience::try_until(Duration::from_secs(10), || !cluster.is_ok());
    lab.expect(down.is_some(), || "the cluster does not notice".to_owned());
    lab.pause(1500);
    let (down, to) = (lab.now() - 1000 * MILLI, lab.now());
    cluster.nodes[owner].restart();
    cluster.nodes[partner].restart();
    cluster.wait_until_ok();
    lab.expect_return();
    let back = lab.now();
    lab.lost(from, back);
    lab.pause(1000);
    lab.stop(load);
    let asked = lab.modes(down, to).get(&Some(AdmissionMode::Store)).copied().unwrap_or(0);
    lab.expect(asked == 0, || format!("{asked} answers of a cluster that is down"));
    lab.expect_timely(from, back);
    lab.expect_alive();
    lab.expect_ttls(&ports(&cluster));
    lab.conclude()
}

/// F20. For the minority, a stopped majority looks like a partitioned one.
pub fn minority(mut lab: Lab) -> RowResult {
    let cluster = RedisCluster::start();
    let load = begin(&mut lab, &cluster);
    let owner = cluster.primary_of(SLOT);
    let others = || cluster.nodes.iter().enumerate().filter(|(node, _)| *node != owner).map(|(_, server)| server);
    let from = lab.now();
    others().for_each(redis::RedisServer::stop);
    lab.pause(4000);
    let to = lab.now();
    others().for_each(redis::RedisServer::cont);
    cluster.wait_until_ok();
    lab.expect_return();
    let back = lab.now();
    lab.lost(from, back);
    lab.pause(1000);
    lab.stop(load);
    // An isolated node accepts writes until a little after the node timeout.
    let asked = lab.modes(from + 2500 * MILLI, to).get(&Some(AdmissionMode::Store)).copied().unwrap_or(0);
    lab.expect(asked == 0, || format!("{asked} answers from the minority"));
    lab.expect_timely(from, back);
    lab.expect_alive();
    lab.expect_ttls(&ports(&cluster));
    lab.conclude()
}
