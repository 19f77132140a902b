//! G10–G13: messages that are none, are too long, or never end. Nothing is charged, others are answered.

use tollgate_proto::v1::BatchCheckRequest;
use tonic::Code;

use crate::raw::{BATCH, CHECK, RLS, Raw, framed, prefixed};
use crate::rig::{FULL, RULES, Rig, about, with};

fn said(code: Option<Code>) -> bool {
    matches!(code, Some(Code::Internal | Code::InvalidArgument | Code::ResourceExhausted | Code::Unimplemented))
}

#[tokio::test]
async fn g10_prefixes_that_lie_are_refused() {
    let rig = Rig::start(RULES);
    let whole = framed(&about("victim"));
    let mut longer = whole.clone();
    longer[4] += 1;
    let mut compressed = whole.clone();
    compressed[0] = 1;
    let mut odd = whole.clone();
    odd[0] = 7;
    let bodies: [(&str, Vec<u8>); 9] = [
        ("4 GiB", [&[0, 255, 255, 255, 255][..], b"abc"].concat()),
        ("4 GiB, compressed", vec![1, 255, 255, 255, 255]),
        ("longer than the body", longer),
        ("compressed without an encoding", compressed),
        ("an odd flag", odd),
        ("half a prefix", vec![0, 0, 0]),
        ("nothing", Vec::new()),
        ("two messages", [whole.clone(), whole.clone()].concat()),
        ("cut", whole[..whole.len() - 1].to_vec()),
    ];
    for path in [CHECK, RLS, BATCH] {
        let raw = Raw::connect(&rig).await;
        for (what, body) in &bodies {
            let answer = raw.call(path, &[], body.clone()).await;
            assert!(said(answer.code), "{path} {what}: {answer:?}");
        }
    }
    assert_eq!(rig.left_to("victim").await, FULL);
    rig.answers_others().await;
}

#[tokio::test]
async fn g11_protobuf_that_is_none_is_the_callers_fault() {
    let rig = Rig::start(RULES);
    let raw = Raw::connect(&rig).await;
    let message = about("victim");
    let valid = prost::Message::encode_to_vec(&message);
    let bad: [(&str, Vec<u8>); 6] = [
        ("groups 10,000 deep", vec![0x7b; 10_000]),
        ("text that is no UTF-8", vec![0x0a, 2, 0xff, 0xfe]),
        ("field number 0", vec![0x00, 0x01]),
        ("a varint of 11 bytes", [&[0x18][..], &[0xff; 11], &[1]].concat()),
        ("a length beyond the end", vec![0x0a, 0x7f, b'x']),
        ("a map entry cut short", vec![0x12, 0x04, 0x0a, 0x09]),
    ];
    for path in [CHECK, RLS, BATCH] {
        for (what, bytes) in &bad {
            let answer = raw.call(path, &[], prefixed(bytes)).await;
            assert_eq!(answer.code, Some(Code::InvalidArgument), "{path} {what}: {answer:?}");
        }
    }
    assert_eq!(rig.left_to("victim").await, FULL);
    // Unknown fields are ignored.
    let unknown = [valid, vec![0x7a, 0x80, 0x40], vec![b'x'; 8192]].concat();
    assert_eq!(raw.call(CHECK, &[], prefixed(&unknown)).await.code, Some(Code::Ok));
}

#[tokio::test]
async fn messages_have_the_lengths_that_are_configured() {
    let rig = Rig::with(RULES, |config, _| {
        config.net.max_body = 2048;
        config.net.max_batch_body = 8192;
    });
    let raw = Raw::connect(&rig).await;
    let long = with(&[("client_key", "victim"), ("note", &"x".repeat(2048))]);
    assert_eq!(raw.call(CHECK, &[], framed(&long)).await.code, Some(Code::ResourceExhausted));
    let reserve = tollgate_proto::v1::ReserveRequest { request: Some(long) };
    let answer = raw.call("/tollgate.v1.Tollgate/Reserve", &[], framed(&reserve)).await;
    assert_eq!(answer.code, Some(Code::ResourceExhausted), "{answer:?}");
    let batch = |count| framed(&BatchCheckRequest { requests: vec![about("victim"); count] });
    assert_eq!(raw.call(BATCH, &[], batch(500)).await.code, Some(Code::ResourceExhausted));
    assert_eq!(rig.left_to("victim").await, FULL);
    assert_eq!(raw.call(BATCH, &[], batch(200)).await.code, Some(Code::Ok));
}

/// A message in many pieces is read like one in one.
#[tokio::test]
async fn a_message_may_come_byte_by_byte() {
    let rig = Rig::start(RULES);
    let raw = Raw::connect(&rig).await;
    for path in [CHECK, BATCH] {
        let message = match path {
            CHECK => framed(&about("a")),
            _ => framed(&BatchCheckRequest { requests: vec![about("a")] }),
        };
        let (response, mut sending) = raw.begin(path, &[]).await;
        for byte in &message {
            sending.send_data(vec![*byte].into(), false).unwrap();
            tokio::task::yield_now().await;
        }
        sending.send_data(bytes::Bytes::new(), true).unwrap();
        assert_eq!(crate::raw::answer(response).await.code, Some(Code::Ok), "{path}");
    }
    assert_eq!(rig.left_to("a").await, FULL - 2);
}
