//! Valid and malformed bodies: each rejection with its code and the path of the field.

use tollgate_core::Attribute;

use super::*;

fn fault(body: &str) -> (&'static str, String) {
    let BodyError { code, field, .. } = read_check(body.as_bytes()).map(drop).expect_err(body);
    (code, field)
}

#[test]
fn the_requests_of_the_guide_are_requests() {
    for body in [
        r#"{"client_key":"user:abc-123","endpoint":"/api/orders","tier":"free"}"#,
        r#"{"client_key":"user:42","endpoint":"/api/v1/search","cost":1}"#,
        r#" { "attributes" : { "region" : "eu" } , "peek" : true } "#,
        r#"{"client_key":"caf\u00e9 \ud83d\ude00","cost":9007199254740991}"#,
    ] {
        let asked = read_check(body.as_bytes()).unwrap();
        let lists = asked.lists();
        let _ = asked.request(&lists);
    }
}

#[test]
fn every_field_reaches_the_request() {
    let body = r#"{"client_key":"u","api_key":"k","ip":"::1","endpoint":"GET /x","cost":7,"namespace":"n",
        "attributes":{"region":"e\"u"},"peek":true}"#;
    let asked = read_check(body.as_bytes()).unwrap();
    let lists = asked.lists();
    let request = asked.request(&lists);
    use tollgate_core::{Attribute, Purpose};
    assert_eq!(request.get(Attribute::ApiKey), Some("k"));
    assert_eq!((request.namespace, request.cost, request.purpose), ("n", 7, Purpose::Peek));
    assert_eq!(request.custom, [("region", "e\"u")]);
}

#[test]
fn malformed_requests_are_rejected_with_the_path() {
    let nested = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let nested = format!(r#"{{"client_key":"x","cost":{nested}}}"#);
    let cases = [
        ("", "empty_body", ""),
        ("null", "wrong_type", ""),
        ("[]", "wrong_type", ""),
        ("\"x\"", "wrong_type", ""),
        ("{}", "missing_field", "client_key"),
        (r#"{"cost":1}"#, "missing_field", "client_key"),
        (r#"{"client_key":"x","limt":5}"#, "unknown_field", "limt"),
        (r#"{"client_key":"x","a\u001b[31m\u0000":5}"#, "unknown_field", "a?[31m?"),
        (r#"{"client_key":"x","client_key":"y"}"#, "duplicate_field", "client_key"),
        (r#"{"client_key":"x","cost":1,"cost":1}"#, "duplicate_field", "cost"),
        (r#"{"attributes":{"a":"1"},"attributes":{"b":"2"}}"#, "duplicate_field", "attributes"),
        (r#"{"client_key":7.5}"#, "wrong_type", "client_key"),
        (r#"{"client_key":null}"#, "wrong_type", "client_key"),
        (r#"{"client_key":"x","peek":1}"#, "wrong_type", "peek"),
        (r#"{"client_key":"x","attributes":[]}"#, "wrong_type", "attributes"),
        (r#"{"attributes":{"a":1.5}}"#, "wrong_type", "attributes.a"),
        (r#"{"attributes":{"Region":"eu"}}"#, "bad_attribute_name", "attributes.Region"),
        (r#"{"attributes":{"path":"/"}}"#, "bad_attribute_name", "attributes.path"),
        (r#"{"attributes":{"tier":"free"}}"#, "bad_attribute_name", "attributes.tier"),
        (r#"{"attributes":{"a":"1","a":"2"}}"#, "bad_attribute_name", "attributes.a"),
        (r#"{"client_key":"a\u0000b"}"#, "bad_text", "client_key"),
        (r#"{"attributes":{"a":"\u0000"}}"#, "bad_text", "attributes.a"),
        (r#"{"client_key":"\ud800"}"#, "not_json", ""),
        (r#"{"client_key":"x"} x"#, "not_json", ""),
        (r#"{"client_key":"x","#, "not_json", ""),
        (&nested, "bad_cost", "cost"),
        ("\u{feff}{\"client_key\":\"x\"}", "not_json", ""),
    ];
    for (body, code, field) in cases {
        assert_eq!(fault(body), (code, field.to_owned()), "{body}");
    }
    for bytes in [&b"\xff\xfe{\0"[..], b"{\"client_key\":\"\xff\"}", b"{\"client_key\":\"\x01\"}"] {
        assert_eq!(read_check(bytes).map(drop).unwrap_err().code, "not_json");
    }
}

#[test]
fn the_number_of_attributes_is_bounded() {
    let body = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("\"a{number}\":\"\"")).collect();
        format!("{{\"attributes\":{{{}}}}}", names.join(","))
    };
    assert!(read_check(body(64).as_bytes()).is_ok());
    assert_eq!(fault(&body(65)), ("too_many", "attributes".to_owned()));
    assert_eq!(
        fault(&body(100_000)),
        ("too_many", "attributes".to_owned()),
        "and at once: not after comparing them all"
    );
}

#[test]
fn costs_are_whole_numbers_that_every_json_reader_represents() {
    let bad = ["-1", "-0", "0.5", "1e3", "1e400", "\"1\"", "9007199254740993", "18446744073709551616", "true", "null"];
    for cost in bad {
        let body = format!(r#"{{"client_key":"x","cost":{cost}}}"#);
        let (code, field) = fault(&body);
        let expected = if cost == "1e400" { ("not_json", "") } else { ("bad_cost", "cost") };
        assert_eq!((code, field.as_str()), expected, "{cost}");
    }
    assert_eq!(fault(r#"{"client_key":"x","cost":NaN}"#).0, "not_json");
}

#[test]
fn errors_never_repeat_values() {
    let secret = "sk_live_0123456789";
    for body in [
        format!(r#"{{"client_key":"x","cost":"{secret}"}}"#),
        format!(r#"{{"client_key":"x","peek":"{secret}"}}"#),
        format!(r#"{{"client_key":["{secret}"]}}"#),
        format!(r#""{secret}""#),
        format!(r#"{{"attributes":"{secret}"}}"#),
        format!(r#"{{"requests":"{secret}"}}"#),
        secret.to_owned(),
    ] {
        let faults = [read_check(body.as_bytes()).map(drop), read_batch(body.as_bytes()).map(drop)];
        for fault in faults.into_iter().filter_map(Result::err) {
            assert!(!format!("{fault:?}").contains(secret), "{fault:?}");
        }
    }
}

#[test]
fn errors_in_batches_name_the_item() {
    let whole = format!(r#"{{"requests":[{}]}}"#, vec![r#"{"client_key":"x"}"#; BATCH_MAX].join(","));
    assert_eq!(read_batch(whole.as_bytes()).unwrap().len(), BATCH_MAX);
    let more = whole.replace("]}", r#",{"client_key":"x"}]}"#);
    let cases = [
        (more.as_str(), "too_many", "requests"),
        (r#"{}"#, "missing_field", "requests"),
        (r#"[]"#, "wrong_type", ""),
        (r#"{"requests":{}}"#, "wrong_type", "requests"),
        (r#"{"requests":[{"client_key":"x"}],"requests":[{"client_key":"x"}]}"#, "duplicate_field", "requests"),
        (r#"{"request":[]}"#, "unknown_field", "request"),
        (r#"{"requests":[{"client_key":"x"},7]}"#, "wrong_type", "requests[1]"),
        (r#"{"requests":[{"client_key":"x"},{"client_key":"x","cost":-1}]}"#, "bad_cost", "requests[1].cost"),
        (r#"{"requests":[{"attributes":{"a":1.5}}]}"#, "wrong_type", "requests[0].attributes.a"),
        (r#"{"requests":[{}]}"#, "missing_field", "requests[0].client_key"),
    ];
    for (body, code, field) in cases {
        let fault = read_batch(body.as_bytes()).map(drop).expect_err(code);
        assert_eq!((fault.code, fault.field.as_str()), (code, field), "{fault:?}");
    }
}

#[test]
fn receipts_need_their_fields() {
    let (receipt, cost) = read_receipt(br#"{"reservation":"tgr_x","cost":3}"#, "reservation", true).unwrap();
    assert_eq!((&*receipt, cost), ("tgr_x", 3));
    let fault = |body: &str, with_cost| read_receipt(body.as_bytes(), "slot", with_cost).map(drop).unwrap_err();
    assert_eq!(fault(r#"{"slot":"x"}"#, true).field, "cost");
    assert_eq!(fault(r#"{"slot":"x","cost":1}"#, false).code, "unknown_field");
    assert_eq!(fault(r#"{"slot":[]}"#, false).field, "slot");
    assert_eq!(fault(r#"{}"#, false).field, "slot");
}

#[test]
fn whole_numbers_are_accepted_as_text() {
    let read = read_check(br#"{"user_id":42,"org":-7,"attributes":{"build":18446744073709551615}}"#).unwrap();
    let lists = read.lists();
    let request = read.request(&lists);
    assert_eq!((request.get(Attribute::UserId), request.get(Attribute::Org)), (Some("42"), Some("-7")));
    assert_eq!(custom.as_slice(), [("build", "18446744073709551615")]);
    for other in ["1.0", "1e3", "true", "null", "[42]", "{}", "18446744073709551616"] {
        let body = format!(r#"{{"user_id":{other}}}"#);
        let fault = read_check(body.as_bytes()).unwrap_err();
        assert_eq!((fault.code, fault.field.as_str()), ("wrong_type", "user_id"), "{body}");
    }
}

#[test]
fn an_empty_batch_is_a_mistake() {
    let fault = read_batch(br#"{"requests":[]}"#).unwrap_err();
    assert_eq!((fault.code, fault.field.as_str()), ("missing_field", "requests"));
}
