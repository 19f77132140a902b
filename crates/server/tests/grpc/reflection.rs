//! Which services are there? Told only where that is configured.

use tokio::time::timeout;
use tonic::Code;
use tonic_reflection::pb::{v1, v1alpha};

use crate::rig::{PATIENCE, RULES, Rig};
use crate::wire::sent;

const SERVICES: [&str; 3] =
    ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health", "tollgate.v1.Tollgate"];

#[tokio::test]
async fn off_by_default() {
    let rig = Rig::start(RULES);
    let origin: http::Uri = "http://localhost".parse().unwrap();
    let mut client =
        v1::server_reflection_client::ServerReflectionClient::with_origin(rig.wire().await, origin.clone());
    let (_ask, asked) = sent();
    assert_eq!(client.server_reflection_info(asked).await.unwrap_err().code(), Code::Unimplemented);
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::with_origin(rig.wire().await, origin);
    let (_ask, asked) = sent();
    assert_eq!(client.server_reflection_info(asked).await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn by_both_names_where_it_is_on() {
    let rig = Rig::with(RULES, |config, _| config.grpc.reflection = true);
    let origin: http::Uri = "http://localhost".parse().unwrap();
    {
        use v1::server_reflection_request::MessageRequest;
        use v1::server_reflection_response::MessageResponse;
        let mut client =
            v1::server_reflection_client::ServerReflectionClient::with_origin(rig.wire().await, origin.clone());
        let (ask, asked) = sent();
        let question = |message| v1::ServerReflectionRequest { host: String::new(), message_request: Some(message) };
        ask.send(question(MessageRequest::ListServices(String::new()))).unwrap();
        let mut answers = client.server_reflection_info(asked).await.unwrap().into_inner();
        let answer = timeout(PATIENCE, answers.message()).await.unwrap().unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else { panic!("{answer:?}") };
        let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
        assert!(SERVICES.iter().all(|service| names.contains(service)), "{names:?}");
        ask.send(question(MessageRequest::FileContainingSymbol("tollgate.v1.Tollgate".to_owned()))).unwrap();
        let answer = timeout(PATIENCE, answers.message()).await.unwrap().unwrap().unwrap();
        let Some(MessageResponse::FileDescriptorResponse(file)) = answer.message_response else { panic!("no file") };
        assert!(!file.file_descriptor_proto.is_empty());
    }
    {
        use v1alpha::server_reflection_request::MessageRequest;
        use v1alpha::server_reflection_response::MessageResponse;
        let mut client =
            v1alpha::server_reflection_client::ServerReflectionClient::with_origin(rig.wire().await, origin);
        let (ask, asked) = sent();
        let message_request = Some(MessageRequest::ListServices(String::new()));
        ask.send(v1alpha::ServerReflectionRequest { host: String::new(), message_request }).unwrap();
        let mut answers = client.server_reflection_info(asked).await.unwrap().into_inner();
        let answer = timeout(PATIENCE, answers.message()).await.unwrap().unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else { panic!("{answer:?}") };
        assert!(list.service.len() >= SERVICES.len());
    }
}
