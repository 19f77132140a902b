//! Questions and answers as JSON, for messages between nodes.
//!
//! Members are arrays in the order below: a node of another version reads them by the number of the version in front, or
//! not at all, and is then one that did not answer.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};
use tollgate_analytics::{
    ClientCounts, CloseClient, HeavyHitter, HeavyHitters, LimitedClient, LimitedKeys, Resolution, RuleClients,
    TrafficCounts, TrafficSeries,
};
use tollgate_core::{Outcome, Source, Span, Time, Wait};
use tollgate_engine::{DecidedBy, DecisionId};

use super::found::{FoundDecision, FoundRuling, NamedTotals};
use super::node_view::NodeView;
use super::question::{DecisionPlace, DecisionQuestion, SeriesQuestion, TrafficQuestion, TrafficScope};

/// The version of all of this.
const VERSION: u64 = 1;

/// A message as text.
pub(super) fn encode<T: MessageJson>(message: &T) -> String {
    json!([VERSION, message.write()]).to_string()
}

/// Reads a message of the same version.
pub(super) fn decode<T: MessageJson>(text: &[u8]) -> Option<T> {
    let message: Value = serde_json::from_slice(text).ok()?;
    let [version, message] = message.as_array()?.as_slice() else { return None };
    if *version == VERSION { T::read(message) } else { None }
}

/// Has a form as JSON. What is read was written by another node: nothing about it is taken for granted.
pub(super) trait MessageJson: Sized {
    fn write(&self) -> Value;
    fn read(value: &Value) -> Option<Self>;
}

/// The members of a struct, in this order.
macro_rules! members {
    ($name:ident { $($member:ident),+ }) => {
        impl MessageJson for $name {
            fn write(&self) -> Value {
                Value::Array(vec![$(self.$member.write()),+])
            }
            fn read(value: &Value) -> Option<Self> {
                let mut members = value.as_array()?.iter();
                Some($name { $($member: MessageJson::read(members.next()?)?),+ })
            }
        }
    };
}

/// One value of a list, by its place.
macro_rules! choice {
    ($name:ident { $($value:expr),+ }) => {
        impl MessageJson for $name {
            fn write(&self) -> Value {
                [$($value),+].iter().position(|value| value == self).into()
            }
            fn read(value: &Value) -> Option<Self> {
                [$($value),+].get(usize::read(value)?).copied()
            }
        }
    };
}

members!(TrafficScope { namespaces });
members!(SeriesQuestion { rule, client, resolution, steps });
members!(DecisionQuestion { client, rule, is_allowed, before, most });
members!(DecisionPlace { at, sequence, node });
members!(NodeView { node, process, totals, recent, limited, series, clients, decisions, is_cut, recorded });
members!(NamedTotals { namespace, rule, counts });
members!(TrafficCounts { allowed, denied, shadow_denied, cost });
members!(LimitedKeys { keys, is_exact });
members!(RuleClients { namespace, rule, since, hitters, limited, close });
members!(HeavyHitter { key, name, count, error });
members!(LimitedClient { since, last, until, used, limit, is_shadow });
members!(CloseClient { key, name, used, limit, at, empty_at });
members!(FoundDecision { id, node, sequence, at, namespace, client, is_allowed, cost, mode, generation, rulings });
members!(FoundRuling {
    rule,
    plan,
    is_enforced,
    is_refused,
    is_deciding,
    mode,
    outcome,
    requests,
    window,
    rule_requests,
    limited_since
});
members!(Outcome {
    allowed,
    source,
    limit,
    remaining,
    used,
    granted,
    wait,
    reset_after,
    next_unit_after,
    delay,
    stamp
});

choice!(Resolution { Resolution::Second, Resolution::Minute, Resolution::Hour });
choice!(ClientCounts { ClientCounts::Refusals, ClientCounts::Units });
choice!(Source { Source::Bucket, Source::Overflow, Source::Lease, Source::Async, Source::Local });

impl MessageJson for TrafficQuestion {
    fn write(&self) -> Value {
        match self {
            TrafficQuestion::Overview { seconds } => json!(["overview", seconds.write()]),
            TrafficQuestion::Series(question) => json!(["series", question.write()]),
            TrafficQuestion::Clients { counts, rule } => json!(["clients", counts.write(), rule.write()]),
            TrafficQuestion::Decisions(question) => json!(["decisions", question.write()]),
            TrafficQuestion::Decision(id) => json!(["decision", id.write()]),
            TrafficQuestion::Events(after) => json!(["events", after.write()]),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let (kind, rest) = value.as_array()?.split_first()?;
        let first = rest.first()?;
        Some(match kind.as_str()? {
            "overview" => TrafficQuestion::Overview { seconds: MessageJson::read(first)? },
            "series" => TrafficQuestion::Series(MessageJson::read(first)?),
            "clients" => {
                TrafficQuestion::Clients { counts: MessageJson::read(first)?, rule: MessageJson::read(rest.get(1)?)? }
            }
            "decisions" => TrafficQuestion::Decisions(MessageJson::read(first)?),
            "decision" => TrafficQuestion::Decision(MessageJson::read(first)?),
            "events" => TrafficQuestion::Events(MessageJson::read(first)?),
            _ => return None,
        })
    }
}

impl MessageJson for TrafficSeries {
    /// Without the steps in which nothing happened.
    fn write(&self) -> Value {
        let steps = self.steps.iter().enumerate().filter(|(_, step)| !step.is_zero());
        let steps: Value = steps.map(|(place, step)| json!([place, step.write()])).collect();
        json!([self.start.write(), self.resolution.write(), self.steps.len(), steps])
    }

    fn read(value: &Value) -> Option<Self> {
        let [start, resolution, length, filled] = value.as_array()?.as_slice() else { return None };
        let mut steps = vec![TrafficCounts::default(); usize::read(length)?.min(STEPS_MAX)];
        for (place, counts) in Vec::<(u64, TrafficCounts)>::read(filled)? {
            *steps.get_mut(usize::try_from(place).ok()?)? = counts;
        }
        Some(TrafficSeries { start: MessageJson::read(start)?, resolution: MessageJson::read(resolution)?, steps })
    }
}

/// More steps than any range has.
const STEPS_MAX: usize = 4096;

impl MessageJson for HeavyHitters {
    fn write(&self) -> Value {
        json!([self.hitters().to_vec().write(), self.floor(), self.total()])
    }

    fn read(value: &Value) -> Option<Self> {
        let [hitters, floor, total] = value.as_array()?.as_slice() else { return None };
        Some(HeavyHitters::new(MessageJson::read(hitters)?, MessageJson::read(floor)?, MessageJson::read(total)?))
    }
}

impl MessageJson for Wait {
    fn write(&self) -> Value {
        match self {
            Wait::None => json!(0),
            Wait::For(span) => span.write(),
            Wait::Never => Value::Null,
        }
    }

    fn read(value: &Value) -> Option<Self> {
        match (value.is_null(), Span::read(value)) {
            (true, _) => Some(Wait::Never),
            (false, Some(Span::ZERO)) => Some(Wait::None),
            (false, span) => span.map(Wait::For),
        }
    }
}

impl MessageJson for &'static str {
    /// What decided: the only static texts.
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        let name = value.as_str()?;
        DecidedBy::ALL.into_iter().map(DecidedBy::name).find(|known| *known == name)
    }
}

impl MessageJson for u64 {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl MessageJson for usize {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        usize::try_from(value.as_u64()?).ok()
    }
}

impl MessageJson for bool {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl MessageJson for String {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_str().map(ToOwned::to_owned)
    }
}

impl MessageJson for Time {
    fn write(&self) -> Value {
        json!(self.nanos())
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64().map(Time::from_nanos)
    }
}

impl MessageJson for Span {
    fn write(&self) -> Value {
        json!(self.nanos())
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64().map(Span::from_nanos)
    }
}

impl MessageJson for DecisionId {
    fn write(&self) -> Value {
        json!(self.0)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64().map(DecisionId)
    }
}

impl<T: MessageJson> MessageJson for Option<T> {
    /// In a list: what is there may itself be null.
    fn write(&self) -> Value {
        self.iter().map(MessageJson::write).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.first().map(T::read).map_or(Some(None), |read| read.map(Some))
    }
}

impl<T: MessageJson> MessageJson for Vec<T> {
    fn write(&self) -> Value {
        self.iter().map(MessageJson::write).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(T::read).collect()
    }
}

impl<A: MessageJson, B: MessageJson> MessageJson for (A, B) {
    fn write(&self) -> Value {
        Value::Array(vec![self.0.write(), self.1.write()])
    }

    fn read(value: &Value) -> Option<Self> {
        let [a, b] = value.as_array()?.as_slice() else { return None };
        Some((A::read(a)?, B::read(b)?))
    }
}

impl MessageJson for HashSet<u64> {
    fn write(&self) -> Value {
        self.iter().map(MessageJson::write).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(u64::read).collect()
    }
}

impl<V: MessageJson> MessageJson for HashMap<u64, V> {
    fn write(&self) -> Value {
        self.iter().map(|(key, value)| json!([key, value.write()])).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(<(u64, V)>::read).collect()
    }
}

impl<K: MessageJson + Ord, V: MessageJson> MessageJson for BTreeMap<K, V> {
    fn write(&self) -> Value {
        self.iter().map(|(key, value)| json!([key.write(), value.write()])).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(<(K, V)>::read).collect()
    }
}

#[cfg(test)]
mod tests;
