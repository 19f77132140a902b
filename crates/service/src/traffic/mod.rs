//! What operators see of the traffic: counts over time, the heaviest clients, the last decisions.
//!
//! The path of a request only copies its decision into a buffer of its thread (`sample_buffer`). A thread of its own
//! takes the buffers ten times a second and tells [`tollgate_analytics::Traffic`], which holds all of it in bounded memory.
//! When buffers fill faster than they are taken, decisions are left out and counted: a limiter must not be slowed by its
//! own book-keeping.
//!
//! An operator asks one node. It asks the others of its fleet and adds up what they answer in time (`fleet_link`).

mod answer;
mod collector;
mod fleet_events;
mod fleet_link;
mod fleet_reports;
mod fleet_view;
mod found;
mod generation_rules;
mod known_reports;
mod link_state;
mod live;
mod message_json;
mod metrics;
mod monitor;
mod node_sealer;
mod node_view;
mod other_counts;
mod pending_answers;
mod question;
mod reset;
mod sample_buffer;

pub use answer::RATE_SECONDS;
pub use fleet_reports::ReportingNode;
pub use fleet_view::FleetView;
pub use found::{FoundDecision, FoundRuling, NamedTotals};
pub use live::{LiveDecision, LiveEvent, LiveEvents, LiveTick, NamespaceTick};
pub use metrics::TrafficMetrics;
pub use monitor::{TrafficConfig, TrafficMonitor};
pub use node_view::NodeView;
pub use question::{DecisionPlace, DecisionQuestion, SeriesQuestion, TrafficQuestion, TrafficScope};
pub use reset::CounterReset;

pub use tollgate_analytics::{
    ClientCounts, ClientEffect, LimitChange, RankedClient, Ranking, Resolution, TopClients, TrafficBudget,
    TrafficCounts, TrafficSeries, WhatIf,
};
