//! gRPC through the gateway, by the clients that tonic generates: single calls, streams in both directions, trailers,
//! deadlines, and callers that leave.

use std::time::Duration;

use tokio::net::TcpStream;
use tollgate_config::Config;
use tollgate_net::{Address, Drain};
use tollgate_proto::health::HealthCheckRequest;
use tollgate_proto::health::health_check_response::ServingStatus;
use tollgate_proto::health::health_client::HealthClient;
use tollgate_server::Surface;
use tollgate_server::run::Server;
use tonic::{Code, Request};
use tonic_reflection::pb::v1;

use crate::forwarding::in_flight;
use crate::rig::{Rig, until, within};
use crate::wire::{Wire, sent};

const ONE_SLOT: &str = "rules:
  - { name: slots, key_by: ip, match: { endpoint: \"POST /grpc.health.v1.Health/Watch\" },
      limit: { algorithm: concurrency, slots: 1, slot_ttl: 1h } }
";

/// A gRPC server that people write with tonic: ours.
struct GrpcApi {
    url: String,
    drain: Drain,
}

impl GrpcApi {
    fn start() -> GrpcApi {
        let mut config = Config { http: Vec::new(), ..Config::for_test() };
        config.grpc.address = Some(Address::loopback(0));
        config.grpc.reflection = true;
        let server = Server::bind(config, None).unwrap();
        let found = server.addresses().into_iter().find(|(surface, _)| *surface == Surface::Grpc);
        let Some((_, Address::Tcp(address))) = found else { panic!("no gRPC port") };
        let drain = server.drain();
        tokio::spawn(server.run());
        GrpcApi { url: format!("h2c://{address}"), drain }
    }
}

async fn wire(rig: &Rig) -> Wire {
    Wire::over(within(TcpStream::connect(rig.gateway)).await.unwrap()).await
}

fn origin() -> http::Uri {
    "http://api.example.com".parse().unwrap()
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn single_calls_pass_with_their_trailers() {
    let api = GrpcApi::start();
    let rig = Rig::start(ONE_SLOT, &api.url);
    let mut client = HealthClient::with_origin(wire(&rig).await, origin());
    let answer = within(client.check(about(""))).await.unwrap();
    assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    let error = within(client.check(about("other"))).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error:?}");
    let calls = (0..50).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move { client.check(about("")).await.unwrap().into_inner().status() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(within(call).await.unwrap(), ServingStatus::Serving);
    }
}

#[tokio::test]
async fn streams_of_both_directions_pass_as_they_go() {
    use v1::server_reflection_request::MessageRequest;
    use v1::server_reflection_response::MessageResponse;
    let api = GrpcApi::start();
    let rig = Rig::start(ONE_SLOT, &api.url);
    let mut client = v1::server_reflection_client::ServerReflectionClient::with_origin(wire(&rig).await, origin());
    let (ask, asked) = sent();
    let question = |message| v1::ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    ask.send(question(MessageRequest::ListServices(String::new()))).unwrap();
    let mut answers = within(client.server_reflection_info(asked)).await.unwrap().into_inner();
    for _ in 0..20 {
        let answer = within(answers.message()).await.unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else { panic!("{answer:?}") };
        assert!(list.service.iter().any(|service| service.name == "grpc.health.v1.Health"));
        ask.send(question(MessageRequest::ListServices(String::new()))).unwrap(); // only after the last answer
    }
    within(answers.message()).await.unwrap().unwrap();
    drop(ask);
    assert_eq!(within(answers.message()).await.unwrap(), None, "the end of one direction ends the other");
}

#[tokio::test]
async fn a_stream_holds_its_slot_until_its_caller_leaves_or_its_deadline_comes() {
    let api = GrpcApi::start();
    let rig = Rig::start(ONE_SLOT, &api.url);
    let mut client = HealthClient::with_origin(wire(&rig).await, origin());
    for _ in 0..3 {
        let mut watched = within(client.watch(about(""))).await.unwrap().into_inner();
        assert_eq!(within(watched.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
        let refused = within(client.watch(about(""))).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "the slot is taken: {refused:?}");
        assert!(refused.metadata().contains_key("retry-after"), "{refused:?}");
        drop(watched); // RST_STREAM
        until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
    }
    let mut timed = Request::new(about(""));
    timed.set_timeout(Duration::from_millis(200)); // `grpc-timeout`, which the server keeps to
    let mut watched = within(client.watch(timed)).await.unwrap().into_inner();
    within(async { while let Ok(Some(_)) = watched.message().await {} }).await;
    until(async || in_flight(&rig.metrics().await).iter().all(|count| *count == 0)).await;
    let mut watched = within(client.watch(about(""))).await.unwrap().into_inner();
    assert_eq!(within(watched.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    api.drain.begin();
    assert_eq!(within(watched.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    let end = within(watched.message()).await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "its last word is a trailer: {end:?}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable() {
    let (_socket, dead) = crate::upstreams::closed_port();
    let rig = Rig::start(ONE_SLOT, &dead.replace("http:", "h2c:"));
    let mut client = HealthClient::with_origin(wire(&rig).await, origin());
    let error = within(client.check(about(""))).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error:?}");
}
