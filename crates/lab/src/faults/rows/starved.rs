//! Nodes without enough CPU time: everything is late, and the store is healthy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::faults::{Lab, RowResult};
use crate::redis::RedisServer;

const NODES: u64 = 3;
const LOOPS: usize = 4;
const SECONDS: u64 = 10;
/// The least percentage of decisions by the store.
const BY_THE_STORE: u64 = 90;

/// Busy loops beside three nodes and their Redis: requests whose replies a node reads too late are decided without the
/// store, one by one, and no breaker opens.
pub fn busy(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    lab.fleet(&server.url(), NODES);
    let before = lab.metric("tollgate_redis_breaker_openings");
    let loops = Loops::start();
    let load = lab.load(8);
    let from = lab.now();
    lab.pause(SECONDS * 1000);
    let to = lab.now();
    lab.stop(load);
    loops.stop();
    let openings = lab.metric("tollgate_redis_breaker_openings") - before;
    lab.expect(openings == 0, || format!("breakers opened {openings} times"));
    let share = lab.store_share(from, to);
    lab.expect(share >= BY_THE_STORE, || format!("the store decided {share} %"));
    lab.expect_answers(from, to);
    let late: u64 = lab
        .nodes
        .iter()
        .filter_map(|node| node.metric_by_label("tollgate_redis_errors", "error").remove("own_delay"))
        .sum();
    lab.remark(format!(
        "{LOOPS} busy loops: {share} % by the store, {openings} breakers opened, {late} late for reasons of the nodes, p99 {:.1} ms",
        lab.latency(from, to, 0.99)
    ));
    lab.conclude()
}

/// Threads that spin.
struct Loops {
    threads: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Loops {
    fn start() -> Loops {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..LOOPS).map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) {})
        });
        Loops { threads: threads.collect(), is_over }
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("a loop does not panic"));
    }
}
