//! Pins server and generator to cores of their own, so that neither shows in the other's figures.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of a run. This thread is pinned to the generator's core until it is dropped.
#[derive(Debug)]
pub struct Cores {
    allowed: Option<CpuSet>,
    pair: Option<(usize, usize)>,
    third: Option<usize>,
}

/// What a process is in a run: it says which core the process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreRole {
    /// It is measured.
    Server,
    /// It stands behind what is measured: a core of its own if there is a third one, otherwise the generator's.
    Upstream,
}

impl Cores {
    /// Takes the first two cores that this process may use, and the third if there is one.
    pub fn take() -> Cores {
        let allowed = sched_getaffinity(None).ok();
        let mut cores = allowed.iter().flat_map(|set| (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)));
        let (pair, third) = (cores.next().zip(cores.next()), cores.next());
        let cores = Cores { allowed, pair, third };
        cores.keep_to(cores.pair.map(|(_, generator)| generator));
        cores
    }

    /// Runs `work` on the server's core: a process started there stays there, with all its threads.
    pub fn on_server<T>(&self, work: impl FnOnce() -> T) -> T {
        self.on(CoreRole::Server, work)
    }

    /// Runs `work` on the core of a role.
    pub fn on<T>(&self, role: CoreRole, work: impl FnOnce() -> T) -> T {
        self.keep_to(match role {
            CoreRole::Server => self.pair.map(|(server, _)| server),
            CoreRole::Upstream => self.upstream(),
        });
        let done = work();
        self.keep_to(self.pair.map(|(_, generator)| generator));
        done
    }

    /// For the report.
    pub fn describe(&self) -> String {
        match self.pair {
            Some((server, generator)) => {
                format!("Servers run on core {server}, all threads of them, the load generator on core {generator}.")
            }
            None => "**Only one core: server and generator share it, and the figures mean little.**".to_owned(),
        }
    }

    /// Where the upstream runs, for the report.
    pub fn describe_upstream(&self) -> String {
        match (self.upstream(), self.third) {
            (Some(core), Some(_)) => format!("The upstream has core {core}."),
            (Some(core), None) => format!("The upstream shares core {core} with the generator."),
            (None, _) => "The upstream shares the only core.".to_owned(),
        }
    }

    fn upstream(&self) -> Option<usize> {
        self.third.or(self.pair.map(|(_, generator)| generator))
    }

    fn keep_to(&self, core: Option<usize>) {
        if let Some(core) = core {
            crate::stopwatch::pin(core);
        }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        if let Some(allowed) = &self.allowed {
            let _ = sched_setaffinity(None, allowed); // pinned is slower for what follows, not wrong
        }
    }
}
