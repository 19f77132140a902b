//! The vectors of reservations over gRPC: in memory, and on nodes that share Redis, Valkey or a cluster.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tollgate_config::StoreSettings;
use tollgate_lab::redis::{Flavour, RedisCluster, RedisServer};
use tollgate_proto::v1::{
    AcquireSlotRequest, CheckRequest, CheckResponse, ExtendRequest, ReleaseSlotRequest, RenewSlotRequest,
    ReserveRequest, SettleRequest,
};
use tollgate_testkit::vectors::{ReservationCall, ReservationVectors, VectorReport};
use tonic::Status;

use crate::rig::{Rig, about};
use crate::shared::patient;

const VECTORS: &str = include_str!("../../../testkit/vectors/reservations.json");

/// The answer with the names of the HTTP API.
fn decided(decision: Option<CheckResponse>, receipt: &str) -> Value {
    let CheckResponse { allowed, rule, limit, remaining, .. } = decision.unwrap_or_default();
    json!({ "allowed": allowed, "rule": rule, "limit": limit, "remaining": remaining, "reservation": receipt })
}

fn refused(status: &Status) -> Value {
    json!({ "code": status.message().split(':').next() })
}

async fn ask(rig: &Rig, client: &str, call: ReservationCall) -> Result<Value, Status> {
    let ReservationCall { op, receipt, cost, costs } = call;
    let costs = costs.into_iter().collect();
    let reservation = receipt.unwrap_or_default();
    let mut grpc = rig.client().await;
    let request = |costs| Some(CheckRequest { cost, costs, ..about(client) });
    Ok(match op.as_str() {
        "check" => decided(Some(grpc.check(request(costs).unwrap()).await?.into_inner()), ""),
        "reserve" => {
            let answer = grpc.reserve(ReserveRequest { request: request(costs) }).await?.into_inner();
            decided(answer.decision, &answer.reservation)
        }
        "acquire" => {
            let answer = grpc.acquire_slot(AcquireSlotRequest { request: request(costs) }).await?.into_inner();
            decided(answer.decision, &answer.slot)
        }
        "extend" => {
            let answer = grpc.extend(ExtendRequest { reservation, costs }).await?.into_inner();
            decided(answer.decision, &answer.reservation)
        }
        "settle" => {
            let answer = grpc.settle(SettleRequest { reservation, cost, costs }).await?.into_inner();
            let (refunded, extended, above) = (answer.refunded, answer.extended, answer.above);
            json!({ "settled": answer.settled, "refunded": refunded, "extended": extended, "above": above })
        }
        "renew" => {
            json!({ "renewed": grpc.renew_slot(RenewSlotRequest { slot: reservation }).await?.into_inner().renewed })
        }
        "release" => {
            let released = grpc.release_slot(ReleaseSlotRequest { slot: reservation }).await?.into_inner().released;
            json!({ "released": released })
        }
        other => panic!("unknown op {other}"),
    })
}

async fn left(rig: &Rig, client: &str) -> Value {
    let costs = ["input_tokens", "output_tokens"].map(|meter| (meter.to_owned(), 0)).into();
    let looked = CheckRequest { cost: Some(0), peek: true, costs, ..about(client) };
    let rules = rig.client().await.check(looked).await.unwrap().into_inner().rules;
    Value::Object(rules.into_iter().map(|rule| (rule.rule, json!(rule.remaining))).collect::<Map<_, _>>())
}

/// Every call goes to the next node.
async fn agrees(nodes: &[Rig]) {
    let vectors = ReservationVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}"));
    let mut report = VectorReport::default();
    for case in &vectors.cases {
        let mut calls = 0;
        let call = async |call| {
            calls += 1;
            ask(&nodes[calls % nodes.len()], &case.name, call).await.unwrap_or_else(|status| refused(&status))
        };
        case.run(call, async || left(&nodes[0], &case.name).await, &mut report).await;
    }
    let shown: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    assert_eq!((report.passed, report.failed), (89, 0), "{}", shown.join("\n"));
}

fn rules() -> String {
    ReservationVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}")).rules
}

/// Two nodes over a store. They remember no refusals, because a settlement at one node makes room at the other.
async fn pair(url: &str) -> [Rig; 2] {
    let rules = rules();
    let node = || {
        let store = StoreSettings { deny_cache_ttl: Duration::ZERO, ..patient(url) };
        Rig::open(&rules, |config, _| config.store = store)
    };
    [node().await, node().await]
}

#[tokio::test]
async fn reservations_agree_with_their_vectors() {
    agrees(&[Rig::start(&rules())]).await;
}

#[tokio::test]
async fn reservations_in_redis_agree_with_their_vectors() {
    let redis = RedisServer::start();
    agrees(&pair(&redis.url()).await).await;
}

#[tokio::test]
async fn reservations_in_valkey_agree_with_their_vectors() {
    let valkey = RedisServer::of(Flavour::Valkey);
    agrees(&pair(&valkey.url()).await).await;
}

#[tokio::test]
async fn reservations_in_a_cluster_agree_with_their_vectors() {
    let cluster = RedisCluster::start();
    agrees(&pair(&cluster.url()).await).await;
}
