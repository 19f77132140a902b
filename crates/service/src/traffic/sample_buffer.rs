//! Buffers between the path of a request and the collector: one per thread, taken without waiting.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Purpose, Request, Time};
use tollgate_engine::{DecidedBy, Decision, DecisionId, Ruling, Verdict};

use crate::violations::append_client_text;

/// Decisions in one buffer. It is taken when it is half full, or a tenth of a second after the last time.
const DECISIONS_MAX: usize = 1024;
/// Rulings in one buffer.
const RULINGS_MAX: usize = 4 * DECISIONS_MAX;
/// Bytes of names in one buffer.
const TEXT_BYTES_MAX: usize = 128 * 1024;
/// Buffers. A thread has one of them to itself unless there are more threads.
const BUFFERS: usize = 16;
/// Longest name that is copied.
const NAME_BYTES_MAX: usize = 256;

/// The buffers of all threads.
pub(super) struct SampleBuffers([Mutex<SampleBuffer>; BUFFERS]);

/// Decisions that wait for the collector.
#[derive(Default)]
pub(super) struct SampleBuffer {
    pub(super) decisions: Vec<BufferedDecision>,
    pub(super) rulings: Vec<Ruling>,
    /// Namespaces and clients, one behind the other.
    pub(super) text: String,
}

/// A decision in a buffer. Lengths are of what follows the decision before it.
#[derive(Clone, Copy)]
pub(super) struct BufferedDecision {
    pub(super) id: DecisionId,
    pub(super) at: Time,
    pub(super) generation: u64,
    pub(super) cost: u64,
    pub(super) is_allowed: bool,
    pub(super) decided_by: DecidedBy,
    pub(super) deciding: Option<u16>,
    pub(super) rulings: u16,
    pub(super) namespace_bytes: u16,
    pub(super) client_bytes: u16,
}

/// What became of an attempt to hand a decision over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    /// There is room for more.
    Buffered,
    /// The buffer should be taken soon.
    HalfFull,
    /// There was no room, or the buffer is being taken.
    Dropped,
}

impl Default for SampleBuffers {
    fn default() -> SampleBuffers {
        SampleBuffers(std::array::from_fn(|_| Mutex::default()))
    }
}

impl SampleBuffers {
    /// Hands a decision over. Never waits: a buffer that is in use is passed by.
    #[inline]
    pub(super) fn push(&self, requests: &[Request<'_>], decision: &Decision) -> HandedOver {
        let SampleBuffers(buffers) = self;
        let own = own_number();
        for step in 0..2 {
            if let Some(mut buffer) = buffers.get((own + step) % BUFFERS).and_then(|buffer| buffer.try_lock()) {
                return buffer.push(requests, decision);
            }
        }
        HandedOver::Dropped
    }

    /// Takes each buffer in turn, in exchange for `spare`, and passes it on.
    pub(super) fn take(&self, spare: &mut SampleBuffer, mut receive: impl FnMut(&SampleBuffer)) {
        let SampleBuffers(buffers) = self;
        for buffer in buffers {
            spare.clear();
            {
                let mut buffer = buffer.lock();
                if buffer.decisions.is_empty() {
                    continue;
                }
                std::mem::swap(&mut *buffer, spare);
            }
            receive(spare);
        }
    }
}

impl SampleBuffer {
    fn push(&mut self, requests: &[Request<'_>], decision: &Decision) -> HandedOver {
        let is_full = self.decisions.len() + requests.len() > DECISIONS_MAX
            || self.rulings.len() + decision.rulings().len() > RULINGS_MAX
            || self.text.len() + 2 * NAME_BYTES_MAX * requests.len() > TEXT_BYTES_MAX;
        if is_full {
            return HandedOver::Dropped;
        }
        let is_counted = |request: &&Request<'_>| !matches!(request.purpose, Purpose::Peek | Purpose::Mention);
        let is_alone = requests.len() == 1;
        for (index, request) in requests.iter().enumerate().filter(|(_, request)| is_counted(request)) {
            let first = self.rulings.len();
            match is_alone {
                true => self.rulings.extend_from_slice(decision.rulings()),
                false => self.rulings.extend(decision.rulings().iter().filter(|own| usize::from(own.request) == index)),
            }
            let rulings = self.rulings.get(first..).unwrap_or_default();
            let deciding = match is_alone {
                true => decision.deciding_index(),
                false => decision.deciding().and_then(|chosen| rulings.iter().position(|own| same(own, chosen))),
            };
            let rulings = rulings.len() as u16; // a set has fewer rules that apply to one request
            let start = self.text.len();
            self.text.push_str(shortened(request.namespace));
            let namespace_end = self.text.len();
            append_client_text(request, NAME_BYTES_MAX, &mut self.text);
            self.decisions.push(BufferedDecision {
                id: decision.id(),
                at: decision.wall,
                generation: decision.generation(),
                cost: request.cost,
                is_allowed: matches!(decision.verdict, Verdict::Allow),
                decided_by: decision.decided_by,
                deciding: deciding.and_then(|place| u16::try_from(place).ok()),
                rulings,
                namespace_bytes: (namespace_end - start) as u16,
                client_bytes: (self.text.len() - namespace_end) as u16,
            });
        }
        if self.decisions.len() >= DECISIONS_MAX / 2 { HandedOver::HalfFull } else { HandedOver::Buffered }
    }

    fn clear(&mut self) {
        self.decisions.clear();
        self.rulings.clear();
        self.text.clear();
    }
}

fn same(a: &Ruling, b: &Ruling) -> bool {
    a.rule == b.rule && a.request == b.request
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or(text)
}

/// The buffer of this thread.
fn own_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<Option<usize>> = const { Cell::new(None) });
    OWN.with(|own| match own.get() {
        Some(number) => number,
        None => {
            let number = THREADS.fetch_add(1, Ordering::Relaxed);
            own.set(Some(number));
            number
        }
    })
}
