//! Child processes that end with the test, however the test ends.
//!
//! A test that is killed runs no destructor, and asking the kernel to kill its children takes unsafe code. So one shell,
//! the reaper, reads the numbers of all children from a pipe: when the pipe closes, because the test is over or gone,
//! it kills who is left and removes the files. A child waits until the reaper knows it before it becomes its program,
//! so that there is no moment in which nobody would care.

mod reaper;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

use crate::patience;

/// How long a process may take to clean up, before it is killed.
const FAREWELL: Duration = Duration::from_secs(8);

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    is_over: bool,
    takes_leave: bool,
}

impl Process {
    /// Starts a program. `configure` adds arguments, environment and outputs; the input is empty.
    pub fn start(program: &Path, configure: impl FnOnce(&mut Command)) -> io::Result<Process> {
        let mut command = Command::new("sh");
        command.args(["-c", "read -r go && exec \"$@\" </dev/null", "sh"]).arg(program);
        configure(&mut command);
        let child = command.stdin(Stdio::piped()).spawn()?;
        reaper::expect(child.id());
        let mut process = Process { child, is_over: false, takes_leave: false };
        match process.child.stdin.take() {
            Some(mut input) => input.write_all(b"go\n")?,
            None => unreachable!("the input is a pipe"),
        }
        Ok(process)
    }

    /// Lets it clean up: it is sent QUIT, and only killed when that does not help, where it would otherwise be killed
    /// because it is dropped or the test is gone. For programs that leave something in the kernel, such as memory.
    #[must_use]
    pub fn with_farewell(mut self) -> Process {
        reaper::take_leave_of(self.child.id());
        self.takes_leave = true;
        self
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it prints, if its output is piped; once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a child can be sent signals");
    }

    /// Halts it, and waits until all its threads stand still: on a busy machine, some go on for a while.
    pub fn halt(&self) {
        self.signal(Signal::STOP);
        patience::until("all threads stand still", FAREWELL, || stands_still(self.id()).unwrap_or(true));
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

    /// Whether it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("a child can be asked");
        if status.is_some() && !self.is_over {
            self.is_over = true;
            reaper::forget(self.child.id());
        }
        status
    }

    /// Waits for its end.
    pub fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let mut status = None;
        patience::try_until(within, || {
            status = self.ended();
            status.is_some()
        });
        status
    }
}

/// Whether every thread of a process is halted; an error if there is no such process.
fn stands_still(process: u32) -> io::Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { return Ok(false) };
        // The name, in brackets, may have brackets of its own.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if !matches!(state, Some('T' | 'Z')) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.takes_leave && self.ended().is_none() {
            self.signal(Signal::QUIT);
            self.wait(FAREWELL);
        }
        self.kill();
    }
}

/// A directory that goes when it is dropped, and when the process ends without dropping it.
pub fn directory() -> TempDir {
    tempfile::tempdir_in(reaper::root()).expect("a directory for a test")
}

/// The directory of this process, for what is made once.
pub fn root() -> &'static Path {
    reaper::root()
}
