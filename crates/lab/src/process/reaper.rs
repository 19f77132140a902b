//! A shell that outlives the test for a moment, to end what the test started.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Reads `start PID`, `leave PID` (gets QUIT before KILL) and `end PID` until the pipe closes. Ignores signals that end
/// the whole test.
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
            .process_group(0) // a signal to the process group of the test must not end it
            .spawn()
            .expect("a shell");
        Reaper { child: Mutex::new(child), root }
    })
}

/// The directory for files of this process.
pub(super) fn root() -> &'static Path {
    &reaper().root
}

/// Registers a child, which must not outlive the test.
pub(super) fn register(pid: u32) {
    write_line(&format!("start {pid}\n"));
}

/// Marks a child that gets QUIT before KILL.
pub(super) fn stop_gracefully(pid: u32) {
    write_line(&format!("leave {pid}\n"));
}

/// Forgets a child that has ended: its id may be reused.
pub(super) fn forget(pid: u32) {
    write_line(&format!("end {pid}\n"));
}

fn write_line(line: &str) {
    let mut child = reaper().child.lock().expect("not poisoned");
    let input = child.stdin.as_mut().expect("the input is a pipe");
    input.write_all(line.as_bytes()).expect("the reaper runs");
}
