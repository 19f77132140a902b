//! How long a connection lives. One timer, and no look at the clock for a call that is answered at once.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::Connection;
use h2::{Ping, PingPong, Reason};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::io_activity::{IoActivity, TrackedIo};
use tollgate_net::IDLE_GRACE;
use tollgate_net::{Deadline, ListenerContext, NetLimits};

/// How often a silent caller is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WITHIN: Duration = Duration::from_secs(10);
/// How long a caller that was told to go may take to do so, once all of its calls have been answered.
const GOODBYE: Duration = Duration::from_secs(2);
/// How much the age of connections differs, in percent either way: those that came together do not leave together.
const AGE_SPREAD_PERCENT: u32 = 10;

/// Bytes that may come in while no call gets on, between two looks: pings, windows, settings and what nobody knows. An
/// honest caller sends a thousandth of it; as much may be on its way to calls that have not read it yet.
pub(super) const IDLE_BYTES_MAX: u64 = 512 << 10;

type H2 = Connection<TrackedIo, Bytes>;

/// What the keep_alive found.
pub(super) enum KeepAliveAction {
    /// Nothing to do until something happens.
    Well,
    /// The caller is to be told something.
    HealthUpdates,
    /// The connection is to be closed.
    Over,
}

/// Keeps one connection.
pub(super) struct KeepAlive {
    io_activity: IoActivity,
    ping: Option<PingPong>,
    timer: Deadline,
    limits: NetLimits,
    /// Cancelled when calls that have no end of their own have to find one.
    leave: CancellationToken,
    /// When the connection is old.
    old: Instant,
    /// Calls so far, and how many there were when it was last looked.
    calls: u64,
    looked: Looked,
    /// When an answer to our ping is due.
    pong_due: Option<Instant>,
    leaving: Option<Leaving>,
    /// The caller was told that this is too much.
    is_flooded: bool,
}

/// What was seen at the last look.
struct Looked {
    at: Instant,
    calls: u64,
    reads: u64,
    /// Since when there is no call.
    idle_since: Instant,
}

/// A connection whose caller was told to go.
struct Leaving {
    /// When calls without an end of their own are ended.
    last_call: Instant,
    /// When it is closed, if nothing is under way.
    over: Instant,
}

impl KeepAlive {
    pub(super) fn new(h2: &mut H2, io_activity: IoActivity, max_age: Duration, context: &ListenerContext) -> KeepAlive {
        let now = Instant::now();
        let looked = Looked { at: now, calls: 0, reads: 0, idle_since: now };
        let spread = max_age * AGE_SPREAD_PERCENT / 100;
        let share = (tollgate_engine::random::fast() >> 32) as u32;
        let more = (2 * spread).mul_f64(f64::from(share) / f64::from(u32::MAX));
        let mut keep_alive = KeepAlive {
            io_activity,
            ping: h2.ping_pong(),
            timer: Deadline::new(now),
            limits: context.limits,
            leave: CancellationToken::new(),
            old: now + (max_age - spread) + more,
            calls: 0,
            looked,
            pong_due: None,
            leaving: None,
            is_flooded: false,
        };
        keep_alive.set_timer();
        keep_alive
    }

    /// A call came in.
    pub(super) fn called(&mut self) {
        self.calls += 1;
        self.io_activity.got_on();
    }

    /// Cancelled when calls that have no end of their own have to find one.
    pub(super) fn leave(&self) -> &CancellationToken {
        &self.leave
    }

    /// The end of the server has begun.
    pub(super) fn drain(&mut self, h2: &mut H2) {
        self.begin_leaving(h2, IDLE_GRACE);
    }

    /// Looks after the connection; `busy` if calls are under way in tasks.
    pub(super) fn keep(&mut self, h2: &mut H2, busy: bool, cx: &mut Context<'_>) -> KeepAliveAction {
        if let Some(ping) = &mut self.ping
            && self.pong_due.is_some()
            && ping.poll_pong(cx).is_ready()
        {
            self.pong_due = None;
        }
        if self.is_flooded {
            return KeepAliveAction::Over; // it was told once, if it could be
        }
        if self.io_activity.idle_bytes() > IDLE_BYTES_MAX {
            h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            self.is_flooded = true;
            return KeepAliveAction::HealthUpdates;
        }
        if self.io_activity.stuck().is_some() {
            self.set_timer();
        }
        while let Poll::Ready(()) = self.timer.poll(cx) {
            let kept = self.look(h2, busy || h2.has_streams());
            self.set_timer();
            if !matches!(kept, KeepAliveAction::Well) {
                return kept;
            }
        }
        KeepAliveAction::Well
    }

    /// The timer rang: what is due?
    fn look(&mut self, h2: &mut H2, busy: bool) -> KeepAliveAction {
        let now = Instant::now();
        if self.io_activity.stuck().is_some_and(|since| now >= since + self.limits.write_timeout) {
            return KeepAliveAction::Over; // nobody reads what we write
        }
        if self.pong_due.is_some_and(|due| now >= due) {
            return KeepAliveAction::Over; // nobody is there
        }
        if let Some(leaving) = &mut self.leaving {
            if now >= leaving.last_call {
                self.leave.cancel();
            }
            if now >= leaving.over {
                if !busy {
                    return KeepAliveAction::Over;
                }
                leaving.over = now + GOODBYE; // every call has a deadline of its own
            }
        } else if now >= self.old {
            self.begin_leaving(h2, self.limits.drain_timeout);
            return KeepAliveAction::HealthUpdates;
        }
        if now < self.looked.at + self.look_every() {
            return KeepAliveAction::Well;
        }
        let Looked { calls, reads, idle_since, .. } = self.looked;
        let idle_since = if busy || self.calls != calls { now } else { idle_since };
        let silent = self.io_activity.reads() == reads;
        self.io_activity.got_on(); // what came with the time is no flood
        self.looked = Looked { at: now, calls: self.calls, reads: self.io_activity.reads(), idle_since };
        if self.leaving.is_none() && now >= idle_since + self.limits.idle_timeout {
            self.begin_leaving(h2, Duration::ZERO);
            return KeepAliveAction::HealthUpdates;
        }
        if silent && self.pong_due.is_none() && self.ping_now() {
            self.pong_due = Some(now + PING_WITHIN);
            return KeepAliveAction::HealthUpdates;
        }
        KeepAliveAction::Well
    }

    fn ping_now(&mut self) -> bool {
        self.ping.as_mut().is_some_and(|ping| ping.send_ping(Ping::opaque()).is_ok())
    }

    /// Tells the caller to go: no new calls, and those under way have `grace` to end by themselves.
    fn begin_leaving(&mut self, h2: &mut H2, grace: Duration) {
        if self.leaving.is_none() {
            h2.graceful_shutdown();
        }
        let last_call = Instant::now() + grace;
        let last_call = self.leaving.as_ref().map_or(last_call, |leaving| leaving.last_call.min(last_call));
        self.leaving = Some(Leaving { last_call, over: last_call + GOODBYE });
        self.set_timer();
    }

    fn look_every(&self) -> Duration {
        PING_EVERY.min(self.limits.idle_timeout)
    }

    /// Sets the timer to what is due next.
    fn set_timer(&mut self) {
        let stuck = self.io_activity.stuck().map(|since| since + self.limits.write_timeout);
        let leaving = self.leaving.as_ref().map(|leaving| match self.leave.is_cancelled() {
            false => leaving.last_call,
            true => leaving.over,
        });
        let end = leaving.unwrap_or(self.old);
        let look = self.looked.at + self.look_every();
        let next = [stuck, self.pong_due, Some(end)].into_iter().flatten().fold(look, Instant::min);
        self.timer.set(next);
    }
}
