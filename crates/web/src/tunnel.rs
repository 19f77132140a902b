//! What takes a connection over behind a response of 101: WebSocket, or any other protocol that HTTP/1.1 upgrades to.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate_net::Rewound;

type TakeOver = Box<dyn FnOnce(Rewound) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Takes the connection over once the response has been sent. An app puts it into the extensions of a response of 101; the
/// connection and its place among the caps last until it ends.
#[derive(Clone)]
pub struct Tunnel(Arc<Mutex<Option<TakeOver>>>);

impl Tunnel {
    /// Calls `take_over` with the connection. What the client has sent since is read first.
    pub fn new<F>(take_over: impl FnOnce(Rewound) -> F + Send + 'static) -> Tunnel
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Tunnel(Arc::new(Mutex::new(Some(Box::new(|stream| Box::pin(take_over(stream)))))))
    }

    /// Hands the connection over; nothing happens the second time.
    pub(crate) async fn take_over(self, stream: Rewound) {
        let take_over = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(take_over) = take_over {
            take_over(stream).await;
        }
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel")
    }
}
