//! Memory of this process, and of children that fill one candidate each.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Starts this program again to fill one candidate, and returns what it prints.
pub fn measure_child(name: &str) -> anyhow::Result<String> {
    let this = std::env::current_exe().context("this program has a path")?;
    let output = Command::new(this).args(["--fill", name]).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "filling {name} ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The resident set in bytes.
pub fn resident() -> anyhow::Result<usize> {
    status("VmRSS:")
}

/// The peak of the resident set in bytes.
pub fn peak() -> anyhow::Result<usize> {
    status("VmHWM:")
}

fn status(field: &str) -> anyhow::Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let line = line.with_context(|| format!("the kernel reports {field}"))?;
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes << 10)
}
