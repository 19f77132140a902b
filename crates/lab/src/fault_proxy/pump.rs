//! One direction of one connection: a thread that reads, and one that delivers according to the mode.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_core::{Clock, Span, Time};
use tollgate_store::MonotonicClock;

use super::socket_pair::SocketPair;
use super::state::{ModeSetting, ProxyState};
use super::{Direction, LinkMode};

/// Pieces in flight; then the sender waits, as with a full TCP window.
const PIECES_MAX: usize = 256;
/// The longest wait for a change of mode before the mode is read again.
const LONG: Duration = Duration::from_millis(100);

struct Piece {
    arrived: Time,
    bytes: Vec<u8>,
}

/// Starts both threads.
pub(super) fn start(pair: Arc<SocketPair>, direction: Direction, shared: Arc<ProxyState>) -> [JoinHandle<()>; 2] {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    let reader = std::thread::spawn({
        let pair = Arc::clone(&pair);
        move || read(&pair, direction, &sender)
    });
    let writer = std::thread::spawn(move || {
        let mut pump = Pump { pair, direction, shared, clock: MonotonicClock::new(), due: Time::ZERO, cut: None };
        pump.run(&receiver);
    });
    [reader, writer]
}

fn read(pair: &SocketPair, direction: Direction, sender: &SyncSender<Piece>) {
    let clock = MonotonicClock::new();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length) = pair.source(direction).read(&mut buffer) {
        let piece = Piece { arrived: clock.now(), bytes: buffer[..length].to_vec() };
        if length == 0 || sender.send(piece).is_err() {
            return;
        }
    }
}

struct Pump {
    pair: Arc<SocketPair>,
    direction: Direction,
    shared: Arc<ProxyState>,
    clock: MonotonicClock,
    /// When the last piece was delivered: the next one never overtakes it.
    due: Time,
    /// The setting of `CutAfter`, and how many bytes may still pass under it.
    cut: Option<(ModeSetting, u64)>,
}

impl Pump {
    /// Delivers until the sender or the connection ends.
    fn run(&mut self, receiver: &Receiver<Piece>) {
        while let Ok(piece) = receiver.recv() {
            let lot = RandomState::new().hash_one(0);
            if self.deliver(&piece, lot).is_none() {
                return;
            }
        }
        let _ = self.pair.target(self.direction).shutdown(Shutdown::Write);
    }

    /// Delivers a piece according to the mode; `None` when the connection is over.
    fn deliver(&mut self, piece: &Piece, lot: u64) -> Option<()> {
        let mut rest = piece.bytes.as_slice();
        while !rest.is_empty() {
            if self.pair.is_over() {
                return None;
            }
            let order = self.shared.order(self.direction)?;
            rest = match order.mode {
                LinkMode::Pass => self.write(rest, rest.len())?,
                LinkMode::Delay(delay) => self.later(piece, order, delay, rest)?,
                LinkMode::Jitter(most) => {
                    let drawn = (u128::from(lot) * most.as_nanos()) >> 64;
                    self.later(piece, order, Duration::from_nanos(drawn as u64), rest)?
                }
                LinkMode::Drop => {
                    self.shared.wait_for_change(self.direction, order, LONG);
                    rest
                }
                LinkMode::Reset => return self.reset(rest),
                LinkMode::Trickle(rate) => {
                    let rest = self.write(rest, 1)?;
                    self.shared.wait_for_change(self.direction, order, Duration::from_secs(1) / rate.max(1));
                    rest
                }
                LinkMode::CutAfter(bytes) => self.cut(order, bytes, rest)?,
            };
        }
        Some(())
    }

    /// Writes the first `length` bytes, and returns the rest.
    fn write<'a>(&self, bytes: &'a [u8], length: usize) -> Option<&'a [u8]> {
        let (now, rest) = bytes.split_at(length.min(bytes.len()));
        self.shared.count(self.direction, now.len());
        match self.pair.target(self.direction).write_all(now) {
            Ok(()) => Some(rest),
            Err(_) => {
                self.pair.close();
                None
            }
        }
    }

    /// Writes everything once it is due; returns everything if the mode changes before.
    fn later<'a>(&mut self, piece: &Piece, order: ModeSetting, delay: Duration, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let due = piece.arrived.after(Span::from(delay)).max(self.due);
        let wait = due.since(self.clock.now());
        if !wait.is_zero() {
            self.shared.wait_for_change(self.direction, order, Duration::from(wait));
            return Some(bytes);
        }
        self.due = due;
        self.write(bytes, bytes.len())
    }

    fn reset(&self, bytes: &[u8]) -> Option<()> {
        if self.direction == Direction::Replies {
            self.write(bytes, bytes.len() / 2)?;
        }
        self.pair.abort();
        None
    }

    fn cut<'a>(&mut self, order: ModeSetting, bytes_max: u64, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let left = self.cut.filter(|(of, _)| *of == order).map_or(bytes_max, |(_, left)| left);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let rest = self.write(bytes, length)?;
        self.cut = Some((order, left - length as u64));
        if rest.is_empty() {
            return Some(rest);
        }
        self.pair.close();
        None
    }
}
