//! Decisions over gRPC belong to the trace of their caller, whatever method asks.

use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rate_limit_descriptor::Entry;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_proto::v1::{BatchCheckRequest, ReserveRequest, StreamChecksRequest};
use tonic::{Code, Request};

use crate::collector::{CALLER, Collector, TRACE, hex, text};
use crate::raw::{CHECK, RLS, Raw, framed};
use crate::rig::{RULES, Rig, about};
use crate::wire::sent;

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_every_method_is_a_span_of_its_callers_trace() {
    let (url, collector) = Collector::start().await;
    let rig = Rig::with(RULES, |config, _| {
        config.signals.otlp_endpoint = Some(url);
        config.signals.otlp_sample = 0;
    });
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let raw = Raw::connect(&rig).await;
    let entry = Entry { key: "client_key".to_owned(), value: "rls".to_owned() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    let domain = RateLimitRequest { domain: "default".to_owned(), descriptors: vec![descriptor], hits_addend: 0 };
    let calls = [
        (CHECK, framed(&about("check"))),
        (RLS, framed(&domain)),
        ("/tollgate.v1.Tollgate/BatchCheck", framed(&BatchCheckRequest { requests: vec![about("batch"); 2] })),
        ("/tollgate.v1.Tollgate/Reserve", framed(&ReserveRequest { request: Some(about("reserve")) })),
    ];
    for (path, message) in calls {
        let unsampled = format!("00-{TRACE}-{CALLER}-00");
        for fields in [&[("traceparent", parent.as_str())][..], &[("traceparent", &unsampled)], &[]] {
            assert_eq!(raw.call(path, fields, message.clone()).await.code, Some(Code::Ok), "{path}");
        }
        let twice = [("traceparent", parent.as_str()), ("traceparent", &parent)];
        assert_eq!(raw.call(path, &twice, message.clone()).await.code, Some(Code::Ok), "{path}");
        let garbage = [("traceparent", "garbage")];
        assert_eq!(raw.call(path, &garbage, message).await.code, Some(Code::Ok), "{path}");
    }
    let (ask, asked) = sent();
    for id in 0..3 {
        ask.send(StreamChecksRequest { id, request: Some(about("stream")) }).unwrap();
    }
    drop(ask);
    let mut asked = Request::new(asked);
    asked.metadata_mut().insert("traceparent", parent.parse().unwrap());
    let mut answers = rig.client().await.stream_checks(asked).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    let spans = collector.spans(8).await;
    rig.end().await; // what was recorded until then is exported
    assert_eq!(
        collector.spans(8).await.len(),
        8,
        "one each of check and reserve and RLS, two of a batch, three of a stream"
    );
    for span in &spans {
        assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
        assert_eq!(text(&span.attributes, "tollgate.outcome"), "allow");
        assert_eq!(text(&span.attributes, "tollgate.rule"), "only");
    }
}
