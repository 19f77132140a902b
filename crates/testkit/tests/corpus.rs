//! Replays the corpus of every fuzz target: what fuzzing once found stays found, without a fuzzer.
//!
//! Inputs are named after what they are, by the rows of RELIABILITY section 3 where there is one. Inputs that are too
//! large to keep are made here.

use std::fs;
use std::path::PathBuf;

use tollgate_testkit::fuzzing;

#[test]
fn addresses() {
    replay("addresses", fuzzing::addresses);
}

#[test]
fn calendars() {
    replay("calendars", fuzzing::calendars);
}

#[test]
fn decisions() {
    replay("decisions", fuzzing::decision_sequence);
}

#[test]
fn durations() {
    replay("durations", fuzzing::durations);
}

#[test]
fn envoy_config() {
    replay("envoy_config", fuzzing::envoy_config);
}

#[test]
fn forwarded() {
    replay("forwarded", tollgate_http::fuzzing::forwarded);
}

#[test]
fn graphql_cost() {
    replay("graphql_cost", fuzzing::graphql_cost);
}

#[test]
fn forwarded_field() {
    replay("forwarded_field", tollgate_identity::fuzzing::forwarded_field);
}

#[test]
fn jwt() {
    replay("jwt", tollgate_identity::fuzzing::jwt);
}

#[test]
fn proxy_header() {
    replay("proxy_header", tollgate_net::fuzzing::proxy_header);
}

#[test]
fn http_head() {
    replay("http_head", tollgate_http::fuzzing::http_head);
}

#[test]
fn rebuilt_head() {
    replay("rebuilt_head", tollgate_gateway::fuzzing::rebuilt_head);
}

#[test]
fn json_check() {
    replay("json_check", tollgate_service::fuzzing::json_check);
}

#[test]
fn key_builder() {
    replay("key_builder", fuzzing::key_builder);
}

#[test]
fn paths() {
    replay("paths", fuzzing::paths);
}

#[test]
fn receipts() {
    replay("receipts", tollgate_engine::fuzzing::receipts);
}

#[test]
fn requests_together() {
    replay("requests_together", fuzzing::requests_together);
}

#[test]
fn resp_request() {
    replay("resp_request", tollgate_resp_server::fuzzing::resp_request);
}

#[test]
fn rls_request() {
    replay("rls_request", tollgate_service::fuzzing::rls_request);
}

#[test]
fn sse_usage() {
    replay("sse_usage", fuzzing::sse_usage);
}

#[test]
fn yaml_rules() {
    replay("yaml_rules", fuzzing::yaml_rules);
}

/// Y03: what is too large is refused.
#[test]
fn y03_large_files_are_refused_or_read() {
    let rule = "  - { limit: { requests: 1, window: 1s } }\n";
    let files = [
        format!("# {}\n", "x".repeat(16 << 20)),
        format!("rules:\n{}", rule.repeat(100_001)),
        format!("namespace: {}\nrules:\n{rule}", "x".repeat(1_000_000)),
        format!("namespace: {}\nrules:\n{rule}", "x".repeat(64 << 10)),
        format!("rules: [{}]\n", "{a: ".repeat(100_000)),
        format!("{}rules:\n{rule}", "k: *a\n".repeat(20_000)),
    ];
    for file in &files {
        let report = tollgate_rules::read("rules.yaml", file).expect_err("it is too large");
        let shown = report.to_string();
        assert!(shown.len() < 100_000, "{} bytes of report", shown.len());
    }
}

/// Texts that make a careless parser, printer or checker quadratic: 16 KiB of one thing.
#[test]
fn hostile_texts_keep_every_promise() {
    let shapes = [
        ("", "[", ""),
        ("", "- ", ""),
        ("", "? ", ""),
        ("", "a: ", ""),
        ("", "'", ""),
        ("\"", "\\n", ""),
        ("", "&a ", ""),
        ("", "!a ", ""),
        ("", "- *a\n", ""),
        ("", "#\n", ""),
        ("a: [\n", "1, # c\n", "]"),
        ("a: |\n", " \n", ""),
        ("a: >\n", " b\n\n", ""),
        ("a: b\n", " b\n", ""),
        ("", "\t", ""),
        ("", "\r", ""),
        ("", "a\n", ""),
        ("", "%A\n", ""),
        ("", "---\n", ""),
        ("[", "a: b, ", "]"),
        ("rules: [", "[[[[[[[[[[[[[[]]]]]]]]]]]]]],", "]"),
        ("rules: [", "{limit: {requests: 1, window: 1s}},", "]"),
        ("rules: [{limit: {requests: 1, window: 1s}, match: {a: [", "'*a*',", "]}}]"),
        ("rules: [{limit: {requests: 1, window: 1s}, match: {endpoint: [", "'/{a}/*/{b}*c',", "]}}]"),
        ("a:", " ", "b"),
        ("a: b ", "#", ""),
        ("", "\u{e9}", ""),
        ("", "\u{202e}", ": 1"),
    ];
    for (head, unit, tail) in shapes {
        let text = format!("{head}{}{tail}", unit.repeat((16 << 10) / unit.len()));
        run(fuzzing::yaml_rules, text.as_bytes(), &format!("{unit:?} without end"));
    }
}

/// Y08: any prefix of a file that is still being written becomes rules or a report. At the end of a line, where a cut is
/// hardest to see, all promises are checked.
#[test]
fn y08_every_prefix_of_an_example_is_safe() {
    let mut files = files_in("examples");
    files.extend(files_in("fuzz/corpus/yaml_rules").into_iter().filter(|(name, _)| name.starts_with("example-")));
    files.retain(|(name, _)| name.ends_with(".yaml"));
    assert!(files.len() >= 3, "the corpus has examples");
    for (name, bytes) in files {
        for end in 0..=bytes.len() {
            let check = if bytes[..end].ends_with(b"\n") { fuzzing::yaml_rules } else { read_or_report };
            run(check, &bytes[..end], &format!("the first {end} bytes of {name}"));
        }
    }
}

fn read_or_report(bytes: &[u8]) {
    if let Err(report) = tollgate_rules::read_bytes("rules.yaml", bytes) {
        assert!(report.is_fatal() && !report.to_string().is_empty());
    }
}

fn replay(target: &str, check: fn(&[u8])) {
    let inputs = files_in(&format!("fuzz/corpus/{target}"));
    assert!(inputs.len() >= 12, "{target} has {} inputs", inputs.len());
    for (name, bytes) in inputs {
        run(check, &bytes, &format!("fuzz/corpus/{target}/{name}"));
    }
}

/// Names the input when a check panics, which the check itself cannot.
fn run(check: fn(&[u8]), bytes: &[u8], name: &str) {
    let result = std::panic::catch_unwind(|| check(bytes));
    assert!(result.is_ok(), "failed on {name}; what it broke stands above");
}

/// The files of a folder of the repository, by name. Asked at run time: clones may share this binary.
fn files_in(folder: &str) -> Vec<(String, Vec<u8>)> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = PathBuf::from(here).join("../..").join(folder);
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let files = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()));
    let mut files: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let bytes = fs::read(file.path()).expect("an input can be read");
            (file.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    files.sort();
    files
}
