//! What another limit would have done to recorded traffic.
//!
//! Steps of a series say how much was asked for in a second, a minute or an hour, not when in it. So each client is
//! simulated twice: as if the requests of a step came evenly, and as if they came all at its start. What really would have
//! happened lies between, if callers had behaved the same.

use std::collections::VecDeque;

use tollgate_core::Span;

use crate::series::TrafficSeries;

/// The numbers of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitChange {
    /// Units per window.
    pub units: u64,
    /// The window.
    pub window: Span,
    /// Units at once, of a bucket that refills; `None` for a window.
    pub burst: Option<u64>,
}

/// What a limit would have done to one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientEffect {
    /// Requests that were made.
    pub requests: u64,
    /// Requests that were refused then.
    pub refused_then: u64,
    /// Requests that would have been refused, at least.
    pub refused_min: u64,
    /// Requests that would have been refused, at most.
    pub refused_max: u64,
}

/// What a limit would have done to all clients that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// By client, the most refused first.
    pub clients: Vec<(u64, String, ClientEffect)>,
    /// All of them together.
    pub sum: ClientEffect,
    /// Requests of clients that are not known by name, which are not simulated.
    pub unattributed: u64,
}

impl WhatIf {
    /// Adds a client.
    pub fn add(&mut self, key: u64, name: String, effect: ClientEffect) {
        self.sum.requests += effect.requests;
        self.sum.refused_then += effect.refused_then;
        self.sum.refused_min += effect.refused_min;
        self.sum.refused_max += effect.refused_max;
        self.clients.push((key, name, effect));
    }

    /// Sorts; `all` is the number of requests that the rule was asked.
    #[must_use]
    pub fn finish(mut self, all: u64) -> WhatIf {
        self.clients.sort_by(|(_, a_name, a), (_, b_name, b)| {
            (b.refused_max, b.requests).cmp(&(a.refused_max, a.requests)).then_with(|| a_name.cmp(b_name))
        });
        self.unattributed = all.saturating_sub(self.sum.requests);
        self
    }

    /// Clients that would have been refused at least once.
    pub fn refused_clients(&self) -> usize {
        self.clients.iter().filter(|(.., effect)| effect.refused_max > 0).count()
    }
}

impl LimitChange {
    /// What this limit would have done to the client with this series.
    pub fn effect_on(&self, series: &TrafficSeries) -> ClientEffect {
        let requests = series.steps.iter().map(|step| step.requests()).sum();
        let refused_then = series.steps.iter().map(|step| step.denied).sum();
        let (allowed, cost) =
            series.steps.iter().fold((0, 0), |(allowed, cost), step| (allowed + step.allowed, cost + step.cost));
        let unit_cost = cost.checked_div(allowed).unwrap_or(1).max(1);
        let step = Span::from_secs(series.resolution.seconds());
        let demand: Vec<u64> = series.steps.iter().map(|step| step.requests().saturating_mul(unit_cost)).collect();
        let refused = |comes_at_once: bool| {
            let admitted = match self.burst {
                Some(burst) => self.admitted_by_bucket(&demand, burst, step, comes_at_once),
                None => self.admitted_by_window(&demand, step, comes_at_once),
            };
            demand.iter().sum::<u64>().saturating_sub(admitted).div_ceil(unit_cost)
        };
        let (evenly, at_once) = (refused(false), refused(true));
        ClientEffect { requests, refused_then, refused_min: evenly.min(at_once), refused_max: evenly.max(at_once) }
    }

    /// Units that a bucket admits. It is counted in units times the window, so that refilling needs no division.
    fn admitted_by_bucket(&self, demand: &[u64], burst: u64, step: Span, comes_at_once: bool) -> u64 {
        let scale = u128::from(self.window.nanos().max(1));
        let (most, refill) = (u128::from(burst) * scale, u128::from(self.units) * u128::from(step.nanos()));
        let (mut room, mut admitted) = (most, 0_u64);
        for units in demand {
            let offered = if comes_at_once { room } else { room + refill };
            let taken = (*units).min(u64::try_from(offered / scale).unwrap_or(u64::MAX));
            admitted = admitted.saturating_add(taken);
            room = (room + refill).saturating_sub(u128::from(taken) * scale).min(most);
        }
        admitted
    }

    /// Units that a sliding window admits. The step at the start of the window is counted if requests come at once.
    fn admitted_by_window(&self, demand: &[u64], step: Span, comes_at_once: bool) -> u64 {
        let whole = self.window.nanos() / step.nanos().max(1);
        let kept = whole.saturating_sub(1) + u64::from(comes_at_once);
        // A window shorter than a step begins several times in it.
        let in_step = if whole == 0 && !comes_at_once { step.nanos() / self.window.nanos().max(1) } else { 1 };
        let room_of_step = self.units.saturating_mul(in_step.max(1));
        let (mut last, mut in_window, mut admitted) = (VecDeque::new(), 0_u64, 0_u64);
        for units in demand {
            let taken = (*units).min(room_of_step.saturating_sub(in_window));
            admitted = admitted.saturating_add(taken);
            last.push_back(taken);
            in_window += taken;
            while last.len() as u64 > kept {
                in_window -= last.pop_front().unwrap_or_default();
            }
        }
        admitted
    }
}
