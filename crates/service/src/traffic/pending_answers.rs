//! Questions of this node that other nodes are answering.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tollgate_store::random;

use super::node_view::NodeView;

/// Answers to one question that wait to be read.
const ANSWERS_MAX: usize = 256;
/// Bytes of all answers to one question. What comes after them is dropped: its node did not answer.
const BYTES_MAX: usize = 16 << 20;

/// The questions that wait for answers.
#[derive(Default)]
pub(super) struct PendingAnswers(Mutex<HashMap<u64, PendingAnswer>>);

struct PendingAnswer {
    sender: Sender<NodeView>,
    room: usize,
}

/// A question that waits. Dropping it ends the wait.
pub(super) struct AskedQuestion<'a> {
    pending: &'a PendingAnswers,
    /// Its number: random, so that no other process can guess it.
    pub(super) number: u64,
    /// What was answered.
    pub(super) answers: Receiver<NodeView>,
}

impl PendingAnswers {
    /// Begins to wait.
    pub(super) fn expect(&self) -> AskedQuestion<'_> {
        let (sender, answers) = channel(ANSWERS_MAX);
        let number = random::unpredictable();
        self.0.lock().insert(number, PendingAnswer { sender, room: BYTES_MAX });
        AskedQuestion { pending: self, number, answers }
    }

    /// True if an answer of so many bytes is still wanted.
    pub(super) fn is_wanted(&self, number: u64, bytes: usize) -> bool {
        let mut pending = self.0.lock();
        let Some(asked) = pending.get_mut(&number).filter(|asked| asked.room >= bytes) else { return false };
        asked.room -= bytes;
        true
    }

    /// Hands an answer over.
    pub(super) fn answered(&self, number: u64, view: NodeView) {
        if let Some(asked) = self.0.lock().get(&number) {
            let _ = asked.sender.try_send(view); // when there are more nodes than that, the rest is missing
        }
    }
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        self.pending.0.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_while_they_are_waited_for_and_within_bounds() {
        let pending = PendingAnswers::default();
        let mut asked = pending.expect();
        let number = asked.number;
        assert!(!pending.is_wanted(number ^ 1, 1), "that was not asked");
        assert!(pending.is_wanted(number, BYTES_MAX) && !pending.is_wanted(number, 1));
        for process in 0..300 {
            pending.answered(number, NodeView { process, ..NodeView::default() });
        }
        let taken = std::iter::from_fn(|| asked.answers.try_recv().ok()).count();
        assert_eq!(taken, ANSWERS_MAX);
        drop(asked);
        assert!(!pending.is_wanted(number, 1) && pending.0.lock().is_empty());
    }
}
