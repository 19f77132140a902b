//! What operators see of the traffic: counts over time, the heaviest clients, the last decisions.
//!
//! The path of a request only copies its decision into a buffer of its thread (`sample_buffer`). A thread of its own
//! takes the buffers ten times a second and tells [`tollgate_analytics::Traffic`], which holds all of it in bounded memory.
//! When buffers fill faster than they are taken, decisions are left out and counted: a limiter must not be slowed by its
//! own book-keeping.

mod collector;
mod fleet_reports;
mod found;
mod generation_rules;
mod known_reports;
mod live;
mod metrics;
mod monitor;
mod question;
mod reset;
mod sample_buffer;

pub use fleet_reports::ReportingNode;
pub use found::{ClientQuestion, DecisionQuestion, FoundDecision, FoundRuling, NamedTotals, TrafficScope};
pub use live::{LiveDecision, LiveEvent, LiveEvents, LiveTick, NamespaceTick};
pub use metrics::TrafficMetrics;
pub use monitor::{TrafficConfig, TrafficMonitor};
pub use reset::CounterReset;

pub use tollgate_analytics::{
    ClientEffect, LimitChange, RankedClient, Ranking, Resolution, TopClients, TrafficBudget, TrafficCounts,
    TrafficSeries, WhatIf,
};
