//! The nodes of a fleet ask each other, by messages through the store that they share.
//!
//! A node that an operator asks asks all others, and adds up what they answer in time. Nothing is published before it is
//! asked for: a fleet without operators pays one idle connection per node, and an old decision or a series of a month is
//! found as it is at its node, which no summary that fits into a store would hold.

use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tollgate_core::Span;
use tollgate_store_redis::RedisStore;

use super::fleet_view::FleetView;
use super::message_json::{decode, encode};
use super::monitor::TrafficMonitor;
use super::node_sealer::SealedKind;
use super::node_view::NodeView;
use super::question::{TrafficQuestion, TrafficScope};
use crate::Service;
use crate::store::ConfiguredStore;

/// How long the other nodes may take.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Questions of other nodes that wait. Further ones are dropped.
const QUESTIONS_MAX: usize = 64;
/// Longest question.
const QUESTION_BYTES_MAX: usize = 16 << 10;
/// Bytes that sealing adds, with room to spare.
const SEAL_BYTES: usize = 64;
/// Clients of each rule in an answer. When that does not fit, half of them, and so on.
const CLIENTS_MAX: usize = 256;

/// The process that asks, and what it asks.
type SentQuestion = (u64, (TrafficScope, TrafficQuestion));
/// A question that waits to be answered: its number, and what was sent.
type WaitingQuestion = (u64, SentQuestion);

impl Service {
    /// Asks this node and, in a fleet, all others.
    pub async fn ask_traffic(
        &self,
        traffic: &TrafficMonitor,
        scope: &TrafficScope,
        question: &TrafficQuestion,
    ) -> FleetView {
        traffic.ask(self.engine.store(), scope, question).await
    }
}

impl TrafficMonitor {
    /// Asks this node and, in a fleet, all others. Those that do not answer in time are named as missing.
    async fn ask(&self, store: &ConfiguredStore, scope: &TrafficScope, question: &TrafficQuestion) -> FleetView {
        let others = match store {
            ConfiguredStore::Memory(_) => Vec::new(),
            ConfiguredStore::Shared(node) => self.ask_others(node.fleet.inner(), scope, question).await,
        };
        self.note_answers(&others);
        let live = self.live_nodes().into_iter();
        let missing = live.filter(|name| others.iter().all(|view| view.node != *name)).collect();
        let views = std::iter::once(self.view(scope, question)).chain(others).collect();
        FleetView { views, missing }
    }

    /// The answers of the other nodes, those that came in time.
    pub(super) async fn ask_others(
        &self,
        store: &RedisStore,
        scope: &TrafficScope,
        question: &TrafficQuestion,
    ) -> Vec<NodeView> {
        let link = &self.link;
        let mut asked = link.pending.expect();
        let sent: SentQuestion = (link.process(), (scope.clone(), question.clone()));
        let Some(message) = link.sealer.seal(SealedKind::Question, asked.number, &encode(&sent)) else {
            return Vec::new();
        };
        let mut views: Vec<NodeView> = Vec::new();
        let asking = async {
            let _permit = link.permits.acquire().await.ok()?;
            let channels = link.channels(link.process());
            let within = Span::from_millis(ANSWER_TIMEOUT.as_millis() as u64);
            let listening = store.ask_nodes(&channels, &message, within).await.ok()?;
            let live = self.live_nodes();
            loop {
                let is_complete = match listening {
                    Some(listening) => views.len() as u64 + 1 >= listening,
                    // A cluster does not tell: all that are known.
                    None => live.iter().all(|name| views.iter().any(|view| view.node == *name)),
                };
                if is_complete {
                    return Some(());
                }
                views.push(asked.answers.recv().await?);
            }
        };
        let _ = timeout(ANSWER_TIMEOUT, asking).await; // what came until then is the answer
        views.sort_by(|a, b| (&a.node, a.process).cmp(&(&b.node, b.process)));
        views.dedup_by_key(|view| view.process);
        views
    }

    /// Answers the questions of other nodes, and takes their answers, until it is dropped.
    pub async fn run_link(&self, store: &ConfiguredStore) {
        let ConfiguredStore::Shared(node) = store else { return };
        let store = node.fleet.inner();
        let (sender, questions) = channel(QUESTIONS_MAX);
        tokio::join!(
            self.receive_messages(store, sender),
            self.answer_questions(store, questions),
            self.follow_others(store)
        );
    }

    async fn receive_messages(&self, store: &RedisStore, questions: Sender<WaitingQuestion>) {
        let link = &self.link;
        let mut messages = store.node_messages(link.channels(link.process()));
        loop {
            let message = messages.next().await;
            if message.is_to_all {
                if message.payload.len() > QUESTION_BYTES_MAX {
                    continue;
                }
                let opened = link.sealer.open(SealedKind::Question, &message.payload);
                let read = opened.and_then(|(number, text)| Some((number, decode::<SentQuestion>(&text)?)));
                if let Some((number, sent)) = read.filter(|(_, (process, _))| *process != link.process()) {
                    let _ = questions.try_send((number, sent)); // too many at once: the asking node has a deadline
                }
            } else if let Some((number, text)) = link.sealer.open(SealedKind::Answer, &message.payload)
                && link.pending.is_wanted(number, text.len())
                && let Some(view) = decode::<NodeView>(&text)
            {
                link.pending.answered(number, view);
            }
        }
    }

    async fn answer_questions(&self, store: &RedisStore, mut questions: Receiver<WaitingQuestion>) {
        let mut answers = store.node_answers();
        while let Some((number, (process, (scope, question)))) = questions.recv().await {
            let text = fitting(self.view(&scope, &question));
            let sealed = text.and_then(|text| self.link.sealer.seal(SealedKind::Answer, number, &text));
            if let Some(message) = sealed {
                answers.send(&self.link.channels(process), &message).await;
            }
        }
    }
}

/// An answer as text that fits into a message. Clients that there is no room for raise the errors of those that stay.
fn fitting(mut view: NodeView) -> Option<String> {
    let mut most = CLIENTS_MAX;
    loop {
        let text = encode(&view);
        if text.len() + SEAL_BYTES <= RedisStore::MESSAGE_BYTES_MAX {
            return Some(text);
        }
        if most == 0 {
            return None;
        }
        most /= 2;
        view.cut(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_analytics::{HeavyHitter, HeavyHitters, RuleClients};

    #[test]
    fn an_answer_fits_into_a_message_and_says_what_it_left_out() {
        let hitters = |rule: u64| {
            let hitter = |key: u64| HeavyHitter { key, name: "x".repeat(256), count: 1000 + key, error: 0 };
            HeavyHitters::new((0..128).map(|key| hitter(rule * 128 + key)).collect(), 0, 1 << 20)
        };
        let clients =
            |rule| RuleClients { rule: format!("rule-{rule}"), hitters: hitters(rule), ..RuleClients::default() };
        let view = NodeView { clients: (0..40).map(clients).collect(), ..NodeView::default() };
        let text = fitting(view).expect("it fits");
        assert!(text.len() <= RedisStore::MESSAGE_BYTES_MAX);
        let read: NodeView = decode(text.as_bytes()).expect("an answer");
        assert_eq!(read.clients.len(), 40);
        for rule in &read.clients {
            let listed = rule.hitters.hitters();
            assert!(!listed.is_empty() && listed.len() < 128);
            assert!(listed.iter().all(|own| own.count >= rule.hitters.floor()) && rule.hitters.floor() >= 1000);
        }
        let endless = NodeView { node: "x".repeat(RedisStore::MESSAGE_BYTES_MAX), ..NodeView::default() };
        assert_eq!(fitting(endless), None);
    }
}
