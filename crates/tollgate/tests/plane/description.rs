//! The admin API does what its description says: schemathesis reads the description from a running server, and sends it
//! what the description allows and what it does not.

use std::path::Path;
use std::process::Command;

use super::rig::Place;

/// Where script/setup puts it.
const SCHEMATHESIS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/bin/schemathesis");

#[test]
fn the_admin_api_keeps_to_its_description() {
    assert!(Path::new(SCHEMATHESIS).is_file(), "schemathesis is not here: script/setup installs it");
    let place = Place::embedded();
    let node = place.start(None);
    let checked = Command::new(SCHEMATHESIS)
        .current_dir(place.dir.path())
        .args(["run", &format!("http://{}/openapi.json", node.admin), "--no-color"])
        .args(["--header", &format!("Authorization: Bearer {}", node.token())])
        // The same every time; what it takes to try every operation, and no more.
        .args(["--max-examples", "10", "--generation-deterministic", "--request-timeout", "10"])
        .args(["--phases", "examples,coverage,fuzzing"])
        // It would revoke its own token.
        .args(["--exclude-operation-id", "revokeToken"])
        // Left to tests of ours: bad tokens would be held against the address of the good one; a missing If-Match is 428,
        // which it does not know; and what a schema allows may still make no sense together.
        .args(["--exclude-checks", "ignored_auth,missing_required_header,positive_data_acceptance"])
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}\n{}\n{}", String::from_utf8_lossy(&checked.stderr), node.log());
}
