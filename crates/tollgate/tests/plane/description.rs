//! The admin API conforms to its OpenAPI description: schemathesis reads the description from a running server, and
//! sends valid and invalid requests.

use std::path::Path;
use std::process::Command;

use super::rig::Place;

/// Location of schemathesis, set by script/setup.
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin/schemathesis");

#[test]
fn the_admin_api_conforms_to_its_description() {
    assert!(Path::new(SCHEMATHESIS).is_file(), "schemathesis is not here: script/setup installs it");
    let place = Place::embedded();
    let node = place.start(None);
    let checked = Command::new(SCHEMATHESIS)
        .current_dir(place.dir.path())
        .args(["run", &format!("http://{}/openapi.json", node.admin), "--no-color"])
        .args(["--header", &format!("Authorization: Bearer {}", node.token())])
        // Deterministic; as many examples as every operation needs.
        .args(["--max-examples", "10", "--generation-deterministic", "--request-timeout", "10"])
        .args(["--phases", "examples,coverage,fuzzing"])
        // The test would revoke its own token.
        .args(["--exclude-operation-id", "revokeToken"])
        // A stream has no end, and every example of it would wait for the timeout: the tests of the server read it.
        .args(["--exclude-operation-id", "streamEvents"])
        // Covered by other tests: bad tokens would throttle the address of the good one; schemathesis does not know 428
        // for a missing If-Match; and valid fields may still contradict each other.
        .args(["--exclude-checks", "ignored_auth,missing_required_header,positive_data_acceptance"])
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}\n{}\n{}", String::from_utf8_lossy(&checked.stderr), node.log());
}
