//! The shell that outlives a test by a moment, to end what the test started.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Reads `start PID`, `leave PID` (it is asked to end before it is killed) and `end PID` until the pipe closes.
/// Signals for the whole test must not end it first.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
alive=' ' asked=' '
while read -r word pid; do
  case $word in
    start) alive="$alive$pid " ;;
    leave) asked="$asked$pid " ;;
    end) alive="${alive%%" $pid "*} ${alive#*" $pid "}" ;;
  esac
done
leaving=
for pid in $alive; do
  case $asked in
    *" $pid "*) kill -QUIT "$pid" && kill -CONT "$pid" && leaving="$leaving $pid" ;;
    *) kill -9 "$pid" ;;
  esac
done
tries=100
for pid in $leaving; do
  while [ $tries -gt 0 ] && kill -0 "$pid"; do sleep 0.1; tries=$((tries - 1)); done
  kill -9 "$pid"
done
rm -rf "$1"
"#;

struct Reaper {
    child: Mutex<Child>,
    root: PathBuf,
}

fn reaper() -> &'static Reaper {
    static REAPER: OnceLock<Reaper> = OnceLock::new();
    REAPER.get_or_init(|| {
        let root = tempfile::Builder::new().prefix("tollgate-test-").tempdir().expect("a directory for tests").keep();
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(&root)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0) // who ends the test by its group does not end this
            .spawn()
            .expect("a shell");
        Reaper { child: Mutex::new(child), root }
    })
}

/// Where files of this process belong.
pub(super) fn root() -> &'static Path {
    &reaper().root
}

/// This child must not outlive us.
pub(super) fn expect(pid: u32) {
    tell(&format!("start {pid}\n"));
}

/// This child is to be asked first.
pub(super) fn take_leave_of(pid: u32) {
    tell(&format!("leave {pid}\n"));
}

/// This child is gone, and its number may become somebody else's.
pub(super) fn forget(pid: u32) {
    tell(&format!("end {pid}\n"));
}

fn tell(line: &str) {
    let mut child = reaper().child.lock().expect("nobody panics while telling");
    let input = child.stdin.as_mut().expect("the input is a pipe");
    input.write_all(line.as_bytes()).expect("the reaper listens");
}
