//! Kills a node under load, again and again, and measures how much usage of its quotas each kill costs.
//!
//! Callers charge a few quotas over HTTP and note when each charge was acknowledged. After a kill and a restart the node
//! says how much it still knows: the oldest acknowledged charge that is missing tells how much time was lost.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::faults::Caller;
use crate::patience::{self, Watch};
use crate::process::{self, Process, Signal};

/// Customers whose quotas are charged.
const USERS: usize = 8;
/// Connections that charge at once.
const CONNECTIONS: usize = 4;
/// How long a node may take to end after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause between two syncs of the probe.
const SYNC_INTERVAL: Duration = Duration::from_millis(50);
/// What every customer may use: more than any run does.
const AMOUNT: u64 = 1_000_000_000;

/// The node under test, and what its callers know.
#[derive(Debug)]
pub struct DurableNode {
    tollgate: PathBuf,
    dir: TempDir,
    arguments: Vec<String>,
    process: Process,
    address: SocketAddr,
    /// Usage of every customer at the last start.
    known: Vec<u64>,
}

/// What one kill cost.
#[derive(Clone, Copy, Debug)]
pub struct KillCost {
    /// How long callers charged before it.
    pub load: Duration,
    /// Charges that were acknowledged in that time.
    pub acknowledged: u64,
    /// Units of these that the restarted node does not know.
    pub lost: u64,
    /// The time between the oldest lost charge and the kill.
    pub lost_time: Duration,
    /// Units that the node knows and no caller was told of: at most one for every connection.
    pub unacknowledged: u64,
    /// The longest that this disk took to sync a small file in that time: a node cannot be faster than its disk.
    pub slowest_sync: Duration,
}

impl DurableNode {
    /// Starts a node with a monthly quota and these further arguments.
    pub fn start(tollgate: &Path, arguments: &[&str]) -> io::Result<DurableNode> {
        let dir = process::directory();
        let rules = format!(
            "rules:\n  - name: monthly\n    key_by: user_id\n    quota: {{ amount: {AMOUNT}, every: month, time_zone: Europe/Berlin, anchor: 17 }}\n"
        );
        std::fs::write(dir.path().join("rules.yaml"), rules)?;
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let (process, address) = serve(tollgate, dir.path(), &arguments)?;
        let tollgate = tollgate.to_owned();
        let mut node = DurableNode { tollgate, dir, arguments, process, address, known: Vec::new() };
        node.known = node.usage()?;
        Ok(node)
    }

    /// The directory with its database and journal.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Its log, of all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Usage of every customer.
    pub fn usage(&self) -> io::Result<Vec<u64>> {
        let mut caller = Caller::connect(self.address)?;
        let used = |user| {
            let answer = caller.post("/v1/check", &charge(user, 0))?;
            let remaining = answer["remaining"].as_u64();
            remaining.map(|left| AMOUNT - left).ok_or_else(|| io::Error::other(format!("no remaining in {answer}")))
        };
        (0..USERS).map(used).collect()
    }

    /// Lets callers charge for `load`, kills the node with SIGKILL, starts it again and compares.
    pub fn kill(&mut self, load: Duration) -> io::Result<KillCost> {
        self.end(load, |process| {
            process.kill();
            true
        })
    }

    /// The same with SIGTERM, which loses nothing.
    pub fn terminate(&mut self, load: Duration) -> io::Result<KillCost> {
        self.end(load, |process| {
            process.signal(Signal::TERM);
            process.wait(END_TIMEOUT).is_some_and(|status| status.success())
        })
    }

    /// Ends the node without load, changes its directory, and starts it again.
    pub fn restart(&mut self, change: impl FnOnce(&Path)) -> io::Result<()> {
        self.process.signal(Signal::TERM);
        self.process.wait(END_TIMEOUT);
        change(self.dir.path());
        (self.process, self.address) = serve(&self.tollgate, self.dir.path(), &self.arguments)?;
        self.known = self.usage()?;
        Ok(())
    }

    /// Starts a second process in the same directory, and ends it if it was let in.
    pub fn start_second(&self) -> io::Result<()> {
        serve(&self.tollgate, self.dir.path(), &self.arguments).map(|_| ())
    }

    fn end(&mut self, load: Duration, end: impl FnOnce(&mut Process) -> bool) -> io::Result<KillCost> {
        let watch = Watch::start();
        let charges: Vec<Mutex<Vec<Duration>>> = (0..USERS).map(|_| Mutex::default()).collect();
        let is_over = AtomicBool::new(false);
        let (address, process) = (self.address, &mut self.process);
        let probe = self.dir.path().join("probe");
        let (ended_at, slowest_sync) = thread::scope(|scope| {
            let syncs = scope.spawn(|| slowest_sync(&probe, &watch, &is_over));
            for connection in 0..CONNECTIONS {
                let (charges, is_over) = (&charges, &is_over);
                scope.spawn(move || keep_charging(address, connection, &watch, charges, is_over));
            }
            patience::pause(load);
            let ended_at = watch.elapsed();
            let ended = end(process);
            is_over.store(true, Ordering::Relaxed);
            let slowest_sync =
                syncs.join().unwrap_or_else(|_| Err(io::Error::other("the probe of the disk failed")))?;
            match ended {
                true => Ok((ended_at, slowest_sync)),
                false => Err(io::Error::other("the node did not end as asked")),
            }
        })?;
        (self.process, self.address) = serve(&self.tollgate, self.dir.path(), &self.arguments)?;
        let now = self.usage()?;
        let (acknowledged, lost, lost_time, unacknowledged) = (0, 0, Duration::ZERO, 0);
        let mut cost = KillCost { load, acknowledged, lost, lost_time, unacknowledged, slowest_sync };
        for ((charges, now), before) in charges.iter().zip(&now).zip(&self.known) {
            let acknowledged = charges.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let kept = now.saturating_sub(*before);
            let count = acknowledged.len() as u64;
            cost.acknowledged += count;
            cost.unacknowledged += kept.saturating_sub(count);
            cost.lost += count.saturating_sub(kept) + before.saturating_sub(*now);
            if count > kept {
                // Charges in flight may be among those that were kept: count as if all of them were.
                let first_lost = usize::try_from(kept).unwrap_or(usize::MAX).saturating_sub(CONNECTIONS);
                let lost_time = acknowledged.get(first_lost).map_or(load, |at| ended_at.saturating_sub(*at));
                cost.lost_time = cost.lost_time.max(lost_time);
            }
        }
        self.known = now;
        Ok(cost)
    }
}

/// Syncs a small file again and again until the load is over.
fn slowest_sync(path: &Path, watch: &Watch, is_over: &AtomicBool) -> io::Result<Duration> {
    let mut file = File::create(path)?;
    let mut slowest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let start = watch.elapsed();
        file.write_all(&[0])?;
        file.sync_data()?;
        slowest = slowest.max(watch.elapsed().saturating_sub(start));
        patience::pause(SYNC_INTERVAL);
    }
    Ok(slowest)
}

/// Charges one customer after the other until the node is gone.
fn keep_charging(
    address: SocketAddr,
    connection: usize,
    watch: &Watch,
    charges: &[Mutex<Vec<Duration>>],
    is_over: &AtomicBool,
) {
    let Ok(mut caller) = Caller::connect(address) else { return };
    for user in (0..USERS).cycle().skip(connection) {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(answer) = caller.post("/v1/check", &charge(user, 1)) else { return };
        assert_eq!(answer["allowed"].as_bool(), Some(true), "{answer}");
        let mut charges = charges[user].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        charges.push(watch.elapsed());
    }
}

fn charge(user: usize, cost: u64) -> String {
    format!(r#"{{"user_id":"customer-{user}","cost":{cost}}}"#)
}

fn serve(tollgate: &Path, dir: &Path, arguments: &[String]) -> io::Result<(Process, SocketAddr)> {
    let log = File::options().create(true).append(true).open(dir.join("log"))?;
    let mut process = Process::start(tollgate, |command| {
        command.env_clear().args(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.arg("--rules").arg(dir.join("rules.yaml")).arg("--state-dir").arg(dir).args(arguments);
        command.stdout(Stdio::piped()).stderr(log);
    })?;
    let output = process.stdout().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| line.strip_prefix("listening on http://")?.split([',', ' ']).next()?.parse().ok());
    match address {
        Some(address) => {
            thread::spawn(move || lines.count()); // nothing else reads the pipe
            Ok((process, address))
        }
        None => {
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            Err(io::Error::other(format!("the node did not start: {log}")))
        }
    }
}
