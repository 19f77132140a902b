//! A server with a knee: a few workers, a queue without bound, and work that takes longer the more of it waits.
//!
//! The same upstream as in the simulation of `crates/overload/examples`, over real sockets. Its work is waiting, as for a
//! database: it costs next to no CPU, so that a small machine can offer ten times what it carries. It speaks HTTP/1.1, and
//! answers every request without a body.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\ndone\n";
const HEAD_MAX: usize = 64 << 10;

/// What the server can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KneeConfig {
    /// Requests that are worked on at once.
    pub workers: usize,
    /// The part of the work that is always the same.
    pub fixed: Duration,
    /// The mean of the part that varies, exponentially.
    pub varying: Duration,
    /// Each waiting request makes all work longer by this share: memory, caches, context switches.
    pub contention: f64,
}

impl KneeConfig {
    /// Eight workers, 20 ms and another 20 ms on average: 200 requests per second.
    pub const DEFAULT: KneeConfig = KneeConfig {
        workers: 8,
        fixed: Duration::from_millis(20),
        varying: Duration::from_millis(20),
        contention: 0.002,
    };

    /// Requests per second that all workers together finish while none waits.
    pub fn capacity(&self) -> f64 {
        self.workers as f64 / (self.fixed + self.varying).as_secs_f64()
    }

    fn work(&self, waiting: usize, uniform: f64) -> Duration {
        let varying = self.varying.mul_f64(-(1.0 - uniform).ln());
        (self.fixed + varying).mul_f64(1.0 + self.contention * waiting as f64)
    }
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct KneeServer {
    address: SocketAddr,
    finished: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KneeServer {
    /// Starts it on a free port.
    pub fn start(config: KneeConfig) -> io::Result<KneeServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let workers = Arc::new(Workers::new(config));
        let finished = workers.finished.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    _ = accept(listener, workers) => {}
                }
            });
        });
        Ok(KneeServer { address, finished, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that were worked on, also for callers that are gone.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }
}

impl Drop for KneeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it does not panic, and nothing could be done here if it did
        }
    }
}

async fn accept(listener: TcpListener, workers: Arc<Workers>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        // Out of descriptors: those who are connected go on, and one of them will leave.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if stream.set_nodelay(true).is_ok() {
            tokio::spawn(serve(stream, workers.clone()));
        }
    }
}

/// Answers one request after the other.
async fn serve(mut stream: TcpStream, workers: Arc<Workers>) {
    let mut bytes = Vec::new();
    loop {
        let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            match stream.read_buf(&mut bytes).await {
                Ok(1..) if bytes.len() < HEAD_MAX => continue,
                _ => return,
            }
        };
        bytes.drain(..head + 4);
        let mut work = tokio::spawn(workers.clone().work());
        loop {
            tokio::select! {
                _ = &mut work => break,
                // A caller that hangs up gets its socket closed, and its work is done nevertheless: the workers do not know.
                read = stream.read_buf(&mut bytes) => if !matches!(read, Ok(1..)) { return },
            }
        }
        if stream.write_all(REPLY).await.is_err() {
            return;
        }
    }
}

struct Workers {
    config: KneeConfig,
    /// First come, first served.
    free: Semaphore,
    waiting: AtomicUsize,
    finished: Arc<AtomicU64>,
    random: Mutex<u64>,
}

impl Workers {
    fn new(config: KneeConfig) -> Workers {
        Workers {
            config,
            free: Semaphore::new(config.workers),
            waiting: AtomicUsize::new(0),
            finished: Arc::default(),
            random: Mutex::new(42),
        }
    }

    async fn work(self: Arc<Self>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let Ok(_worker) = self.free.acquire().await else { return };
        let waiting = self.waiting.fetch_sub(1, Ordering::Relaxed) - 1;
        tokio::time::sleep(self.config.work(waiting, self.uniform())).await;
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// SplitMix64, as a number from 0 to 1.
    fn uniform(&self) -> f64 {
        let mut state = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_load::{LoadPlan, LoadRequest, Target, run};

    #[test]
    fn work_is_longer_the_more_requests_wait() {
        let config = KneeConfig::DEFAULT;
        assert_eq!(config.capacity(), 200.0);
        assert_eq!(config.work(0, 0.0), Duration::from_millis(20));
        assert_eq!(config.work(500, 0.0), Duration::from_millis(40));
        let draws = (0..10_000).map(|step| config.work(0, (f64::from(step) + 0.5) / 10_000.0));
        let mean = draws.sum::<Duration>() / 10_000;
        assert!(mean.abs_diff(Duration::from_millis(40)) < Duration::from_millis(1), "{mean:?}");
    }

    #[test]
    fn no_more_is_finished_than_the_workers_can() {
        let config = KneeConfig { contention: 0.0, varying: Duration::ZERO, ..KneeConfig::DEFAULT };
        let server = KneeServer::start(config).unwrap();
        let target = Target::parse(&format!("http://{}/", server.address())).unwrap();
        let plan = LoadPlan { connections: 40, duration: Duration::from_secs(1), ..LoadPlan::default() };
        let report = run(&target, &LoadRequest::get("/"), &plan, &mut |_| {}).unwrap();
        assert_eq!(report.errors.total(), 0, "{report:?}");
        assert!(report.rate > 0.0 && report.rate < config.capacity() * 1.1, "{report:?}");
        assert!(server.finished() >= report.answered);
    }
}
