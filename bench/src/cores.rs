//! Pins server and generator to cores of their own, so that neither shows in the other's figures.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of a run. This thread is pinned to the generator's core until it is dropped.
#[derive(Debug)]
pub struct Cores {
    allowed: Option<CpuSet>,
    pair: Option<(usize, usize)>,
}

impl Cores {
    /// Takes the first two cores that this process may use.
    pub fn take() -> Cores {
        let allowed = sched_getaffinity(None).ok();
        let mut cores = allowed.iter().flat_map(|set| (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)));
        let pair = cores.next().zip(cores.next());
        let cores = Cores { allowed, pair };
        cores.keep_to(cores.pair.map(|(_, generator)| generator));
        cores
    }

    /// Runs `work` on the server's core: a process started there stays there, with all its threads.
    pub fn on_server<T>(&self, work: impl FnOnce() -> T) -> T {
        self.keep_to(self.pair.map(|(server, _)| server));
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
