//! An HTTP/1.1 connection to a server, driven by the task of the request that uses it.
//!
//! hyper expects a task per connection. A request then wakes that task three times and is woken by it once, on several
//! threads each time by way of a queue and perhaps by a thread that sleeps. Here the request polls the connection whenever
//! it waits for it, so an event of the server's socket wakes the request itself. An idle connection is polled by no task:
//! that its server has closed it shows when it is used again, or when the pool looks.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use parking_lot::Mutex;

use super::connection::ConnectionDriver;
use super::sent_body::SentRequestBody;

/// An error, and the request if nothing of it was sent.
pub(crate) type Unanswered = (hyper::Error, Option<Request<SentRequestBody>>);

/// A connection of HTTP/1.1.
pub(crate) struct DrivenConnection {
    sender: http1::SendRequest<SentRequestBody>,
    /// `None` once it has ended, or if a task of its own polls it.
    driver: Option<Box<ConnectionDriver>>,
    user: Arc<ConnectionUser>,
    /// Wakes the user: what the driver is polled with.
    waker: Waker,
}

impl DrivenConnection {
    pub(super) fn new(sender: http1::SendRequest<SentRequestBody>, driver: Box<ConnectionDriver>) -> DrivenConnection {
        let user = Arc::<ConnectionUser>::default();
        DrivenConnection { sender, driver: Some(driver), waker: user.clone().into(), user }
    }

    /// Has a task poll the connection from now on: for a request that must go on while its response waits, and for users
    /// that only wait for responses.
    pub(super) fn spawn(&mut self) {
        if let Some(driver) = self.driver.take() {
            tokio::spawn(async move {
                let _ = driver.with_upgrades().await; // the request that it served has the error
            });
        }
    }

    /// True if it has ended, as far as is known.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// True if it waits for a request.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Looks at an idle connection: false if it has ended.
    pub(super) fn is_open(&mut self) -> bool {
        self.drive();
        !self.is_closed()
    }

    /// True if it can wait for another request, behind a response that was read to its end.
    pub(super) fn is_reusable(&mut self) -> bool {
        if !self.is_ready() {
            self.drive();
        }
        // What a task polls is ready soon, or will be passed over.
        !self.is_closed() && (self.is_ready() || self.driver.is_none())
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&mut self, request: Request<SentRequestBody>) -> Result<Response<Incoming>, Unanswered> {
        let mut sent = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| self.poll_driven(cx, |cx| sent.as_mut().poll(cx))).await;
        answered.map_err(|mut error| {
            let unsent = error.take_message();
            (error.into_error(), unsent)
        })
    }

    /// Polls what waits for nothing but this connection.
    pub(super) fn poll_driven<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if self.driver.is_some() {
            self.user.begin(); // what this poll itself wakes is not worth another one
            // Nothing but the driver makes progress, and it is polled here: there is nothing to be woken for.
            let idle = &mut Context::from_waker(Waker::noop());
            let polled = poll(idle);
            if polled.is_ready() {
                return polled;
            }
            self.drive();
            if self.driver.is_some() {
                let polled = poll(idle);
                if polled.is_pending() && !self.user.wait(cx.waker()) {
                    cx.waker().wake_by_ref();
                }
                return polled;
            }
        }
        poll(cx)
    }

    fn drive(&mut self) {
        self.user.begin();
        if let Some(driver) = &mut self.driver
            && Pin::new(&mut **driver).poll(&mut Context::from_waker(&self.waker)).is_ready()
        {
            self.driver = None; // what waits for it is told the error
        }
    }
}

/// Who is woken by an event of a connection: the task that uses it now, if it waits.
#[derive(Default)]
struct ConnectionUser(Mutex<UserState>);

enum UserState {
    /// It polls the connection, or there is none.
    Active {
        is_woken: bool,
    },
    Waiting(Waker),
}

impl Default for UserState {
    fn default() -> UserState {
        UserState::Active { is_woken: false }
    }
}

impl ConnectionUser {
    /// The user polls: what wakes it from now on is seen by [`ConnectionUser::wait`].
    fn begin(&self) {
        self.replace(UserState::default());
    }

    /// The user waits. False if it was woken since it began.
    fn wait(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock();
        let may_wait = !matches!(*state, UserState::Active { is_woken: true });
        if may_wait {
            *state = UserState::Waiting(waker.clone());
        }
        may_wait
    }

    /// What is replaced is dropped without the lock: a waker may be the last owner of its task.
    fn replace(&self, state: UserState) -> UserState {
        std::mem::replace(&mut *self.0.lock(), state)
    }
}

impl Wake for ConnectionUser {
    fn wake(self: Arc<ConnectionUser>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<ConnectionUser>) {
        if let UserState::Waiting(waker) = self.replace(UserState::Active { is_woken: true }) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Task>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_event_wakes_the_request_that_waits_and_no_other() {
        let (user, tasks) = (Arc::<ConnectionUser>::default(), [Arc::<Task>::default(), Arc::default()]);
        let wakers = tasks.each_ref().map(|task| Waker::from(task.clone()));
        let (event, woken) =
            (Waker::from(user.clone()), || tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed)));
        event.wake_by_ref();
        assert_eq!(woken(), [0, 0], "it is idle");
        user.begin();
        assert!(user.wait(&wakers[0]));
        event.wake_by_ref();
        event.wake_by_ref();
        assert_eq!(woken(), [1, 0], "once, until it has polled again");
        user.begin();
        event.wake_by_ref();
        assert!(!user.wait(&wakers[0]), "something happened while it polled");
        user.begin();
        event.wake_by_ref();
        assert_eq!(woken(), [1, 0], "it has what it waited for");
        user.begin();
        assert!(user.wait(&wakers[1]));
        event.wake_by_ref();
        assert_eq!(woken(), [1, 1]);
        user.begin();
        assert_eq!(tasks.each_ref().map(Arc::strong_count), [2, 2], "no task is kept by a connection that is idle");
    }
}
