//! Tells the log when a server of the store goes, comes back or forgets: once each, however often it is looked at.

use tollgate_core::{Span, Time};
use tracing::{info, warn};

use crate::telemetry::{Quiet, ShardFigures, ShardState, StoreFigures};

/// Lines of one kind in ten seconds: a store that flaps does not fill the disk.
const LINES_MAX: u32 = 5;

/// What was last seen of a shared store.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: Vec<Seen>,
    nodes: Option<u64>,
    quiet: Quiet,
}

#[derive(Debug)]
struct Seen {
    address: String,
    state: ShardState,
    /// When it went.
    lost: Option<Time>,
    epoch_changes: u64,
    clock_steps: u64,
}

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Lost,
    Recovering,
    Back { away: Span },
    EpochChanged,
    ClockStepped,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { seen: Vec::new(), nodes: None, quiet: Quiet::new(LINES_MAX) }
    }
}

impl Watch {
    /// Looks at the store, and writes what is new into the log.
    pub(crate) fn look(&mut self, figures: &StoreFigures, now: Time) {
        for (address, event) in self.events(figures, now) {
            self.tell(&address, &event);
        }
        if figures.nodes != self.nodes {
            self.nodes = figures.nodes;
            if let (Some(nodes), Some(unsaid)) = (figures.nodes, self.quiet.admit("nodes")) {
                info!(nodes, unsaid, "nodes that share the limits");
            }
        }
    }

    fn events(&mut self, figures: &StoreFigures, now: Time) -> Vec<(String, Event)> {
        // Servers come and go with failovers: those that are gone are forgotten.
        self.seen.retain(|seen| figures.shards.iter().any(|shard| shard.address == seen.address));
        let mut events = Vec::new();
        for shard in &figures.shards {
            let found = match self.seen.iter_mut().find(|seen| seen.address == shard.address) {
                Some(seen) => seen.changes(shard, now),
                None => {
                    // Not heard from yet, which at the start is no news.
                    self.seen.push(Seen::new(shard, now));
                    Vec::new()
                }
            };
            events.extend(found.into_iter().map(|event| (shard.address.clone(), event)));
        }
        events
    }

    fn tell(&self, address: &str, event: &Event) {
        let Some(unsaid) = self.quiet.admit(event.name()) else { return };
        match event {
            Event::Lost => warn!(address, unsaid, "store lost: its limits are kept by policy (on_fail)"),
            Event::Recovering => info!(address, unsaid, "store answers again: recovering"),
            Event::Back { away } => info!(address, away = %away, unsaid, "store back"),
            Event::EpochChanged => {
                warn!(address, unsaid, "store lost its data: buckets begin anew (restart, failover or FLUSHALL)");
            }
            Event::ClockStepped => warn!(address, unsaid, "the clock of the store stepped"),
        }
    }
}

impl Event {
    const fn name(&self) -> &'static str {
        match self {
            Event::Lost => "lost",
            Event::Recovering => "recovering",
            Event::Back { .. } => "back",
            Event::EpochChanged => "epoch",
            Event::ClockStepped => "clock",
        }
    }
}

impl Seen {
    fn new(shard: &ShardFigures, now: Time) -> Seen {
        let ShardFigures { address, state, epoch_changes, clock_steps, .. } = shard;
        let lost = (*state != ShardState::Up).then_some(now);
        Seen { address: address.clone(), state: *state, lost, epoch_changes: *epoch_changes, clock_steps: *clock_steps }
    }

    fn changes(&mut self, shard: &ShardFigures, now: Time) -> Vec<Event> {
        let mut events = Vec::new();
        match (self.state, shard.state) {
            (old, new) if old == new => {}
            (ShardState::Up, _) => {
                self.lost = Some(now);
                events.push(Event::Lost);
            }
            (_, ShardState::Up) => {
                let away = self.lost.take().map_or(Span::ZERO, |lost| now.since(lost));
                events.push(Event::Back { away });
            }
            (_, ShardState::Recovering) => events.push(Event::Recovering),
            (_, ShardState::Down) => {} // still away: said already
        }
        events.extend((shard.epoch_changes > self.epoch_changes).then_some(Event::EpochChanged));
        events.extend((shard.clock_steps > self.clock_steps).then_some(Event::ClockStepped));
        (self.state, self.epoch_changes, self.clock_steps) = (shard.state, shard.epoch_changes, shard.clock_steps);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(address: &str, state: ShardState, epoch_changes: u64) -> ShardFigures {
        ShardFigures { address: address.to_owned(), state, epoch_changes, ..ShardFigures::default() }
    }

    #[test]
    fn every_change_is_told_once_and_by_whom() {
        use ShardState::{Down, Recovering, Up};
        let mut watch = Watch::default();
        let mut second = 0;
        let mut look = |shards: Vec<ShardFigures>| {
            second += 1;
            watch.events(&StoreFigures { shards, ..StoreFigures::default() }, Time::from_secs(second))
        };
        assert_eq!(look(vec![shard("a", Up, 1), shard("b", Down, 0)]), [], "how it was found is no change");
        assert_eq!(look(vec![shard("a", Down, 1), shard("b", Down, 0)]), [("a".to_owned(), Event::Lost)]);
        assert_eq!(look(vec![shard("a", Down, 1), shard("b", Down, 0)]), []);
        assert_eq!(look(vec![shard("a", Recovering, 1)]), [("a".to_owned(), Event::Recovering)]);
        assert_eq!(look(vec![shard("a", Down, 1)]), [], "still away");
        assert_eq!(look(vec![shard("a", Recovering, 1)]), [("a".to_owned(), Event::Recovering)]);
        let back = Event::Back { away: Span::from_secs(5) };
        assert_eq!(look(vec![shard("a", Up, 2)]), [("a".to_owned(), back), ("a".to_owned(), Event::EpochChanged)]);
        assert_eq!(look(vec![shard("c", Up, 0)]), [], "another server took over");
    }
}
