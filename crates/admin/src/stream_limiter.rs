//! Caps on open event streams: in all, and per token. Each occupies a connection of the listener, which `/metrics`, the kill
//! switch and the console need as well.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::problem::AdminProblem;

/// Streams at once. With those of the console (as many) they leave room on the listener, also if all come from one
/// address, such as that of a proxy.
pub(crate) const STREAMS_MAX: usize = 100;
/// Of these, with one token: a team's dashboards, and no more.
pub(crate) const STREAMS_PER_TOKEN_MAX: usize = 32;
/// When a refused client may try again, in seconds.
const RETRY_AFTER: &str = "10";

/// Counts open streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamLimiter(Arc<Mutex<OpenStreams>>);

#[derive(Debug, Default)]
struct OpenStreams {
    all: usize,
    /// Only tokens with open streams.
    by_token: HashMap<String, usize>,
}

/// Permission of one stream; returned when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limiter: StreamLimiter,
    token_id: String,
}

impl StreamLimiter {
    /// Admits one more stream of a token.
    pub(crate) fn acquire(&self, token_id: &str) -> Result<StreamPermit, AdminProblem> {
        let mut open = self.0.lock();
        if open.by_token.get(token_id).is_some_and(|own| *own >= STREAMS_PER_TOKEN_MAX) {
            let detail = format!(
                "This token has {STREAMS_PER_TOKEN_MAX} streams open, and may have no more: close one, or use a token of your own."
            );
            return Err(refusal(429, "too_many_streams_of_token", detail));
        }
        if open.all >= STREAMS_MAX {
            let detail = format!("{STREAMS_MAX} streams are open at this node, the most that it serves: try again.");
            return Err(refusal(503, "too_many_streams", detail));
        }
        open.all += 1;
        *open.by_token.entry(token_id.to_owned()).or_default() += 1;
        Ok(StreamPermit { limiter: self.clone(), token_id: token_id.to_owned() })
    }
}

/// A refused client keeps no connection, or those would occupy the listener instead.
fn refusal(status: u16, code: &'static str, detail: String) -> AdminProblem {
    AdminProblem::new(status, code, detail).with("Retry-After", RETRY_AFTER).with("Connection", "close")
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.0.lock();
        open.all -= 1;
        if let Some(own) = open.by_token.get_mut(&self.token_id) {
            *own -= 1;
            if *own == 0 {
                open.by_token.remove(&self.token_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_and_all_together_have_so_many_streams_and_no_more() {
        let limiter = StreamLimiter::default();
        let take = |token: &str, count: usize| -> Vec<StreamPermit> {
            (0..count).map_while(|_| limiter.acquire(token).ok()).collect()
        };
        let refused = |token: &str| limiter.acquire(token).map(drop).map_err(|problem| (problem.status, problem.code));
        let first = take("a", STREAMS_MAX);
        assert_eq!(first.len(), STREAMS_PER_TOKEN_MAX);
        assert_eq!(refused("a"), Err((429, "too_many_streams_of_token")));
        let others: Vec<StreamPermit> = ["b", "c", "d"].iter().flat_map(|token| take(token, STREAMS_MAX)).collect();
        assert_eq!(first.len() + others.len(), STREAMS_MAX);
        assert_eq!(refused("e"), Err((503, "too_many_streams")));
        drop(first);
        assert_eq!(refused("e"), Ok(()));
        assert_eq!(take("a", STREAMS_MAX).len(), STREAMS_PER_TOKEN_MAX);
        drop(others);
        assert!(limiter.0.lock().by_token.is_empty() && limiter.0.lock().all == 0, "nothing is left behind");
    }
}
