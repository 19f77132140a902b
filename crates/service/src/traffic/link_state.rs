//! What a node keeps for the messages to and from others.

use tokio::sync::Semaphore;
use tollgate_store::random;
use tollgate_store_redis::NodeChannels;

use super::node_sealer::NodeSealer;
use super::pending_answers::PendingAnswers;

/// Questions of this node at the same time. Further ones wait, within their deadline.
const QUESTIONS_MAX: usize = 4;

/// The state of the link.
pub(super) struct LinkState {
    pub(super) sealer: NodeSealer,
    pub(super) pending: PendingAnswers,
    pub(super) permits: Semaphore,
    process: u64,
}

impl LinkState {
    pub(super) fn new(secret: &[u8; 32]) -> LinkState {
        LinkState {
            sealer: NodeSealer::new(secret),
            pending: PendingAnswers::default(),
            permits: Semaphore::new(QUESTIONS_MAX),
            process: random::unpredictable(),
        }
    }

    /// A number that this process chose at random: two nodes may have the same name.
    pub(super) const fn process(&self) -> u64 {
        self.process
    }

    /// The channels of the process with this number.
    pub(super) fn channels(&self, process: u64) -> NodeChannels {
        NodeChannels::new(self.sealer.fleet(), process)
    }
}
