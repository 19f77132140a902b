//! Errors.

use tollgate_core::{Attribute, Request};
use tollgate_service::Reply;
use tollgate_service::render::{Media, ProblemDetails, write_problem};

use crate::{engine, object, text, told, user};

#[test]
fn an_error_replaces_what_was_half_written() {
    let mut reply = Reply { close: true, ..Reply::default() };
    reply.fields.push("X-Half", "written");
    reply.body.extend_from_slice(b"{\"half\":");
    let detail = "expected a number, found \"\u{1b}[31m\0\u{85}\"";
    let error =
        ProblemDetails { status: 400, code: "bad-cost", title: "Not valid", detail, field: Some("requests[3].cost") };
    write_problem(&error, &mut reply);
    assert!(reply.close, "the connection's fate is not an answer's business");
    assert_eq!(
        text(&reply),
        r#"400
Content-Type: application/problem+json
Cache-Control: no-store

{"type":"about:blank","title":"Not valid","status":400,"detail":"expected a number, found \"\u001b[31m\u0000\u0085\"","code":"bad-cost","field":"requests[3].cost"}"#
    );
    write_problem(&ProblemDetails { field: None, ..error }, &mut reply);
    assert!(!text(&reply).contains("\"field\""));
}

#[test]
fn a_request_that_cannot_be_read_is_a_problem() {
    let (engine, _) = engine("rules: [{ key_by: ip, limit: { requests: 1, window: 1m } }]");
    let decision = engine.decide_now(&Request::new().with(Attribute::Ip, "not an address"));
    let reply = told(&decision);
    assert!(reply.starts_with("400\nContent-Type: application/problem+json\nCache-Control: no-store\n\n{"), "{reply}");
    assert!(reply.contains(r#""code":"bad_address","field":"ip""#), "{reply}");
    assert!(reply.ends_with(&object(&decision)));
    let _ = engine.decide_now(&user("1"));
}

#[test]
fn plain_json_is_for_those_who_ask_for_it() {
    assert_eq!(Media::accepted(b"text/html, Application/JSON;q=0.9"), Media::Json);
    for accept in ["", "*/*", "application/problem+json", "application/json, application/problem+json", "text/plain"] {
        assert_eq!(Media::accepted(accept.as_bytes()), Media::Problem, "{accept}");
    }
}
