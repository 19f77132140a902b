//! What was allowed and refused, by rule and by client over time, in bounded memory.
//!
//! [`Traffic`] is told every decision, in batches and behind the request path, and answers the questions of operators: how
//! much is refused, by which rule, whom, since when. It is pure: the caller passes the time, and nothing here knows
//! threads, rules or sockets.
//!
//! Callers choose their keys, so nothing grows with the number of keys. Series over time are blocks of a pool that is
//! reused in a circle ([`SeriesPool`]); clients are found by [`SpaceSaving`], which keeps the heaviest of any number of
//! keys and states how wrong its counts can be; single decisions are kept in a ring. [`TrafficBudget`] divides the memory
//! among them.

mod budget;
mod closest;
mod counts;
mod heavy_hitters;
mod limited_client;
mod limited_keys;
mod ranking;
mod recent;
mod rule_clients;
mod rule_index;
mod rule_traffic;
mod sample;
mod series;
mod space_saving;
mod traffic;
mod what_if;

pub use budget::TrafficBudget;
pub use closest::CloseClient;
pub use counts::TrafficCounts;
pub use heavy_hitters::{HeavyHitter, HeavyHitters};
pub use limited_client::LimitedClient;
pub use limited_keys::LimitedKeys;
pub use ranking::{RankedClient, Ranking, TopClients};
pub use recent::{DecisionFilter, RecentDecision, RecentDecisions, RecentRuling};
pub use rule_clients::{ClientCounts, RuleClients, sum_of_nodes};
pub use rule_index::RuleIndex;
pub use sample::{DecisionSample, RulingSample};
pub use series::{Resolution, SeriesKey, SeriesPool, TrafficSeries};
pub use space_saving::SpaceSaving;
pub use traffic::{RuleTotals, Traffic};
pub use what_if::{ClientEffect, LimitChange, WhatIf};
