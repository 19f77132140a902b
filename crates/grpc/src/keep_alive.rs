//! Connection lifetime: pings, maximum age, idle and write timeouts, drain. One timer per connection, and no clock read
//! for calls on the fast path.

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

/// Ping interval for a silent client, and the time limit for its pong.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may keep the connection open after GOAWAY, once all calls are complete.
const GOAWAY_GRACE: Duration = Duration::from_secs(2);
/// Random spread of the maximum age, in percent either way, so that connections opened together do not close together.
const AGE_SPREAD_PERCENT: u32 = 10;

/// Bytes that may arrive between two timer checks while no call makes progress: pings, window updates, settings and
/// unknown frames. A normal client sends a thousandth of that; messages that calls have not read yet may be as large.
pub(super) const IDLE_BYTES_MAX: u64 = 512 << 10;

/// The server side of an h2 connection.
pub(super) type H2Connection = Connection<TrackedIo, Bytes>;

/// What the connection loop must do next.
pub(super) enum KeepAliveAction {
    /// Wait for the next event.
    Wait,
    /// Poll h2 to send a queued frame.
    Flush,
    /// Close the connection.
    Close,
}

/// Lifetime state of one connection.
pub(super) struct KeepAlive {
    io_activity: IoActivity,
    ping: Option<PingPong>,
    timer: Deadline,
    limits: NetLimits,
    /// Cancelled when open-ended calls must end.
    closing: CancellationToken,
    /// When the connection reaches its maximum age.
    max_age_at: Instant,
    /// Calls accepted so far.
    calls: u64,
    last_check: LastCheck,
    /// When the pong is due.
    pong_due: Option<Instant>,
    shutdown: Option<GracefulShutdown>,
    /// GOAWAY with `ENHANCE_YOUR_CALM` was queued.
    is_flooded: bool,
}

/// Counters at the last periodic check.
struct LastCheck {
    at: Instant,
    calls: u64,
    reads: u64,
    /// Since when there has been no call.
    idle_since: Instant,
}

/// State after GOAWAY.
struct GracefulShutdown {
    /// When open-ended calls are cancelled.
    cancel_at: Instant,
    /// When the connection is closed, if no call is running.
    close_at: Instant,
}

impl KeepAlive {
    pub(super) fn new(
        h2: &mut H2Connection,
        io_activity: IoActivity,
        max_age: Duration,
        context: &ListenerContext,
    ) -> KeepAlive {
        let now = Instant::now();
        let last_check = LastCheck { at: now, calls: 0, reads: 0, idle_since: now };
        let spread = max_age * AGE_SPREAD_PERCENT / 100;
        let fraction = (tollgate_service::random::fast() >> 32) as u32;
        let jitter = (2 * spread).mul_f64(f64::from(fraction) / f64::from(u32::MAX));
        let mut keep_alive = KeepAlive {
            io_activity,
            ping: h2.ping_pong(),
            timer: Deadline::new(now),
            limits: context.limits,
            closing: CancellationToken::new(),
            max_age_at: now + (max_age - spread) + jitter,
            calls: 0,
            last_check,
            pong_due: None,
            shutdown: None,
            is_flooded: false,
        };
        keep_alive.set_timer();
        keep_alive
    }

    /// Records an accepted call.
    pub(super) fn record_call(&mut self) {
        self.calls += 1;
        self.io_activity.record_progress();
    }

    /// Cancelled when open-ended calls must end.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Starts the graceful shutdown because the server drains.
    pub(super) fn drain(&mut self, h2: &mut H2Connection) {
        self.begin_shutdown(h2, IDLE_GRACE);
    }

    /// Checks the limits; `busy` if calls are running in tasks.
    pub(super) fn poll(&mut self, h2: &mut H2Connection, busy: bool, cx: &mut Context<'_>) -> KeepAliveAction {
        if let Some(ping) = &mut self.ping
            && self.pong_due.is_some()
            && ping.poll_pong(cx).is_ready()
        {
            self.pong_due = None;
        }
        if self.is_flooded {
            return KeepAliveAction::Close; // GOAWAY was sent, as far as the socket took it
        }
        if self.io_activity.idle_bytes() > IDLE_BYTES_MAX {
            h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            self.is_flooded = true;
            return KeepAliveAction::Flush;
        }
        if self.io_activity.write_blocked_since().is_some() {
            self.set_timer();
        }
        while let Poll::Ready(()) = self.timer.poll(cx) {
            let action = self.on_timer(h2, busy || h2.has_streams());
            self.set_timer();
            if !matches!(action, KeepAliveAction::Wait) {
                return action;
            }
        }
        KeepAliveAction::Wait
    }

    /// Handles an expired timer.
    fn on_timer(&mut self, h2: &mut H2Connection, busy: bool) -> KeepAliveAction {
        let now = Instant::now();
        if self.io_activity.write_blocked_since().is_some_and(|since| now >= since + self.limits.write_timeout) {
            return KeepAliveAction::Close; // the client does not read
        }
        if self.pong_due.is_some_and(|due| now >= due) {
            return KeepAliveAction::Close; // no pong: the client is gone
        }
        if let Some(shutdown) = &mut self.shutdown {
            if now >= shutdown.cancel_at {
                self.closing.cancel();
            }
            if now >= shutdown.close_at {
                if !busy {
                    return KeepAliveAction::Close;
                }
                shutdown.close_at = now + GOAWAY_GRACE; // running calls have deadlines of their own
            }
        } else if now >= self.max_age_at {
            self.begin_shutdown(h2, self.limits.drain_timeout);
            return KeepAliveAction::Flush;
        }
        if now < self.last_check.at + self.check_interval() {
            return KeepAliveAction::Wait;
        }
        let LastCheck { calls, reads, idle_since, .. } = self.last_check;
        let idle_since = if busy || self.calls != calls { now } else { idle_since };
        let silent = self.io_activity.reads() == reads;
        self.io_activity.record_progress(); // the byte limit applies per interval
        self.last_check = LastCheck { at: now, calls: self.calls, reads: self.io_activity.reads(), idle_since };
        if self.shutdown.is_none() && now >= idle_since + self.limits.idle_timeout {
            self.begin_shutdown(h2, Duration::ZERO);
            return KeepAliveAction::Flush;
        }
        if silent && self.pong_due.is_none() && self.ping_now() {
            self.pong_due = Some(now + PONG_WITHIN);
            return KeepAliveAction::Flush;
        }
        KeepAliveAction::Wait
    }

    fn ping_now(&mut self) -> bool {
        self.ping.as_mut().is_some_and(|ping| ping.send_ping(Ping::opaque()).is_ok())
    }

    /// Sends GOAWAY: no new calls; running calls have `grace` to end by themselves.
    fn begin_shutdown(&mut self, h2: &mut H2Connection, grace: Duration) {
        if self.shutdown.is_none() {
            h2.graceful_shutdown();
        }
        let cancel_at = Instant::now() + grace;
        let cancel_at = self.shutdown.as_ref().map_or(cancel_at, |shutdown| shutdown.cancel_at.min(cancel_at));
        self.shutdown = Some(GracefulShutdown { cancel_at, close_at: cancel_at + GOAWAY_GRACE });
        self.set_timer();
    }

    fn check_interval(&self) -> Duration {
        PING_EVERY.min(self.limits.idle_timeout)
    }

    /// Sets the timer to the earliest due time.
    fn set_timer(&mut self) {
        let blocked = self.io_activity.write_blocked_since().map(|since| since + self.limits.write_timeout);
        let shutdown = self.shutdown.as_ref().map(|shutdown| match self.closing.is_cancelled() {
            false => shutdown.cancel_at,
            true => shutdown.close_at,
        });
        let end = shutdown.unwrap_or(self.max_age_at);
        let periodic = self.last_check.at + self.check_interval();
        let next = [blocked, self.pong_due, Some(end)].into_iter().flatten().fold(periodic, Instant::min);
        self.timer.set(next);
    }
}
