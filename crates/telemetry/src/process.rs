//! Metrics of the process itself: version, memory, descriptors, log lines lost, panics.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Time;

use crate::lines::Lines;
use crate::page::{MetricFamilies, MetricsPage};

/// Counts caught panics.
#[derive(Debug, Default)]
pub struct PanicCounter(AtomicU64);

impl PanicCounter {
    /// Counts one.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of panics.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The families of the process.
pub struct ProcessFamilies {
    /// The logs, by name.
    pub logs: Vec<(&'static str, Lines)>,
    /// Reads the number of panics.
    pub panics: Box<dyn Fn() -> u64 + Send + Sync>,
    /// When the server started.
    pub started: Time,
}

impl MetricFamilies for ProcessFamilies {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let dropped = self.logs.iter().map(|(name, lines)| ([("log", *name)], lines.dropped()));
        page.counters("tollgate_log_lines_dropped", "Log lines lost to a full buffer or a broken sink", dropped)?;
        page.counter("tollgate_panics", "Panics that were caught", (self.panics)())?;
        page.info("tollgate_build", "The version that is running", [("version", env!("CARGO_PKG_VERSION"))])?;
        let started = self.started.nanos() as f64 / 1e9;
        page.gauge("process_start_time_seconds", "When the server started", started)?;
        if let Some(bytes) = resident_bytes() {
            page.gauge("process_resident_memory_bytes", "Resident memory", bytes)?;
        }
        match open_fds() {
            Some(count) => page.gauge("process_open_fds", "Open file descriptors", count),
            None => Ok(()),
        }
    }
}

/// Resident memory in bytes; `None` where there is no `/proc`.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Open file descriptors, except the one that lists them.
fn open_fds() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed.saturating_sub(1)).ok()
}
