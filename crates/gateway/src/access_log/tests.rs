//! Lines of the access log, in both formats.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_telemetry::Sink;

use super::*;

/// Keeps what is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a log of this form writes of records.
fn logged(format: AccessLogFormat, sample_percent: u8, records: &[AccessRecord]) -> String {
    let written = Written::default();
    let lines = Lines::start(Sink::Other(Box::new(written.clone()))).unwrap();
    let config = AccessLogConfig { lines: lines.clone(), format, sample_percent, secret: Secret::new([7; 16]) };
    let log = AccessLog::new(config);
    records.iter().for_each(|record| log.record(record, Time::from_secs(1_795_068_000)));
    assert!(lines.flush(Duration::from_secs(60)));
    String::from_utf8(written.0.lock().clone()).unwrap()
}

fn record() -> AccessRecord {
    AccessRecord {
        id: 0x3a30_9775_852f_7d68,
        method: "GET".to_owned(),
        path: "/v1/orders".to_owned(),
        protocol: "HTTP/1.1",
        referer: Some(HeaderValue::from_static("https://shop.example.com/cart?key=secret#top")),
        user_agent: Some(HeaderValue::from_static("curl/8.5")),
        address: Some([203, 0, 113, 7].into()),
        client: "key:tk_secret".to_owned(),
        proof: "api_key",
        route: "orders".to_owned(),
        outcome: FORWARDED,
        status: 200,
        response_bytes: 512,
        micros: 1_500,
        ..AccessRecord::default()
    }
}

fn digest() -> String {
    ClientDigests::new(Secret::new([7; 16])).of("key:tk_secret").to_string()
}

#[test]
fn a_combined_line_is_what_parsers_of_web_logs_read() {
    let digest = digest();
    let by_address = AccessRecord { proof: "address", address: Some("2001:db8:1:2::3".parse().unwrap()), ..record() };
    let unreadable = AccessRecord { id: 1, outcome: "unreadable", status: 400, ..AccessRecord::default() };
    let lines = logged(AccessLogFormat::Combined, 100, &[record(), by_address, unreadable]);
    let expected = [
        format!(
            "203.0.113.0 - {digest} [19/Nov/2026:06:00:00 +0000] \"GET /v1/orders HTTP/1.1\" 200 512 \
             \"https://shop.example.com/cart\" \"curl/8.5\" 3a309775852f7d68"
        ),
        "2001:db8:1:: - - [19/Nov/2026:06:00:00 +0000] \"GET /v1/orders HTTP/1.1\" 200 512 \
         \"https://shop.example.com/cart\" \"curl/8.5\" 3a309775852f7d68"
            .to_owned(),
        "- - - [19/Nov/2026:06:00:00 +0000] \"-\" 400 0 \"-\" \"-\" 0000000000000001".to_owned(),
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_json_line_has_every_field() {
    let digest = digest();
    let line = logged(AccessLogFormat::Json, 100, &[record()]);
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    for (name, value) in [
        ("time", "2026-11-19T06:00:00.000Z"),
        ("id", "3a309775852f7d68"),
        ("protocol", "HTTP/1.1"),
        ("network", "203.0.113.0/24"),
        ("client", digest.as_str()),
        ("proof", "api_key"),
        ("referer", "https://shop.example.com/cart"),
        ("user_agent", "curl/8.5"),
    ] {
        assert_eq!(json[name], value, "{name}");
    }
}

#[test]
fn no_field_of_a_caller_ends_a_field_or_a_line() {
    let hostile = HeaderValue::from_bytes(b"a\" 200 \\ \xc3\xa9\tb").unwrap();
    let hostile = AccessRecord {
        path: "/\"\\\r\n\u{1b}[2J".to_owned(),
        referer: Some(hostile.clone()),
        user_agent: Some(hostile),
        ..record()
    };
    let combined = logged(AccessLogFormat::Combined, 100, std::slice::from_ref(&hostile));
    assert!(
        combined.contains(r#""GET /\x22\x5C\x0D\x0A\x1B[2J HTTP/1.1" 200 512 "a\x22 200 \x5C \xC3\xA9\x09b" "a\x22 2"#)
    );
    assert_eq!((combined.lines().count(), combined.matches('"').count()), (1, 6), "{combined}");
    let json = logged(AccessLogFormat::Json, 100, &[hostile]);
    assert_eq!(json.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["path"], &json["user_agent"]), (&"/\"\\\r\n\u{1b}[2J".into(), &"a\" 200 \\ \u{e9}\tb".into()));
}

#[test]
fn keys_and_queries_are_in_no_line_and_long_fields_are_cut() {
    for format in [AccessLogFormat::Json, AccessLogFormat::Combined] {
        let long = AccessRecord { user_agent: HeaderValue::from_str(&"x".repeat(9_000)).ok(), ..record() };
        let line = logged(format, 100, &[long]);
        assert!(line.contains(&digest()) && !line.contains("secret") && !line.contains("key="), "{line}");
        assert!(line.len() < 2_000 && line.contains(&"x".repeat(FIELD_BYTES_MAX)), "{line}");
    }
}

#[test]
fn sampling_leaves_out_what_went_well_and_nothing_else() {
    for format in [AccessLogFormat::Json, AccessLogFormat::Combined] {
        let refused = AccessRecord { outcome: "denied", status: 429, ..record() };
        let failed = AccessRecord { status: 500, ..record() };
        let all = [record(), refused, failed];
        assert_eq!(logged(format, 0, &all).lines().count(), 2);
        assert_eq!(logged(format, 100, &all).lines().count(), 3);
        let many: Vec<AccessRecord> = (0..2_000).map(|_| record()).collect();
        let written = logged(format, 25, &many).lines().count();
        assert!((300..700).contains(&written), "a quarter of 2,000: {written}");
    }
}
