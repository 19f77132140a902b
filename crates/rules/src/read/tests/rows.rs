//! Rows of RELIABILITY.md that the reader handles, named after their ids.

use super::*;

/// Codes of all problems, in order.
fn codes(text: &str) -> Vec<&'static str> {
    match read("rules.yaml", text) {
        Ok(_) => Vec::new(),
        Err(report) => report.problems.iter().map(|problem| problem.code).collect(),
    }
}

/// The only problem of a rule whose limit has these fields.
fn limit_problem(fields: &str) -> Option<Problem> {
    let report = only_rule(&format!("limit: {{ {fields} }}")).err()?;
    assert_eq!(report.problems.len(), 1, "{report}");
    report.problems.into_iter().next()
}

#[test]
fn y01_anchors_aliases_merges_and_tags() {
    let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nrules: [*c]\n";
    assert!(codes(laughs).iter().all(|code| matches!(*code, "yaml-anchor" | "yaml-alias")), "{:?}", codes(laughs));
    let report = read("rules.yaml", laughs).unwrap_err();
    assert_eq!(report.problems[0].line, 1);
    assert_eq!(codes("rules: *none\n"), ["yaml-alias"]);
    assert_eq!(codes("rules:\n  - <<: { a: 1 }\n"), ["yaml-merge"]);
    for tag in ["!!python/object:os.system x", "!custom x", "!!str x", "! x", "!<tag:yaml.org,2002:str> x"] {
        assert_eq!(codes(&format!("rules: {tag}\n")), ["yaml-tag"], "{tag}");
    }
    assert_eq!(codes("%YAML 1.2\n---\nrules: []\n"), ["yaml-syntax"]);
    assert_eq!(codes("rules: []\n---\nrules: []\n"), ["several-documents"]);
}

#[test]
fn y02_nesting() {
    for open in ["[", "{a: ", "- ", "a: ["] {
        assert_eq!(codes(&open.repeat(5_000)), ["too-deep"], "{open}");
    }
    let block: String = (0..5_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(codes(&block), ["too-deep"]);
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(codes(&deep(16)), ["wrong-type"]);
    assert_eq!(codes(&deep(17)), ["too-deep"]);
}

#[test]
fn y03_sizes() {
    let text = "#".repeat((16 << 20) + 1);
    assert_eq!(codes(&text), ["too-large"]);
    assert_eq!(codes(&text[1..]), ["missing-field"]);
    assert_eq!(codes(&format!("rules: {}", "a".repeat(1_000_000))), ["too-large"]);
    let rule = "- limit: {requests: 1, window: 1s}\n";
    let file = |count: usize| format!("rules:\n{}", rule.repeat(count));
    assert_eq!(codes(&file(100_001)), ["too-large"]);
    assert_eq!(good(&file(100_000)).rules.len(), 100_000);
    assert_eq!(codes(&format!("rules: [{}]", "[],".repeat(2_100_000))), ["too-large"]);
}

#[test]
fn y04_scalars() {
    let cases = [
        ("1_000", "wrong-type", "did you mean 1000?"),
        ("010", "wrong-type", "did you mean 10?"),
        ("1e3", "wrong-type", "digits only"),
        ("\"10\"", "wrong-type", "no quotes"),
        ("'10'", "wrong-type", "no quotes"),
        ("10.0", "wrong-type", "digits only"),
        (".inf", "wrong-type", "digits only"),
        (".nan", "wrong-type", "digits only"),
        ("yes", "wrong-type", "digits only"),
        ("true", "wrong-type", "digits only"),
        ("0x10", "wrong-type", "digits only"),
        ("0o10", "wrong-type", "digits only"),
        ("+10", "wrong-type", "digits only"),
        ("1 0", "wrong-type", "digits only"),
        ("\u{663}", "wrong-type", "digits only"),
        ("-1", "out-of-range", "allowed: 0 to 9007199254740992"),
        ("9007199254740993", "out-of-range", "allowed: 0 to"),
        ("9223372036854775808", "out-of-range", "allowed: 0 to"),
        ("18446744073709551616", "out-of-range", "allowed: 0 to"),
        ("[1]", "wrong-type", "a whole number"),
        ("{ a: 1 }", "wrong-type", "a whole number"),
        ("~", "blank", "a whole number"),
        ("null", "blank", "a whole number"),
        ("", "blank", "a whole number"),
    ];
    for (value, code, help) in cases {
        let problem = limit_problem(&format!("window: 1s, requests: {value}")).unwrap();
        assert_eq!((problem.code, problem.field.as_str()), (code, "rules[0].limit.requests"), "{value}: {problem:?}");
        assert!(problem.message.contains("rules[0].limit.requests"), "{value}: {problem:?}");
        assert!(problem.help.as_deref().unwrap_or("").contains(help), "{value}: {problem:?}");
    }
    for field in ["unlimited", "count_denied", "accept_limits"] {
        for value in ["yes", "on", "True", "\"true\"", "1", "~", ""] {
            let text = format!("{field}: {value}\n    limit: {{ requests: 1, window: 1s }}");
            assert!(only_rule(&text).is_err(), "{field} {value}");
        }
    }
}

#[test]
fn y04_blank_fields_are_named() {
    for field in RULE_FIELDS.iter().filter(|field| **field != "limit") {
        for blank in ["", "~", "null"] {
            let report = only_rule(&format!("limit: {{ requests: 1, window: 1s }}\n    {field}: {blank}")).unwrap_err();
            let problem = &report.problems[0];
            assert_eq!((problem.code, problem.field.clone()), ("blank", format!("rules[0].{field}")), "{report}");
        }
    }
    for field in FILE_FIELDS.iter().filter(|field| **field != "rules") {
        let report = read("f", &format!("rules:\n  - limit: {{ requests: 1, window: 1s }}\n{field}:\n")).unwrap_err();
        assert_eq!((report.problems[0].code, report.problems[0].field.as_str()), ("blank", *field), "{report}");
    }
    for field in ["limit", "rules"] {
        let text = if field == "limit" { "rules:\n  - limit:\n" } else { "rules:\n" };
        assert_eq!(codes(text), ["blank"], "{field}");
    }
    assert_eq!(codes("rules:\n  -\n"), ["blank"]);
    assert_eq!(codes("rules: []\n"), ["missing-field"]);
    assert_eq!(codes(""), ["missing-field"]);
}

#[test]
fn y07_typos_are_recognised() {
    let cases = [
        ("limt: { requests: 1, window: 1s }", "`limit`"),
        ("limit: { requsts: 1, window: 1s }", "`requests`"),
        ("limit: { requests: 1, window: 1secnd }", "`1s`"),
        ("limit: { requests: 1, window: 1s, algorithm: gcar }", "`gcra`"),
        ("{ limit: { requests: 1, window: 1s }, mode: shadwo }", "`shadow`"),
        ("{ limit: { requests: 1, window: 1s }, on_fail: lcoal }", "`local`"),
        ("{ limit: { requests: 1, window: 1s }, keyby: api_key }", "`key_by`"),
    ];
    for (fields, meant) in cases {
        let report = only_rule(fields).unwrap_err();
        assert_eq!(report.problems.len(), 1, "{report}");
        assert!(report.to_string().contains(&format!("did you mean {meant}?")), "{report}");
    }
}

#[test]
fn y10_networks() {
    for value in ["1.2.3.4/33", "10.0.0.1/8", "010.0.0.1", "\"!10.0.0.1/8\"", "[10.0.0.0/8, nonsense]", "10.*"] {
        let text = format!("match: {{ ip: {value} }}\n    limit: {{ requests: 1, window: 1s }}");
        let report = only_rule(&text).unwrap_err();
        assert_eq!(report.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["bad-address"], "{report}");
    }
}

#[test]
fn y12_blocking_everything_must_be_asked_for() {
    let limit = "limit: { requests: 0, window: 1s }";
    let wide = [
        "",
        "match: {}",
        "match: { endpoint: \"*\" }",
        "match: { endpoint: [\"/x\", \"/*\"] }",
        "match: { tier: \"*\" }",
    ];
    for matching in wide {
        let rule = format!("rules:\n  - {limit}\n    {matching}\n");
        assert_eq!(codes(&rule), ["block-all"], "{matching}");
        assert_eq!(codes(&format!("allow_block_all: true\n{rule}")), [] as [&str; 0], "{matching}");
        assert_eq!(codes(&format!("{rule}    mode: shadow\n")), [] as [&str; 0], "{matching}");
    }
    for narrow in ["match: { tier: free }", "match: { endpoint: /old/* }", "match: { endpoint: GET * }"] {
        assert_eq!(codes(&format!("rules:\n  - {limit}\n    {narrow}\n")), [] as [&str; 0], "{narrow}");
    }
    assert_eq!(codes("rules:\n  - limit: { algorithm: concurrency, slots: 0 }\n"), ["block-all"]);
}

#[test]
fn j11_windows_and_limits() {
    let cases = [
        ("0s", "out-of-range"),
        ("1ns", "out-of-range"),
        ("999us", "out-of-range"),
        ("367d", "out-of-range"),
        ("1000000000000000000s", "bad-duration"),
        ("1M", "bad-duration"),
        ("PT1M", "bad-duration"),
        ("60", "bad-duration"),
        ("\"60\"", "bad-duration"),
        ("1.5s", "bad-duration"),
        ("-1s", "bad-duration"),
        ("\"\"", "bad-duration"),
        ("~", "blank"),
        ("[1s]", "blank"),
    ];
    for (window, code) in cases {
        let problem = limit_problem(&format!("requests: 1, window: {window}")).unwrap();
        let code = if window == "[1s]" { "wrong-type" } else { code };
        assert_eq!((problem.code, problem.field.as_str()), (code, "rules[0].limit.window"), "{problem:?}");
    }
    for window in ["1ms", "\"1m\"", "366d", "1h30m"] {
        assert_eq!(limit_problem(&format!("requests: 1, window: {window}")), None, "{window}");
    }
}

#[test]
fn j12_j13_rates_and_bursts() {
    let cases = [
        ("requests: 9007199254740992, window: 1ms", Some("too-fast")),
        ("requests: 1001, window: 1ms", Some("too-fast")),
        ("requests: 1000, window: 1ms", None),
        ("requests: 1000000, window: 1s, algorithm: gcra", None),
        ("requests: 1000001, window: 1s, algorithm: gcra", Some("too-fast")),
        ("requests: 1000001, window: 1s, algorithm: leaky_bucket, max_delay: 1s", Some("too-fast")),
        ("requests: 9007199254740992, window: 1ms, algorithm: fixed_window", None),
        ("requests: 9007199254740992, window: 1ms, algorithm: sliding_window", None),
        ("requests: 10, window: 1s, burst: 1000000001", Some("out-of-range")),
        ("requests: 10, window: 1s, burst: 1000000000", None),
        ("requests: 10, window: 1s, burst: -1", Some("out-of-range")),
        ("requests: 10, window: 1s, burst: 1e-300", Some("wrong-type")),
        ("requests: 1, window: 366d, burst: 1000", Some("too-slow")),
        ("requests: 1, window: 366d, burst: 100", None),
        ("requests: 10000, window: 1h, algorithm: sliding_window_log", None),
        ("requests: 10001, window: 1h, algorithm: sliding_window_log", Some("out-of-range")),
        ("algorithm: concurrency, slots: 1000001", Some("out-of-range")),
    ];
    for (fields, code) in cases {
        assert_eq!(limit_problem(fields).map(|problem| problem.code), code, "{fields}");
    }
}

#[test]
fn fields_belong_to_algorithms() {
    let cases = [
        "requests: 1, window: 1s, algorithm: fixed_window, burst: 2",
        "requests: 1, window: 1s, algorithm: sliding_window, burst: 2",
        "requests: 1, window: 1s, algorithm: sliding_window_log, align: key",
        "requests: 1, window: 1s, algorithm: leaky_bucket, burst: 2, max_delay: 1s",
        "requests: 1, window: 1s, max_delay: 1s",
        "requests: 1, window: 1s, align: key",
        "requests: 1, window: 1s, slots: 5",
        "algorithm: concurrency, slots: 5, requests: 1",
        "algorithm: concurrency, slots: 5, window: 1s",
        "requests: 0, window: 1s, burst: 5",
    ];
    for fields in cases {
        let text = format!("match: {{ tier: free }}\n    limit: {{ {fields} }}");
        let report = only_rule(&text).unwrap_err();
        assert_eq!(
            report.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(),
            ["misplaced-field"],
            "{report}"
        );
    }
    assert_eq!(limit_problem("algorithm: concurrency").map(|problem| problem.code), Some("missing-field"));
    assert_eq!(limit_problem("window: 1s").map(|problem| problem.code), Some("missing-field"));
}

#[test]
fn n05_case_may_be_set_per_rule() {
    let rule =
        only_rule("{ match: { endpoint: /Login }, case: insensitive, limit: { requests: 1, window: 1s } }").unwrap();
    assert!(rule.matches.endpoint.unwrap().matches(None, "/LOGIN"));
}

#[test]
fn files_that_are_not_text() {
    let code = |bytes: &[u8]| read_bytes("f", bytes).unwrap_err().problems[0].code;
    assert_eq!(code(b"\xef\xbb\xbfrules:\n"), "byte-order-mark");
    assert_eq!(code(b"\xff\xfer\0u\0"), "not-utf8");
    let report = read_bytes("f", b"a: b\nc: \xff\n").unwrap_err();
    assert_eq!((report.problems[0].line, report.problems[0].column), (2, 4));
    assert_eq!(codes("{1: 2}\n"), ["missing-field", "unknown-field"]);
    assert_eq!(codes("? [a]\n: b\n"), ["bad-key"]);
    assert_eq!(codes("~: b\n"), ["bad-key"]);
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let text = "on_fail: maybe\nrules:\n  - limit: { requests: x, window: y, algorithm: z }\n    mode: q\n    colour: red\n  - {}\nextra: 1\n";
    assert_eq!(
        codes(text),
        [
            "unknown-value",
            "wrong-type",
            "bad-duration",
            "unknown-value",
            "unknown-value",
            "unknown-field",
            "missing-field",
            "unknown-field"
        ]
    );
    let many = format!("rules:\n{}", "  - limit: x\n".repeat(3_000));
    let report = read("f", &many).unwrap_err();
    assert_eq!((report.problems.len(), report.more), (50, 2950));
}
