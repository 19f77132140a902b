//! What each node reports of its traffic: published in the store, so that any node can sum them.
//!
//! By the same commands as the rules of nodes, so that a node needs no other rights.

use std::sync::Arc;

use tollgate_core::Span;
use tollgate_store::StoreError;

use super::primary::Primary;
use super::redis_store::{RedisStore, unavailable};
use crate::client::slot::slot_of;

/// The key of the reports: a sorted set of `NODE REPORT` by the second of the publication.
const REPORTS_KEY: &[u8] = b"tg:{AAA}traffic";
/// The key of what nodes tell of themselves, in the same form.
const STATUSES_KEY: &[u8] = b"tg:{AAA}status";
/// Expiry of the set without nodes.
const REPORTS_TTL_MS: &[u8] = b"900000";
/// A node that has not reported for so long is missing.
const MISSING_AFTER_SECS: u64 = 20;
/// A node that has not reported for so long is forgotten.
const GONE_AFTER_SECS: u64 = 600;
/// Index of the last report that is read.
const LAST: &[u8] = b"255";

/// The last report of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The process: the name of its node, and a random number.
    pub node: String,
    /// How long ago it was, by the store's clock.
    pub age: Span,
    /// The report.
    pub report: String,
}

impl NodeReport {
    /// The name of the node, without the number that tells its processes apart.
    pub fn name(&self) -> &str {
        let is_number = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.node.rsplit_once('-').filter(|(_, number)| is_number(number)).map_or(&*self.node, |(name, _)| name)
    }

    /// True if the node stopped to report.
    pub fn is_missing(&self) -> bool {
        self.age > Span::from_secs(MISSING_AFTER_SECS)
    }
}

impl RedisStore {
    /// Longest report.
    pub const REPORT_BYTES_MAX: usize = 4096;

    /// Publishes the report of this node, removes the previous one, and returns those of all other nodes.
    pub async fn publish_report(&self, own: &str, before: Option<&str>) -> Result<Vec<NodeReport>, StoreError> {
        self.publish_text(REPORTS_KEY, own, before).await
    }

    /// The same for what this node tells of itself.
    pub async fn publish_status(&self, own: &str, before: Option<&str>) -> Result<Vec<NodeReport>, StoreError> {
        self.publish_text(STATUSES_KEY, own, before).await
    }

    /// The name of this node in what nodes tell, unlike that of any other.
    pub fn node(&self) -> &str {
        &self.context.config.node
    }

    /// Removes what this node told of itself: it stops.
    pub async fn withdraw_status(&self, own: &str) -> Result<(), StoreError> {
        let member = format!("{} {own}", self.context.config.node);
        let command: [&[&[u8]]; 1] = [&[b"ZREM", STATUSES_KEY, member.as_bytes()]];
        self.primary_of_nodes()?.pipeline(&command, self.context.config.connect_timeout).await.map(drop)
    }

    /// The server that holds what nodes tell.
    fn primary_of_nodes(&self) -> Result<Arc<Primary>, StoreError> {
        let slot = if self.topology.is_split() { slot_of(b"AAA") } else { 0 };
        self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))
    }

    async fn publish_text(&self, key: &[u8], own: &str, before: Option<&str>) -> Result<Vec<NodeReport>, StoreError> {
        let primary = self.primary_of_nodes()?;
        let now = primary.store_time().ok_or_else(|| unavailable("the store's time is not known yet"))?;
        let seconds = now.nanos() / Span::SECOND.nanos();
        let member = |report: &str| format!("{} {report}", self.context.config.node);
        let (told, score) = (member(own), seconds.to_string());
        let old = before.filter(|old| *old != own).map_or_else(|| "none".to_owned(), member);
        let gone = format!("({}", seconds.saturating_sub(GONE_AFTER_SECS));
        let commands: [&[&[u8]]; 5] = [
            &[b"ZADD", key, score.as_bytes(), told.as_bytes()],
            &[b"ZREM", key, old.as_bytes()],
            &[b"ZREMRANGEBYSCORE", key, b"-inf", gone.as_bytes()],
            &[b"PEXPIRE", key, REPORTS_TTL_MS],
            &[b"ZRANGE", key, b"0", LAST, b"WITHSCORES"],
        ];
        let replies = primary.pipeline(&commands, self.context.config.connect_timeout).await?;
        let members = replies.last().and_then(|reply| reply.array());
        let members = members.ok_or_else(|| unavailable("the store did not return the reports of other nodes"))?;
        let texts: Vec<&str> = members.iter().filter_map(|member| std::str::from_utf8(member.text()?).ok()).collect();
        let read = |pair: &[&str]| {
            let [member, score] = pair else { return None };
            let (node, report) = member.split_once(' ')?;
            let at = score.split('.').next()?.parse().ok()?;
            let age = Span::from_secs(seconds.saturating_sub(at));
            Some(NodeReport { node: node.to_owned(), age, report: report.to_owned() })
        };
        let own = |report: &NodeReport| report.node == self.context.config.node;
        Ok(newest(texts.chunks(2).filter_map(read).filter(|report| !own(report)).collect()))
    }
}

/// The newest report of each node: one that was killed has left another.
fn newest(mut reports: Vec<NodeReport>) -> Vec<NodeReport> {
    reports.sort_by(|a, b| a.node.cmp(&b.node).then(a.age.cmp(&b.age)));
    reports.dedup_by(|later, first| later.node == first.node);
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_report_of_each_node_counts() {
        let report = |node: &str, age, report: &str| NodeReport {
            node: node.to_owned(),
            age: Span::from_secs(age),
            report: report.to_owned(),
        };
        let all = vec![report("b", 3, "x"), report("a", 40, "old"), report("a", 1, "new")];
        let newest = newest(all);
        assert_eq!(newest, [report("a", 1, "new"), report("b", 3, "x")]);
        assert!(!newest[0].is_missing() && report("c", 21, "").is_missing());
        let names = ["a-8ca84072", "a-b-8ca84072", "a-b", "a", "8ca84072"];
        assert_eq!(names.map(|node| report(node, 0, "").name().to_owned()), ["a", "a-b", "a-b", "a", "8ca84072"]);
    }
}
