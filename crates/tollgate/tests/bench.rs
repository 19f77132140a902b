//! `tollgate bench` against a small server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use support::Dir;

/// Denies every fourth request, and records the first request head. Runs until the test process ends.
fn server(status: &'static str) -> (SocketAddr, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, first) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(String::new())));
    let seen = Arc::clone(&first);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen) = (stream.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || {
                let (mut buffer, mut number) = ([0; 4096], 0);
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let mut seen = seen.lock().unwrap();
                    if seen.is_empty() {
                        *seen = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    }
                    drop(seen);
                    number += 1;
                    let body = format!("{{\"allowed\":{}}}", number % 4 != 0);
                    let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    if stream.write_all(reply.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, first)
}

fn bench(address: SocketAddr, flags: &[&str]) -> (String, Option<i32>) {
    let dir = Dir::new(&format!("bench-{}", address.port()));
    let mut command = dir.tollgate();
    command.args(["bench", "--url", &format!("http://{address}/v1/check"), "--warmup", "0s", "--duration", "300ms"]);
    let output = command.args(flags).env("TOLLGATE_TOKEN", "s3cret").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn counts_everything_and_prints_json() {
    let (address, first) = server("200 OK");
    let (text, code) = bench(address, &["--json", "--connections", "3", "--header", "X-Trace: {key}"]);
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |name: &str| told[name].as_u64().unwrap();
    assert_eq!(code, Some(0), "{text}");
    assert!(number("sent") > 0);
    assert_eq!(number("sent"), number("answered"));
    assert_eq!(number("answered"), number("allowed") + number("denied"));
    assert!((number("answered") / 4).abs_diff(number("denied")) <= 3, "{text}");
    assert_eq!(told["errors"]["total"], 0);
    let spread = told["distribution"].as_array().unwrap();
    let spread: u64 = spread.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
    assert_eq!(spread, number("answered"), "every reply is in one bucket");
    assert_eq!(told["series"].as_array().unwrap().len(), 1);
    assert!(!text.contains("s3cret"));

    let first = first.lock().unwrap();
    let (head, body) = first.split_once("\r\n\r\n").unwrap();
    let key = body.split('"').nth(3).unwrap();
    assert_eq!(body, format!("{{\"client_key\":\"{key}\",\"endpoint\":\"/api/orders\",\"tier\":\"free\"}}"));
    assert!(key.len() == 16 && key.starts_with("key:"), "{key}");
    assert!(head.starts_with("POST /v1/check HTTP/1.1\r\n"), "{head}");
    for header in [format!("X-Trace: {key}"), "authorization: Bearer s3cret".to_owned(), format!("host: {address}")] {
        assert!(head.contains(&format!("\r\n{header}")), "{header}: {head}");
    }
}

#[test]
fn prints_figures_and_plots() {
    let (address, _) = server("200 OK");
    let (text, code) = bench(address, &["--rate", "500", "--connections", "2"]);
    assert_eq!(code, Some(0), "{text}");
    let heading = format!(
        "http://{address}/v1/check\n2 connections, open loop, 500/s, 100,000 keys, 300ms after 0ns of warm-up\n"
    );
    assert!(text.starts_with(&heading), "{text}");
    for part in ["\nrate ", "\nlatency     p50 ", "\nLatency, up to\n", "\nRate over time\n", "####"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn errors_are_printed_and_set_the_exit_code() {
    let (address, _) = server("503 Service Unavailable");
    let (text, code) = bench(address, &["--connections", "1"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(" with status 503\n") && text.contains("\nfirst       HTTP/1.1 503"), "{text}");
}
