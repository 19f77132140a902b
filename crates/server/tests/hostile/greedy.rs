//! Clients that ask and do not listen, and clients that make a connection grow. H22, P23.

use tokio::time::Instant;
use tollgate_net::NetLimits;

use crate::caller::Caller;
use crate::rig::{GOOD, Rig, ms};

/// H22: pipelining without reading stops being read, and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_reads_is_cut_off() {
    let rig = Rig::open(NetLimits { write_timeout: ms(400), ..NetLimits::default() });
    let mut caller = Caller::connect(rig.data).await;
    let since = Instant::now();
    let many = GOOD.repeat(1000);
    let mut sent = 0;
    while caller.send(&many).await.is_ok() {
        sent += many.len();
        assert!(sent < 64 << 20, "the server reads on, though nobody takes its answers");
    }
    assert!(since.elapsed() >= ms(400), "cut off after {:?}", since.elapsed());
    rig.answers_others().await;
}
