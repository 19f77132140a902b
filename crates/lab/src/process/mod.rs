//! Child processes that end with the test, however the test ends.
//!
//! A test that is killed runs no destructor, and asking the kernel to kill its children takes unsafe code. So a shell, the
//! reaper, reads the process ids of all children from a pipe: when the pipe closes, because the test has ended or was
//! killed, it kills the remaining children and removes their files. A child waits until the reaper knows its id before it
//! executes its program, so that no child can escape.

mod reaper;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::patience;

/// How long a process may take to clean up before it is killed.
const GRACEFUL_STOP: Duration = Duration::from_secs(8);

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    is_over: bool,
    stops_gracefully: bool,
}

impl Process {
    /// Starts a program. `configure` adds arguments, environment and outputs; the input is empty.
    pub fn start(program: &Path, configure: impl FnOnce(&mut Command)) -> io::Result<Process> {
        let mut command = Command::new("sh");
        command.args(["-c", "read -r go && exec \"$@\" </dev/null", "sh"]).arg(program);
        configure(&mut command);
        let child = command.stdin(Stdio::piped()).spawn()?;
        reaper::register(child.id());
        let mut process = Process { child, is_over: false, stops_gracefully: false };
        match process.child.stdin.take() {
            Some(mut input) => input.write_all(b"go\n")?,
            None => unreachable!("the input is a pipe"),
        }
        Ok(process)
    }

    /// Lets it clean up: sends QUIT instead of KILL when it is dropped or the test is gone, and KILL only if that does not
    /// help. For programs that leave something in the kernel, such as shared memory.
    #[must_use]
    pub fn with_graceful_stop(mut self) -> Process {
        reaper::stop_gracefully(self.child.id());
        self.stops_gracefully = true;
        self
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, if piped; can be taken once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a child can be sent signals");
    }

    /// Stops it with SIGSTOP, and waits until all its threads are stopped, which takes a while on a busy machine.
    pub fn halt(&self) {
        self.signal(Signal::STOP);
        patience::until("all threads are stopped", GRACEFUL_STOP, || is_stopped(self.id()).unwrap_or(true));
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        if !self.is_over {
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.is_over = true;
            reaper::forget(self.child.id());
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("a child can be asked");
        if status.is_some() && !self.is_over {
            self.is_over = true;
            reaper::forget(self.child.id());
        }
        status
    }

    /// Waits until it ends.
    pub fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let mut status = None;
        patience::try_until(within, || {
            status = self.ended();
            status.is_some()
        });
        status
    }
}

/// Whether every thread of a process is stopped; an error if there is no such process.
fn is_stopped(process: u32) -> io::Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { return Ok(false) };
        // The name, in brackets, may contain brackets.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if !matches!(state, Some('T' | 'Z')) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.stops_gracefully && self.ended().is_none() {
            self.signal(Signal::QUIT);
            self.wait(GRACEFUL_STOP);
        }
        self.kill();
    }
}

/// A directory that is removed when dropped, and when the process ends without dropping it.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(reaper::root()).expect("a directory for a test")
}

/// The directory of this process, for files made once.
pub fn root() -> &'static Path {
    reaper::root()
}
