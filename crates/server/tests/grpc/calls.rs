//! Who may call, how long it waits, and what is no call at all.

use bytes::Bytes;
use tokio::time::timeout;
use tollgate_proto::v1::{BatchCheckRequest, ReserveRequest};
use tonic::{Code, Request};

use crate::caller::Caller;
use crate::raw::{CHECK, RLS, Raw, answer, framed};
use crate::rig::{FULL, PATIENCE, RULES, Rig, about};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn a_token_is_asked_for_where_there_are_any() {
    let rig = Rig::with(RULES, |config, dir| {
        std::fs::write(dir.join("tokens"), TOKEN).unwrap();
        config.token_file = Some(dir.join("tokens"));
        config.grpc.reflection = true;
    });
    let raw = Raw::connect(&rig).await;
    let message = framed(&about("a"));
    for path in
        [CHECK, RLS, "/tollgate.v1.Tollgate/Explain", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"]
    {
        assert_eq!(raw.call(path, &[], message.clone()).await.code, Some(Code::Unauthenticated), "{path}");
        let wrong = [("authorization", "Bearer 0123456789abcdef0123456789abcdee")];
        assert_eq!(raw.call(path, &wrong, message.clone()).await.code, Some(Code::Unauthenticated), "{path}");
    }
    let right = format!("Bearer {TOKEN}");
    let twice = [("authorization", right.as_str()), ("authorization", "Bearer x")];
    assert_eq!(raw.call(CHECK, &twice, message.clone()).await.code, Some(Code::Unauthenticated));
    assert_eq!(raw.call(CHECK, &[("authorization", &right)], message).await.code, Some(Code::Ok));
    let health = raw.call("/grpc.health.v1.Health/Check", &[], vec![0; 5]).await;
    assert_eq!(health.code, Some(Code::Ok), "whoever balances load has no token");
    let mut client = rig.client().await;
    let mut request = Request::new(about("a"));
    request.metadata_mut().insert("authorization", right.parse().unwrap());
    assert_eq!(client.check(request).await.unwrap().into_inner().remaining, Some(998));
}

#[tokio::test]
async fn what_is_too_late_charges_nothing() {
    let rig = Rig::start(RULES);
    let raw = Raw::connect(&rig).await;
    let check_message = framed(&about("victim"));
    let reserve = framed(&ReserveRequest { request: Some(about("victim")) });
    let batch = framed(&BatchCheckRequest { requests: vec![about("victim")] });
    let calls = [
        (CHECK, check_message.clone()),
        ("/tollgate.v1.Tollgate/Reserve", reserve),
        ("/tollgate.v1.Tollgate/BatchCheck", batch),
    ];
    for (path, message) in calls {
        let late = raw.call(path, &[("grpc-timeout", "0n")], message.clone()).await;
        assert_eq!(late.code, Some(Code::DeadlineExceeded), "{path}");
        let odd = raw.call(path, &[("grpc-timeout", "soon")], message.clone()).await;
        assert_eq!(odd.code, Some(Code::InvalidArgument), "{path}");
        // The time is over before the message is there: it is not waited for.
        let (response, mut sending) = raw.begin(path, &[("grpc-timeout", "30m")]).await;
        assert_eq!(answer(response).await.code, Some(Code::DeadlineExceeded), "{path}");
        let _ = sending.send_data(Bytes::from(message), true);
    }
    assert_eq!(rig.left_to("victim").await, FULL);
    let in_time = raw.call(CHECK, &[("grpc-timeout", "20S")], check_message).await;
    assert_eq!(in_time.code, Some(Code::Ok));
    assert_eq!(rig.left_to("victim").await, FULL - 1);
    assert!(rig.metrics().await.contains(r#"Check",code="DEADLINE_EXCEEDED"} 2"#));
}

#[tokio::test]
async fn what_is_no_call_is_told_so() {
    let rig = Rig::start(RULES);
    let raw = Raw::connect(&rig).await;
    let message = framed(&about("victim"));
    for kind in ["application/json", "application/grpc-web", "text/plain"] {
        let answer = raw.call(CHECK, &[("content-type", kind)], message.clone()).await;
        assert_eq!((answer.status, answer.code), (415, None), "{kind}");
    }
    for path in ["/", "/tollgate.v1.Tollgate/Nothing", "/nobody.Knows/It", "/tollgate.v1.Tollgate/Check/"] {
        let answer = raw.call(path, &[], message.clone()).await;
        assert_eq!((answer.status, answer.code), (200, Some(Code::Unimplemented)), "{path}");
    }
    let answer = raw.call(CHECK, &[("content-type", "application/grpc+proto")], message).await;
    assert_eq!(answer.code, Some(Code::Ok));
    assert_eq!(rig.left_to("victim").await, FULL - 1);
}

#[tokio::test]
async fn what_is_no_http_2_is_closed() {
    let rig = Rig::start(RULES);
    for bytes in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n$4\r\nPING\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx"] {
        let mut caller = Caller::connect(rig.tcp()).await;
        caller.send(bytes).await.unwrap();
        while caller.bytes().await.is_ok_and(|some| !some.is_empty()) {}
    }
    rig.answers_others().await;
}

/// G17: charged once at most. Whoever gives up faster than calls are looked at is told to calm down, and comes back.
#[tokio::test]
async fn g17_a_call_that_is_given_up_is_charged_once_at_most_and_gone() {
    let rig = Rig::start(RULES);
    let mut raw = Raw::connect(&rig).await;
    let mut begun = 0;
    for number in 0..500 {
        match raw.try_begin(CHECK, &[]).await {
            Err(_) => raw = Raw::connect(&rig).await,
            Ok((mut response, mut sending)) => {
                let _ = sending.send_data(Bytes::from(framed(&about("victim"))), true);
                begun += 1;
                if number % 2 == 0 {
                    let _ = timeout(PATIENCE, &mut response).await; // it is answered already
                }
                drop(response);
                sending.send_reset(h2::Reason::CANCEL);
            }
        }
    }
    rig.answers_others().await;
    assert!(rig.left_to("victim").await >= FULL - begun);
}
