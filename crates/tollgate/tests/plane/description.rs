//! The APIs conform to their OpenAPI descriptions: schemathesis reads each from a running server, and sends valid and
//! invalid requests.

use std::path::Path;
use std::process::Command;

use super::rig::{Node, Place};

/// Location of schemathesis, set by script/setup.
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin/schemathesis");

#[test]
fn the_admin_api_conforms_to_its_description() {
    let place = Place::embedded();
    let node = place.start(None);
    // The test would revoke its own token. A stream has no end, and every example of it would wait for the timeout: the
    // tests of the server read it.
    let left_out = ["--exclude-operation-id", "revokeToken", "--exclude-operation-id", "streamEvents"];
    // Covered by other tests: bad tokens would throttle the address of the good one; schemathesis does not know 428
    // for a missing If-Match; and valid fields may still contradict each other.
    let checks = "ignored_auth,missing_required_header,positive_data_acceptance";
    let token = format!("Authorization: Bearer {}", node.token());
    conforms(&place, &node, &node.admin, &[&["--header", &token, "--exclude-checks", checks], &left_out[..]].concat());
}

/// With rules, so that there are decisions of each kind, and refusals by status.
#[test]
fn the_data_api_conforms_to_its_description() {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rules.yaml");
    let place = Place::embedded().with(&["--rules", rules]);
    let node = place.start(None);
    // A receipt is sealed by the server and unknown if another text is sent, and valid fields may contradict each other.
    conforms(&place, &node, &node.data, &["--exclude-checks", "positive_data_acceptance"]);
}

fn conforms(place: &Place, node: &Node, address: &str, arguments: &[&str]) {
    assert!(Path::new(SCHEMATHESIS).is_file(), "schemathesis is not here: script/setup installs it");
    let checked = Command::new(SCHEMATHESIS)
        .current_dir(place.dir.path())
        .args(["run", &format!("http://{address}/openapi.json"), "--no-color"])
        // Deterministic; as many examples as every operation needs.
        .args(["--max-examples", "10", "--generation-deterministic", "--request-timeout", "10"])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(arguments)
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}\n{}\n{}", String::from_utf8_lossy(&checked.stderr), node.log());
}
