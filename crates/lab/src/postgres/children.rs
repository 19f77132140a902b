//! The child processes of a server: PostgreSQL has one per connection, and a signal to the parent reaches none of them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The living children of a process.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("a kernel that lists its processes");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| alive(id).is_some_and(|its_parent| its_parent == parent)).collect()
}

/// Whether all of these have ended.
pub(super) fn are_gone(processes: &[u32]) -> bool {
    processes.iter().all(|&id| alive(id).is_none())
}

/// Sends them a signal; ignores those that have ended.
pub(super) fn signal(processes: &[u32], signal: Signal) {
    for pid in processes.iter().filter_map(|&id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process(pid, signal);
    }
}

/// The parent of a living process. The name in `stat`, in brackets, may contain anything; the fields follow it.
fn alive(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    fields.next()?.parse().ok().filter(|_| is_alive)
}
