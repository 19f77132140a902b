//! API keys of the database at the gateway: they prove who is asking, from the moment they are made until they are revoked.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tollgate_lab::patience;

use super::rig::{Node, Place, call};

const SOON: Duration = Duration::from_secs(20);
const RULES: &str = "rules:
  - { name: by-key, key_by: client_key, limit: { requests: 2, window: 1h, algorithm: fixed_window } }
";

/// A server that answers every request with 200, on connections of their own.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head); // requests without a body, small enough for one read
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    url
}

fn status(node: &Node, key: Option<&str>) -> u16 {
    let fields: Vec<(&str, &str)> = key.iter().map(|key| ("X-Api-Key", *key)).collect();
    call(&node.gateway, "GET", "/orders", &fields, None).unwrap().status
}

#[test]
fn a_key_has_its_own_bucket_from_its_creation_to_its_revocation() {
    let place = Place::embedded();
    let rules = place.dir.path().join("limits.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let upstream = server();
    let arguments = ["--rules", rules.to_str().unwrap(), "--listen", "127.0.0.1:0", "--upstream", &upstream];
    let place = place.with(&arguments);
    let node = place.start(None);
    assert_eq!([status(&node, None), status(&node, Some("invented")), status(&node, None)], [200, 200, 429]);

    let client = json!({ "client_key": "user:42", "tier": "pro" });
    assert_eq!(node.admin("POST", "/v1/clients", Some(client)).status, 201);
    let made = node.admin("POST", "/v1/keys", Some(json!({ "client_key": "user:42", "name": "mobile" })));
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.body["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    patience::until(&format!("the key is known; log:\n{}", node.log()), SOON, || status(&node, Some(&key)) == 200);
    assert_eq!(status(&node, None), 429, "the address is as it was");

    let id = made.body["key_id"].as_str().unwrap_or_else(|| panic!("{made:?}"));
    let revoked = node.admin("DELETE", &format!("/v1/keys/{id}"), None);
    assert!(matches!(revoked.status, 200 | 204), "{revoked:?}");
    patience::until("the key is revoked", SOON, || status(&node, Some(&key)) == 429);
}
