//! How late timers of this process fire: what a busy machine adds to every measured time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_core::Clock;
use tollgate_store::MonotonicClock;

use crate::patience;

/// How often the monitor wakes.
const EVERY: Duration = Duration::from_millis(2);

/// A thread that wakes at a fixed rate, and records how late it does.
#[derive(Debug)]
pub struct StallMonitor {
    samples: Arc<Mutex<Vec<Sample>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: u64,
    late: u64,
}

impl StallMonitor {
    /// Starts to record, by this clock.
    pub fn start(clock: MonotonicClock) -> StallMonitor {
        let (samples, is_over) = (Arc::<Mutex<Vec<Sample>>>::default(), Arc::<AtomicBool>::default());
        let (recorded, ends) = (samples.clone(), is_over.clone());
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let due = clock.now().nanos() + EVERY.as_nanos() as u64;
                patience::pause(EVERY);
                let at = clock.now().nanos();
                recorded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Sample { at, late: at.saturating_sub(due) });
            }
        });
        StallMonitor { samples, is_over, thread: Some(thread) }
    }

    /// A quantile of the delays between two times, in milliseconds.
    pub fn quantile(&self, from: u64, to: u64, quantile: f64) -> f64 {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let within = samples.iter().filter(|sample| (from..=to).contains(&sample.at));
        let mut late: Vec<u64> = within.map(|sample| sample.late).collect();
        late.sort_unstable();
        let place = (late.len() as f64 * quantile) as usize;
        late.get(place.min(late.len().saturating_sub(1))).map_or(0.0, |nanos| *nanos as f64 / 1e6)
    }
}

impl Drop for StallMonitor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
