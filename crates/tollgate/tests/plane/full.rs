//! F37: a full disk, on a small file system.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::rig::Place;

/// A file system in memory, unmounted when dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(bytes: u64) -> Small {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=0700"), "tollgate-test"])
            .arg(dir.path())
            .output();
        match mounted {
            Ok(done) if done.status.success() => Small(dir),
            other => panic!("cannot mount a small file system, which takes root: {other:?}"),
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn f37_a_full_disk_refuses_writes_with_507_and_decisions_go_on_until_there_is_room_again() {
    let small = Small::mount(2 << 20);
    let place = Place::on(&format!("sqlite:{}", small.path().join("tollgate.db").display()));
    let node = place.start(None);
    assert_eq!(node.make("first", "/first", 51).status, 201);
    node.serves("/first", 51, Duration::from_secs(5));
    let ballast = small.path().join("ballast");
    let filled = Command::new("dd").args(["if=/dev/zero", "bs=4k"]).arg(format!("of={}", ballast.display())).output();
    assert!(!filled.unwrap().status.success(), "the disk is full");

    let mut kept = 0;
    let refused = (0..200).find_map(|round| {
        let answer = node.make(&format!("rule-{round}"), &format!("/{round}"), 1);
        match answer.status {
            201 => {
                kept += 1;
                None
            }
            _ => Some(answer),
        }
    });
    let refused = refused.expect("at some point there is no room");
    assert_eq!((refused.status, refused.body["code"].as_str()), (507, Some("database_full")), "{refused:?}");
    assert_eq!(node.limit("/first"), Some(51), "decisions go on");
    let listed = node.admin("GET", "/v1/rules?limit=1000", None);
    assert_eq!(listed.body["rules"].as_array().map(Vec::len), Some(kept + 1), "nothing is half applied: {listed:?}");

    std::fs::remove_file(&ballast).unwrap();
    tollgate_lab::patience::until("writes work again without a restart", Duration::from_secs(10), || {
        node.make("again", "/again", 52).status == 201
    });
    node.serves("/again", 52, Duration::from_secs(5));
    let verified = node.admin("GET", "/v1/audit/verify", None);
    assert_eq!(verified.body["intact"].as_bool(), Some(true), "{verified:?}");
}
