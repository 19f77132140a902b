//! `tollgate check` and `tollgate explain` against a server: TCP, TLS, Unix sockets, tokens, and other servers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "support/server.rs"]
mod running;
mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

use running::Server;
use support::Dir;

const ORDER: [&str; 6] = ["--client-key", "user:42", "--endpoint", "POST /api/orders", "--tier", "free"];

fn check(dir: &Dir, args: &[&str]) -> (i32, String, String) {
    parts(&dir.tollgate().arg("check").args(ORDER).args(args).output().unwrap())
}

fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn shows_the_decision_of_a_server_over_tcp_and_unix_sockets() {
    let dir = Dir::new("client");
    let socket = format!("unix:{}", dir.path("s").display());
    let server =
        Server::start(dir.tollgate(), &["--rules", "examples/rules.yaml", "--http", "127.0.0.1:0", "--http", &socket]);
    assert!(server.announced.contains("9 rules from examples/rules.yaml"), "{}", server.announced);
    let (code, text, _) = check(&dir, &["--url", server.url()]);
    let expected = "allowed by free-writes: 19 of 20 left

   RULE         OUTCOME  LIMIT  REMAINING  RETRY AFTER
>  free-writes  allowed  20     19         -
   free-hourly  allowed  1000   999        -
   daily-trial  allowed  5000   4999       -            shadow: does not deny

mode store, rules generation 1
";
    assert_eq!((code, text.as_str()), (0, expected));
    let (code, text, _) = check(&dir, &["--url", &server.urls[1], "--repeat", "1000"]);
    assert_eq!(code, 1, "most of them are too many");
    assert!(text.contains("denied by free-writes: retry after "), "{text}");
    assert!(text.contains("\n1000 requests: "), "{text}");
    let (_, text, _) = check(&dir, &["--url", server.url(), "--json", "--peek"]);
    assert!(text.starts_with("{\"allowed\":") && text.ends_with("}\n") && text.lines().count() == 1, "{text}");
    let (code, _, error) = check(&dir, &["--url", server.url(), "--ip", "nowhere"]);
    let expected =
        "rejected the request: ip: not an address; write 192.0.2.1 or 2001:db8::1 (bad_address, status 400)\n";
    assert!(code == 2 && error.ends_with(expected), "{error}");
    let explained = dir.tollgate().args(["explain", "--url", server.url()]).args(ORDER).output().unwrap();
    let (code, text, _) = parts(&explained);
    assert_eq!(code, 0);
    assert!(
        text.contains(
            "\npaid (file examples/rules.yaml:22): does not apply\n  because   tier should be paid, is free\n"
        ),
        "{text}"
    );
}

#[test]
fn a_server_may_deny_by_status() {
    let dir = Dir::new("by-status");
    let args = ["--rules", "examples/rules.yaml", "--http", "127.0.0.1:0", "--refused-status", "429"];
    let server = Server::start(dir.tollgate(), &args);
    let (code, text, _) = check(&dir, &["--url", server.url(), "--cost", "21"]);
    assert_eq!(code, 1);
    assert!(text.starts_with("denied by free-writes: can never pass, the cost exceeds the limit\n"), "{text}");
}

#[test]
fn sends_a_token_from_a_file_or_the_environment() {
    let dir = Dir::new("token");
    dir.write("tokens", "# ours\n0123456789abcdef0123456789abcdef\n");
    dir.write("wrong", "ffffffffffffffffffff\n");
    let server = Server::start(dir.tollgate(), &["--http", "127.0.0.1:0", "--token-file", "tokens"]);
    let asked = |args: &[&str]| check(&dir, &[&["--url", server.url()], args].concat());
    assert_eq!(asked(&["--token-file", "tokens"]).0, 0);
    let message =
        format!("error: {} requires a valid token: use --token-file FILE or TOLLGATE_TOKEN (no_token)\n", server.url());
    for args in [&[][..], &["--token-file", "wrong"]] {
        assert_eq!(asked(args), (2, String::new(), message.clone()));
    }
    let mut command = dir.tollgate();
    command.env("TOLLGATE_TOKEN", "0123456789abcdef0123456789abcdef").env("TOLLGATE_URL", server.url());
    assert_eq!(parts(&command.arg("check").args(ORDER).output().unwrap()).0, 0);
}

#[test]
fn trusts_only_the_given_ca() {
    let dir = Dir::new("tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    dir.write("cert.pem", made.cert.pem());
    dir.write("key.pem", made.signing_key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    dir.write("other.pem", other.cert.pem());
    let args = ["--http", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let server = Server::start(dir.tollgate(), &args);
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let (code, text, error) = check(&dir, &["--url", server.url(), "--ca", "cert.pem", "--repeat", "3"]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(text.ends_with("3 requests: 3 allowed, 0 denied\n"), "{text}");
    let (code, _, error) = check(&dir, &["--url", server.url(), "--ca", "other.pem"]);
    assert!(code == 2 && error.contains("is not trusted") && error.contains("--ca FILE"), "{error}");
    let plain = server.url().replace("https", "http");
    let (code, _, error) = check(&dir, &["--url", &plain]);
    assert!(code == 2 && !error.is_empty(), "{error}");
}

/// A CA, a server certificate and a client certificate for the admin listener.
fn certificates(dir: &Dir) {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    dir.write("ca.pem", authority.self_signed(&key).unwrap().pem());
    let authority = rcgen::Issuer::new(authority, key);
    for (name, names) in [("node", vec!["127.0.0.1".to_owned()]), ("me", vec!["me.example".to_owned()])] {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        dir.write(&format!("{name}.pem"), certificate.pem());
        dir.write(&format!("{name}-key.pem"), key.serialize_pem());
    }
}

#[test]
fn sends_a_client_certificate_to_the_admin_listener() {
    let dir = Dir::new("mutual");
    certificates(&dir);
    let tls = ["--admin-tls-cert", "node.pem", "--admin-tls-key", "node-key.pem", "--admin-client-ca", "ca.pem"];
    let args = [&["--http", "127.0.0.1:0", "--state-dir", "state"][..], &tls].concat();
    let server = Server::start(dir.tollgate(), &args);
    assert!(server.admin.starts_with("https://127.0.0.1:"), "{}", server.admin);
    let asked =
        |args: &[&str]| parts(&server.operator(&dir).args(["mode", "--ca", "ca.pem"]).args(args).output().unwrap());
    assert_eq!(
        asked(&["--cert", "me.pem", "--key", "me-key.pem"]),
        (0, "enforce, the whole fleet\n".to_owned(), String::new())
    );
    let (code, text, error) = asked(&[]);
    assert_eq!((code, text.as_str()), (2, ""), "{error}");
    assert!(error.contains("certificate"), "{error}");
    let (code, _, error) = asked(&["--cert", "me.pem", "--key", "node-key.pem"]);
    assert!(code == 2 && error.contains("me.pem and node-key.pem cannot be used"), "{error}");
}

/// The health check of an image that has nothing but the program.
#[test]
fn ready_is_the_exit_code_of_a_health_check() {
    let dir = Dir::new("ready");
    let server = Server::start(dir.tollgate(), &["--rules", "examples/rules.yaml", "--http", "127.0.0.1:0"]);
    let ask =
        |url: &str, flags: &[&str]| parts(&dir.tollgate().args(["ready", "--url", url]).args(flags).output().unwrap());
    assert_eq!(ask(server.url(), &[]), (0, "{\"ready\":true}\n".to_owned(), String::new()));
    assert_eq!(ask(server.url(), &["--live"]), (0, "{\"live\":true}\n".to_owned(), String::new()));
    let draining =
        "HTTP/1.1 503 Draining\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"ready\":false}";
    let (url, drains) = stranger(draining.to_owned());
    assert_eq!(ask(&url, &[]), (1, "{\"ready\":false}\n".to_owned(), String::new()));
    drains.join().unwrap();
    assert_eq!(ask("http://127.0.0.1:1", &[]).0, 2, "no server");
}

#[test]
fn recognises_other_servers() {
    let dir = Dir::new("strangers");
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    let moved = "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", " ".repeat(5 << 20));
    for (answer, message) in [
        (html, "is not a Tollgate server: it responded with status 200 and text/html\n"),
        (moved, "is not a Tollgate server: it responded with status 301 and no media type\n"),
        (&huge, "cannot be read: length limit exceeded\n"),
        ("220 mail ESMTP\r\n", "does not speak HTTP; if it speaks TLS, write https://\n"),
        ("", "closed the connection without a response: connection closed before message completed\n"),
    ] {
        let (url, stranger) = stranger(answer.to_owned());
        let (code, _, error) = check(&dir, &["--url", &url]);
        assert!(code == 2 && error.ends_with(message), "{error}");
        stranger.join().unwrap();
    }
}

/// Waits for the client's timeout: the test is that it ends.
#[test]
fn times_out_on_a_silent_server() {
    let dir = Dir::new("silent");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap(); // the kernel accepts; no response is sent
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (code, _, error) = check(&dir, &["--url", &url]);
    assert_eq!((code, error), (2, format!("error: {url} did not respond within 5 s\n")));
}

/// A server that sends one response to one client.
fn stranger(answer: String) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let talk = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).unwrap();
        let _ = stream.write_all(answer.as_bytes()); // the client may have closed already
    };
    (url, thread::spawn(talk))
}
