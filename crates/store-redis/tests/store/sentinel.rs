//! A primary that the Sentinels name, and another one after it.

use tollgate_testkit::redis::Sentinels;

use super::*;

/// F14: nobody is asked while there is no primary; the new one is found by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f14_the_new_primary_is_found_after_a_failover() {
    let sentinels = Sentinels::start();
    let store = node(config(&sentinels.url())).await;
    let charge = charge(1, 1, window(1_000_000));
    assert!(take(&store, &[charge]).await.expect("the store answers").0.allowed);
    let old = sentinels.primary();
    sentinels.servers[old].stop();
    let stopped = tokio::time::Instant::now();
    let failover = tokio::task::spawn_blocking(move || {
        let took = sentinels.wait_for_failover_from(old);
        (sentinels, took)
    });
    let short = Span::from_millis(50);
    let mut failed = 0;
    loop {
        let began = tokio::time::Instant::now();
        let taken = store.take(&[charge], short, &mut Outcomes::new()).await;
        let took = began.elapsed();
        assert!(took.as_millis() < 1_000, "a decision took {took:?}");
        match taken {
            Ok(_) if failed > 0 => break,
            Ok(_) => {}
            Err(_) => failed += 1,
        }
        assert!(stopped.elapsed().as_secs() < 30, "the new primary was never found");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let back = stopped.elapsed();
    let (sentinels, took) = failover.await.expect("the Sentinels promote");
    assert!(back.as_secs_f64() < took.as_secs_f64() + 3.0, "found after {back:?}, promoted after {took:?}");
    sentinels.servers[old].cont();
}
