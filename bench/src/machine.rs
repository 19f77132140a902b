//! The machine and its load during a run: without both, a figure means nothing a month later.

use std::fs::read_to_string;
use std::process::Command;
use std::time::SystemTime;

/// Watches the machine during a run.
#[derive(Debug)]
pub struct MachineWatch {
    load: String,
    ticks: Ticks,
}

/// Ticks of all cores since boot, a hundredth of a second each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
}

impl MachineWatch {
    /// Begins.
    pub fn start() -> MachineWatch {
        MachineWatch { load: load(), ticks: Ticks::now() }
    }

    /// The machine, its load before and after, and what the hypervisor took, as lines of Markdown.
    pub fn describe(&self) -> String {
        let ticks = Ticks::now();
        let (all, stolen) = (ticks.all - self.ticks.all, ticks.stolen - self.ticks.stolen);
        let steal = stolen as f64 / all.max(1) as f64 * 100.0;
        let warning = if steal > 1.0 { " **The hypervisor took cores away: mistrust small differences.**" } else { "" };
        let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
        [
            format!("- date: {}", today()),
            format!("- processor: {}, {cores} cores, last-level cache {}", processor(), cache()),
            format!("- kernel: {}; {}", first_line("/proc/sys/kernel/osrelease"), rustc()),
            format!("- load average before: {}; after: {}; stolen: {steal:.1} %.{warning}", self.load, load()),
        ]
        .join("\n")
    }
}

impl Ticks {
    /// Of this moment.
    pub fn now() -> Ticks {
        let text = read_to_string("/proc/stat").unwrap_or_default();
        let numbers: Vec<u64> =
            text.lines().next().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| numbers.get(place).copied().unwrap_or(0);
        // user, nice, system, irq, softirq; idle and waiting for a disk are not work.
        let busy = [0, 1, 2, 5, 6].map(at).iter().sum();
        Ticks { all: numbers.iter().sum(), busy, stolen: at(7) }
    }

    /// Core-seconds of work since then.
    pub fn busy_since(self, then: Ticks) -> f64 {
        self.busy.saturating_sub(then.busy) as f64 / 100.0
    }

    /// Core-seconds that the hypervisor took since then.
    pub fn stolen_since(self, then: Ticks) -> f64 {
        self.stolen.saturating_sub(then.stolen) as f64 / 100.0
    }
}

fn processor() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, name)| name).to_owned()
}

fn cache() -> String {
    first_line("/sys/devices/system/cpu/cpu0/cache/index3/size")
}

fn load() -> String {
    first_line("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn first_line(path: &str) -> String {
    let text = read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => "rustc unknown".to_owned(),
    }
}

/// The date in UTC, as `2026-11-15`.
#[expect(clippy::disallowed_methods, reason = "a report carries its date")]
pub fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970, by counting years from the first of March, so that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (next_year, month_number) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (era * 400 + year + next_year, month_number, day - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_772), (2026, 11, 15));
    }
}
