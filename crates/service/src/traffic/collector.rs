//! The thread behind the monitor: takes the buffers, and sends what consoles see live.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tollgate_analytics::{DecisionSample, RulingSample, Traffic, TrafficCounts};
use tollgate_core::{Span, Time};
use tollgate_engine::Ruling;

use super::found::found;
use super::generation_rules::GenerationRules;
use super::live::{LiveEvent, LiveTick, NamespaceTick};
use super::monitor::{TrafficConfig, TrafficMonitor, TrafficState};
use super::other_counts::OtherCounts;
use super::sample_buffer::{BufferedDecision, SampleBuffer};

/// How often buffers are taken that are not half full.
const INTERVAL: Duration = Duration::from_millis(100);

fn run(monitor: &Weak<TrafficMonitor>) {
    let mut spare = SampleBuffer::default();
    while let Some(monitor) = monitor.upgrade() {
        monitor.collect_into(&mut spare);
        let mut is_woken = monitor.is_woken.lock();
        if !*is_woken {
            monitor.woken.wait_for(&mut is_woken, INTERVAL);
        }
        *is_woken = false;
    }
}

impl TrafficMonitor {
    /// A monitor, and the thread that collects for it. The thread ends with the monitor.
    pub fn start(config: TrafficConfig) -> std::io::Result<Arc<TrafficMonitor>> {
        let monitor = TrafficMonitor::new(config);
        let weak = Arc::downgrade(&monitor);
        thread::Builder::new().name("tollgate-traffic".to_owned()).spawn(move || run(&weak))?;
        Ok(monitor)
    }

    /// Takes what was handed over, and sends what is due.
    pub fn collect(&self) {
        self.collect_into(&mut SampleBuffer::default());
    }

    fn collect_into(&self, spare: &mut SampleBuffer) {
        self.buffers.take(spare, |buffer| self.receive(buffer));
        let second = self.clock.wall().nanos() / Span::SECOND.nanos();
        let mut state = self.state.lock();
        if second != std::mem::replace(&mut state.ticked, second) && self.live.has_listeners() {
            let tick = state.tick(Time::from_secs(second.saturating_sub(1)), self.others.lock().at(self.now()));
            drop(state);
            self.live.send(LiveEvent::Tick(Arc::new(tick)));
        }
    }

    /// Counts the decisions of one buffer. Questions wait meanwhile, requests do not.
    fn receive(&self, buffer: &SampleBuffer) {
        let mut state = self.state.lock();
        let TrafficState { traffic, generations, .. } = &mut *state;
        let (mut ruling_start, mut text_start) = (0, 0);
        let mut samples: Vec<RulingSample> = Vec::new();
        for decision in &buffer.decisions {
            let ruling_end = ruling_start + usize::from(decision.rulings);
            let namespace_end = text_start + usize::from(decision.namespace_bytes);
            let client_end = namespace_end + usize::from(decision.client_bytes);
            let rulings = buffer.rulings.get(ruling_start..ruling_end).unwrap_or_default();
            let namespace = buffer.text.get(text_start..namespace_end).unwrap_or_default();
            let client = buffer.text.get(namespace_end..client_end).unwrap_or_default();
            (ruling_start, text_start) = (ruling_end, client_end);
            let Some(generation) = generations.iter_mut().rev().find(|known| known.number == decision.generation)
            else {
                continue;
            };
            samples.clear();
            samples.extend(rulings.iter().filter_map(|ruling| sample(ruling, generation, traffic)));
            let index = generation.namespace(namespace, traffic);
            let key = self.client_key(namespace, client);
            let sample = decision.sample(namespace, client, key, &samples);
            if let Some(refused) = traffic.record(&sample, index)
                && self.live.has_listeners()
            {
                let refused = refused.clone();
                self.live.send(LiveEvent::Refused(Arc::new(found(&refused, traffic, generation, self.node()))));
            }
        }
    }
}

impl BufferedDecision {
    fn sample<'a>(
        &self,
        namespace: &'a str,
        client: &'a str,
        key: u64,
        rulings: &'a [RulingSample],
    ) -> DecisionSample<'a> {
        DecisionSample {
            id: self.id.0,
            at: self.at,
            namespace,
            client,
            key,
            is_allowed: self.is_allowed,
            cost: self.cost,
            mode: self.decided_by.name(),
            generation: self.generation,
            deciding: self.deciding.map(usize::from),
            rulings,
        }
    }
}

fn sample(ruling: &Ruling, generation: &mut GenerationRules, traffic: &mut Traffic) -> Option<RulingSample> {
    Some(RulingSample {
        rule: generation.index(ruling.rule, traffic)?,
        is_enforced: ruling.enforced,
        is_refused: ruling.refused(),
        mode: ruling.decided_by.name(),
        outcome: ruling.outcome,
        requests: ruling.requests,
        window: ruling.window,
    })
}

impl TrafficState {
    /// The counts of the second that begins at `at`, by namespace, with those of other nodes.
    fn tick(&self, at: Time, others: Option<&OtherCounts>) -> LiveTick {
        let mut counts: BTreeMap<String, TrafficCounts> = BTreeMap::new();
        let own = self.traffic.totals(at, 1, |_| true).into_iter();
        own.filter(|own| own.rule.is_empty()).for_each(|own| add(&mut counts, own.namespace, own.counts));
        let mut limited = self.traffic.limited_keys(at.after(Span::SECOND), |_| true);
        if let Some(others) = others {
            let namespaces = others.totals.iter().filter(|own| own.rule.is_empty());
            namespaces.for_each(|own| add(&mut counts, &own.namespace, own.counts));
            limited.add(others.limited.clone());
        }
        for namespace in limited.keys.keys() {
            add(&mut counts, namespace, TrafficCounts::default());
        }
        let namespaces = counts.into_iter().map(|(namespace, counts)| {
            let limited_now = limited.keys.get(&namespace).map_or(0, HashSet::len);
            NamespaceTick { namespace, counts, limited_now }
        });
        LiveTick { at, namespaces: namespaces.collect() }
    }
}

fn add(all: &mut BTreeMap<String, TrafficCounts>, namespace: &str, counts: TrafficCounts) {
    all.entry(namespace.to_owned()).or_default().add(counts);
}
