//! The scanner against `serde_json`, and against itself on other cuts.

use proptest::prelude::*;
use serde_json::Value;

use super::{JsonEvent, JsonFault, JsonPart, JsonPath, JsonScanner, JsonSink, scan_all};

/// Everything that is met, as text.
#[derive(Default)]
struct Trace(Vec<String>);

impl JsonSink for Trace {
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, offset: u64) {
        let steps = (0..path.depth()).map(|depth| match path.index(depth) {
            Some(index) => index.to_string(),
            None => format!("{:?}", path.key(depth)),
        });
        self.0.push(format!("{} {event:?} @{offset}", steps.collect::<Vec<_>>().join("/")));
    }
}

fn trace(text: &[u8], size: usize) -> (Result<(), JsonFault>, Vec<String>) {
    let (mut scanner, mut trace) = (JsonScanner::strict(), Trace::default());
    let fed = text.chunks(size).try_for_each(|piece| scanner.feed(piece, &mut trace));
    (fed.and_then(|()| scanner.end(&mut trace)), trace.0)
}

#[test]
fn says_where_everything_is() {
    let (result, events) = trace(br#"{"a":[1,{"b\n":"x\u00e9"}],"c":null, "d":-2.5e3}"#, usize::MAX);
    assert_eq!(result, Ok(()));
    assert_eq!(
        events,
        [
            " Object @0",
            "Some(\"a\") Key { bytes: 1 } @3",
            "Some(\"a\") List @5",
            "Some(\"a\")/0 Number(\"1\") @6",
            "Some(\"a\")/1 Object @8",
            "Some(\"a\")/1/Some(\"b\\n\") Key { bytes: 2 } @13",
            "Some(\"a\")/1/Some(\"b\\n\") Text { text: Some(\"xé\"), bytes: 3 } @23",
            "Some(\"a\")/1 End @24",
            "Some(\"a\") End @25",
            "Some(\"c\") Key { bytes: 1 } @29",
            "Some(\"c\") Null @34",
            "Some(\"d\") Key { bytes: 1 } @39",
            "Some(\"d\") Number(\"-2.5e3\") @46",
            " End @47",
        ]
    );
}

#[test]
fn long_keys_and_texts_keep_their_length_alone() {
    let long = "é".repeat(200);
    let (result, events) = trace(format!(r#"{{"{long}":"{long}"}}"#).as_bytes(), 7);
    assert_eq!(result, Ok(()));
    assert!(events[1].starts_with("None Key { bytes: 400 }"), "{events:?}");
    assert!(events[2].starts_with("None Text { text: None, bytes: 400 }"), "{events:?}");
    let (_, events) = trace(format!("[{}]", "9".repeat(300)).as_bytes(), 7);
    assert!(events[1].starts_with("0 Number(\"\")"), "{events:?}");
}

#[test]
fn refuses_what_is_not_json() {
    let deep = "[".repeat(65);
    for (text, fault) in [
        ("", JsonFault::Incomplete),
        ("  ", JsonFault::Incomplete),
        ("[1", JsonFault::Incomplete),
        ("\"a", JsonFault::Incomplete),
        ("tru", JsonFault::Incomplete),
        ("-", JsonFault::Incomplete),
        ("1.", JsonFault::Incomplete),
        ("[1,]", JsonFault::Syntax(3)),
        ("{\"a\":1,}", JsonFault::Syntax(7)),
        ("{,}", JsonFault::Syntax(1)),
        ("[1}", JsonFault::Syntax(2)),
        ("{\"a\"]", JsonFault::Syntax(4)),
        ("{a:1}", JsonFault::Syntax(1)),
        ("01", JsonFault::Syntax(1)),
        ("+1", JsonFault::Syntax(0)),
        ("1e", JsonFault::Incomplete),
        ("truth", JsonFault::Syntax(3)),
        ("1 2", JsonFault::Syntax(2)),
        ("\"\n\"", JsonFault::Syntax(1)),
        ("\"\\x\"", JsonFault::Syntax(2)),
        ("\"\\ud800\"", JsonFault::Syntax(7)),
        ("\"\\ud800\\n\"", JsonFault::Syntax(8)),
        ("\"\\udc00\"", JsonFault::Syntax(6)),
        ("NaN", JsonFault::Syntax(0)),
        (deep.as_str(), JsonFault::TooDeep),
    ] {
        for size in [1, 2, usize::MAX] {
            assert_eq!(trace(text.as_bytes(), size).0, Err(fault), "{text}");
        }
    }
}

/// Parts of everything that is met, joined as long as they belong together.
#[derive(Default)]
struct Parts(Vec<(JsonPart, Vec<u8>)>);

impl JsonSink for Parts {
    fn part(&mut self, _path: &JsonPath, kind: JsonPart, bytes: &[u8]) {
        match self.0.last_mut().filter(|(last, _)| *last == kind) {
            Some((_, all)) => all.extend_from_slice(bytes),
            None => self.0.push((kind, bytes.to_vec())),
        }
    }

    fn event(&mut self, _path: &JsonPath, _event: JsonEvent<'_>, _offset: u64) {}
}

fn tolerant(text: &[u8], size: usize) -> (Vec<String>, Vec<(JsonPart, String)>, u64) {
    let (mut scanner, mut trace) = (JsonScanner::tolerant(), Trace::default());
    let skipped = text.chunks(size).map(|piece| scanner.feed_or_skip(piece, &mut trace)).sum();
    let (mut scanner, mut parts) = (JsonScanner::tolerant(), Parts::default());
    text.chunks(size).for_each(|piece| _ = scanner.feed_or_skip(piece, &mut parts));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (trace.0, parts.0.into_iter().map(|(kind, bytes)| (kind, text(bytes))).collect(), skipped)
}

#[test]
fn a_tolerant_scanner_replaces_what_is_not_unicode() {
    for (text, content) in [
        (&br#"["\ud83d"]"#[..], "\u{fffd}"),
        (br#"["\ude00"]"#, "\u{fffd}"),
        (br#"["\ud83dx"]"#, "\u{fffd}x"),
        (br#"["\ud83d\n"]"#, "\u{fffd}\n"),
        (br#"["\ud83d\u0041"]"#, "\u{fffd}A"),
        (br#"["\ud83d\ud83d\ude00"]"#, "\u{fffd}\u{1f600}"),
        (br#"["\ud83d\ude00"]"#, "\u{1f600}"),
        (b"[\"a\xffb\"]", "a\u{fffd}b"),
        (b"[\"a\xc3\"]", "a\u{fffd}"),
        ("[\"é\"]".as_bytes(), "é"),
    ] {
        for size in [1, 3, usize::MAX] {
            let (events, parts, skipped) = tolerant(text, size);
            assert_eq!((events.len(), skipped), (3, 0), "{events:?}");
            assert_eq!(parts, [(JsonPart::Text, content.to_owned())], "{}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn a_tolerant_scanner_reads_around_what_is_deep() {
    let deep = format!("{}[\"]\\\"\"]{}", "[".repeat(64), "]".repeat(64));
    let text = format!("{{\"a\":{deep},\"b\":-17}}");
    for size in [1, 7, usize::MAX] {
        let (events, parts, skipped) = tolerant(text.as_bytes(), size);
        assert_eq!(skipped, 0);
        assert!(events.iter().any(|event| event.starts_with("Some(\"b\") Number(\"-17\")")), "{events:?}");
        let ends = events.iter().filter(|event| event.contains(" End ")).count();
        let starts = events.iter().filter(|event| event.contains(" Object ") || event.contains(" List ")).count();
        assert_eq!(starts, ends, "{events:?}");
        assert_eq!(
            parts[1],
            (JsonPart::Deep, "[\"]\\\"\"]]".to_owned()),
            "as it is written, but for the first bracket"
        );
    }
}

#[test]
fn what_is_not_read_is_counted() {
    for (text, skipped) in [("[1,]23", 3), ("{} {}", 2), ("[DONE]", 5), ("{\"a\":\"\\x\"}", 3), ("", 0), ("[1", 0)] {
        for size in [1, 2, usize::MAX] {
            assert_eq!(tolerant(text.as_bytes(), size).2, skipped, "{text}");
        }
    }
}

/// Text that looks like JSON, and sometimes is.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just("\\"),
        Just("\\u"),
        Just("d83d"),
        Just("\\ude00"),
        Just("null"),
        Just("true"),
        Just("-"),
        Just("0"),
        Just("12"),
        Just("."),
        Just("e+"),
        Just(" "),
        Just("\n"),
        Just("é"),
        Just("\"a\":"),
        Just("\"b\""),
        Just("\u{1}"),
    ];
    let tokens = proptest::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes());
    prop_oneof![
        tokens,
        proptest::collection::vec(any::<u8>(), 0..12),
        value().prop_map(|value| value.to_string().into())
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn accepts_what_serde_json_accepts(text in text()) {
        let ours = scan_all(&text, &mut Trace::default()).is_ok();
        let theirs = match serde_json::from_slice::<Value>(&text) {
            // JSON all the same: beyond what a double holds.
            Err(error) => error.to_string().contains("number out of range"),
            Ok(_) => true,
        };
        prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn meets_the_same_however_it_is_cut(text in text(), size in 1..20usize) {
        prop_assert_eq!(trace(&text, size), trace(&text, usize::MAX));
        prop_assert_eq!(tolerant(&text, size), tolerant(&text, usize::MAX));
    }

    /// A tolerant scanner meets the same in JSON.
    #[test]
    fn tolerance_changes_nothing_in_json(value in value()) {
        let text = format!("[{value}]");
        prop_assert_eq!(trace(text.as_bytes(), 9).1, tolerant(text.as_bytes(), 9).0);
    }
}
