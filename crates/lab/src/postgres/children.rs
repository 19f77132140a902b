//! The processes of one server: PostgreSQL has one for each connection, and a signal to the first reaches none of them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The children of a process that live, as the kernel lists them.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("a kernel that lists its processes");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| alive(id).is_some_and(|its_parent| its_parent == parent)).collect()
}

/// Whether none of these lives.
pub(super) fn are_gone(processes: &[u32]) -> bool {
    processes.iter().all(|&id| alive(id).is_none())
}

/// Sends them a signal; those that are gone do not mind.
pub(super) fn signal(processes: &[u32], signal: Signal) {
    for pid in processes.iter().filter_map(|&id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process(pid, signal);
    }
}

/// The parent of a process, unless it is dead. Its name, in brackets, may hold anything; what follows is plain.
fn alive(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    fields.next()?.parse().ok().filter(|_| is_alive)
}
