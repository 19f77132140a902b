//! CPU time and memory of a process.

use std::fs::{read_dir, read_to_string};

use rustix::time::{ClockId, clock_gettime};

/// CPU nanoseconds of all threads of a process so far. Zero if there is none.
pub fn cpu(pid: u32) -> u64 {
    let tasks = read_dir(format!("/proc/{pid}/task"));
    let threads = tasks.into_iter().flatten().flatten();
    threads.filter_map(|thread| first_number(&read_to_string(thread.path().join("schedstat")).ok()?)).sum()
}

/// CPU nanoseconds of this process so far.
pub fn own_cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Resident bytes of a process now.
pub fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// The most that was resident since [`reset_peak`].
pub fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

/// Begins a new peak.
pub fn reset_peak(pid: u32) -> std::io::Result<()> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// Bytes of a line in kilobytes.
fn status(pid: u32, field: &str) -> u64 {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(first_number).unwrap_or(0) << 10
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_time_and_memory() {
        assert!(cpu(std::process::id()) > 0 && own_cpu() > 0);
        assert!(resident(std::process::id()) > 100_000);
        assert_eq!(cpu(u32::MAX), 0);
    }

    #[test]
    fn a_peak_begins_anew() {
        let own = std::process::id();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let most = peak(own);
        reset_peak(own).unwrap();
        assert!(most >= 64 << 20 && peak(own) < most);
    }
}
