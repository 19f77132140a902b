//! What the system knows of this process; nothing where there is no `/proc`.

use std::fs;

/// Resident memory in bytes.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Open file descriptors, but for the one that lists them.
pub(super) fn open_fds() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed.saturating_sub(1)).ok()
}
