//! `grpc.health.v1`: the names, and when the answer is no.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_config::StorePlace;
use tollgate_proto::health::HealthCheckRequest;
use tollgate_proto::health::health_check_response::ServingStatus;
use tollgate_proto::health::health_client::HealthClient;
use tonic::Code;

use crate::rig::{PATIENCE, RULES, Rig};
use crate::wire::Wire;

async fn client(rig: &Rig) -> HealthClient<Wire> {
    HealthClient::with_origin(rig.wire().await, "http://localhost".parse().unwrap())
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn every_name_serves_and_no_other_is_known() {
    let rig = Rig::start(RULES);
    let mut client = client(&rig).await;
    for name in ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService", "tollgate.v1.Tollgate"] {
        let answer = client.check(about(name)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{name}");
    }
    assert_eq!(client.check(about("other")).await.unwrap_err().code(), Code::NotFound);
    let mut watched = client.watch(about("other")).await.unwrap().into_inner();
    let told = timeout(PATIENCE, watched.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(told.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn whoever_watches_is_told_of_the_drain_before_the_end() {
    let rig = Rig::start(RULES);
    let mut client = client(&rig).await;
    let mut watched = client.watch(about("")).await.unwrap().into_inner();
    let told = timeout(PATIENCE, watched.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(told.status(), ServingStatus::Serving);
    rig.drain.begin();
    let told = timeout(PATIENCE, watched.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(told.status(), ServingStatus::NotServing);
    let end = timeout(PATIENCE, watched.message()).await.unwrap().unwrap_err();
    assert_eq!(end.code(), Code::Unavailable);
    assert_eq!(rig.end().await, 0, "no connection had to be cut");
}

#[tokio::test]
async fn everybody_is_served_on_between_the_word_and_the_drain() {
    let rig = Rig::start(RULES);
    rig.drain.announce();
    let mut client = client(&rig).await;
    let answer = client.check(about("")).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::NotServing);
    let mut watched = client.watch(about("")).await.unwrap().into_inner();
    let told = timeout(PATIENCE, watched.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(told.status(), ServingStatus::NotServing);
    rig.answers_others().await; // on a new connection
    drop(watched);
    assert_eq!(rig.end().await, 0, "no connection had to be cut");
}

#[tokio::test]
async fn a_store_that_goes_away_is_no_reason_even_if_nobody_asked_before() {
    let redis = tollgate_lab::redis::RedisServer::start();
    let place = redis.url().parse().unwrap();
    let rig = Rig::open(RULES, |config, _| config.store.place = place).await;
    drop(redis);
    let answer = client(&rig).await.check(about("ratelimit")).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
}

#[tokio::test]
async fn a_store_that_was_never_there_is_no_service() {
    let nowhere = tollgate_lab::ports::free();
    let rig = Rig::open(RULES, |config, dir| {
        std::fs::write(dir.join("secret"), "0123456789abcdef0123456789abcdef").unwrap();
        config.secret_file = Some(dir.join("secret"));
        config.store.place = StorePlace::Shared(format!("redis://127.0.0.1:{nowhere}").parse().unwrap());
        config.store.timeout = Duration::from_millis(100);
    })
    .await;
    let mut client = client(&rig).await;
    let answer = client.check(about("ratelimit")).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::NotServing);
}
