//! The admin API does what its description says: schemathesis reads the description from a running server, and sends it
//! what the description allows and what it does not.

mod support;

use std::path::Path;
use std::process::Command;

use support::Dir;
use support::server::Server;

/// Where script/setup puts it.
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin/schemathesis");

#[test]
fn the_admin_api_keeps_to_its_description() {
    assert!(Path::new(SCHEMATHESIS).is_file(), "schemathesis is not here: script/setup installs it");
    let dir = Dir::new("openapi");
    let state = dir.path("state");
    let arguments = ["--http", "127.0.0.1:0", "--db", "sqlite", "--state-dir", state.to_str().unwrap()];
    let server = Server::start(dir.tollgate(), &arguments);
    let token = std::fs::read_to_string(state.join("admin-token")).expect("a first start writes a token");
    let checked = Command::new(SCHEMATHESIS)
        .current_dir(dir.path(""))
        .args(["run", &format!("{}/openapi.json", server.admin), "--no-color"])
        .args(["--header", &format!("Authorization: Bearer {}", token.trim())])
        // The same every time; what it takes to try every operation, and no more.
        .args(["--seed", "1", "--max-examples", "15", "--generation-deterministic", "--request-timeout", "10"])
        // Left to tests of ours: bad tokens would be held against the address of the good one; a missing If-Match is 428,
        // which it does not know; and what a schema allows may still make no sense together.
        .args(["--exclude-checks", "ignored_auth,missing_required_header,positive_data_acceptance"])
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}\n{}", String::from_utf8_lossy(&checked.stderr));
}
