//! SPEC 5.7: a map from holder to expiry, walked on every call.

use std::collections::BTreeMap;

use tollgate_core::{Ask, SlotId};

use super::{Model, ModelAsk, Nanos, narrow};
use crate::{LimitConfig, SpecOutcome};

#[derive(Clone, Default)]
pub(super) struct ModelSlots(BTreeMap<SlotId, Nanos>);

fn numbers(config: &LimitConfig) -> (u64, Nanos) {
    let &LimitConfig::Concurrency { slots, ttl } = config else { panic!("{config:?}") };
    (slots, ttl.into())
}

impl ModelSlots {
    fn seen(&self, now: Nanos, ttl: Nanos) -> ModelSlots {
        let live = self.0.iter().filter(|(_, expiry)| **expiry > now);
        ModelSlots(live.map(|(id, expiry)| (*id, (*expiry).min(now + ttl))).collect())
    }

    fn expiries(&self) -> Vec<Nanos> {
        let mut expiries: Vec<Nanos> = self.0.values().copied().collect();
        expiries.sort_unstable();
        expiries
    }
}

impl Model for ModelSlots {
    fn ask(&mut self, config: &LimitConfig, now: Nanos, wish: ModelAsk) -> (SpecOutcome, u64) {
        let (slots, ttl) = numbers(config);
        let mut seen = self.seen(now, ttl);
        let before = seen.0.len() as u64;
        let (allowed, writes) = match wish.ask {
            Ask::Hold(id) => (seen.0.contains_key(&id) || before < slots, Some(id)),
            Ask::Renew(id) => (seen.0.contains_key(&id), Some(id)),
            other => (if other.cost() == 0 { before <= slots } else { before < slots }, None),
        };
        if let Some(id) = writes {
            if allowed {
                seen.0.insert(id, now + ttl);
            }
            *self = seen.clone();
        }
        let in_use = seen.0.len() as u64;
        let expiries = seen.expiries();
        let retry_after = match allowed {
            true => Some(0),
            false if matches!(wish.ask, Ask::Renew(_)) => None,
            false if wish.ask.cost() == 0 => Some(narrow(expiries[(in_use - slots - 1) as usize] - now)),
            false if slots == 0 => None,
            false => Some(narrow(expiries[(in_use - slots) as usize] - now)),
        };
        let answer = SpecOutcome {
            allowed,
            limit: slots,
            remaining: slots.saturating_sub(in_use),
            retry_after,
            reset_after: expiries.last().map_or(0, |expiry| narrow(expiry - now)),
            next_unit: None,
            delay: allowed.then_some(0),
            in_use,
        };
        (answer, in_use - before)
    }

    fn refund(&mut self, _: &LimitConfig, _: Nanos, _: u64, _: Option<Nanos>) -> u64 {
        0
    }

    fn release(&mut self, config: &LimitConfig, now: Nanos, id: SlotId) -> bool {
        let (_, ttl) = numbers(config);
        *self = self.seen(now, ttl);
        self.0.remove(&id).is_some()
    }
}
