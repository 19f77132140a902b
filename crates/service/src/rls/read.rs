//! Reads a `RateLimitRequest` as requests.

use std::net::IpAddr;
use std::ops::Range;

use smallvec::SmallVec;
use tollgate_core::{AskedLimit, Attribute, Request, Time};
use tollgate_engine::Pinned;
use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_rules::envoy::Unit;
use tollgate_rules::key::is_attribute;
use tollgate_ruleset::{Charges, RuleSet};

use super::error::RlsError;

/// Most descriptors of a request.
pub const DESCRIPTORS_MAX: usize = 32;
/// Most entries of a descriptor.
pub const ENTRIES_MAX: usize = 16;
/// Longest key of an entry.
pub const KEY_BYTES_MAX: usize = 512;
/// Longest value of an entry.
pub const VALUE_BYTES_MAX: usize = 1024;

/// The descriptor key with the address of a client.
const REMOTE_ADDRESS: &str = "remote_address";

/// The descriptor key that names the meter of the hits, in namespaces of native rules.
const METER: &str = "meter";

/// A validated message.
pub(crate) struct ParsedRls<'a> {
    pub(crate) message: &'a RateLimitRequest,
    /// The rules of the domain are files of envoyproxy/ratelimit, and its semantics apply.
    pub(crate) is_domain: bool,
    entries: SmallVec<[(&'a str, &'a str); 8]>,
    /// The range of each descriptor in `entries`.
    entry_ranges: SmallVec<[Range<usize>; 4]>,
    /// The meter of each descriptor that names one, with its hits: 1 for a descriptor that peeks.
    meters: SmallVec<[Option<[(&'a str, u64); 1]>; 4]>,
    /// The group that decides each descriptor.
    parts: SmallVec<[DescriptorGroup; 4]>,
    /// Bit set of descriptors that are not counted; there are at most 32.
    uncounted: u32,
}

/// The decision that a descriptor belongs to. Every decision sees all descriptors, and rules on those of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorGroup {
    /// The round that decides it: the first, unless descriptors cannot be decided together.
    Round(u8),
    /// Refunded.
    Refund,
}

impl<'a> ParsedRls<'a> {
    /// Reads a message at the time `now`, because overrides are temporary.
    pub(crate) fn read(
        message: &'a RateLimitRequest,
        generation: &Pinned,
        now: Time,
    ) -> Result<ParsedRls<'a>, RlsError> {
        let RateLimitRequest { domain, descriptors, .. } = message;
        if domain.is_empty() {
            return Err(invalid("rate limit domain must not be empty"));
        }
        if domain.len() > KEY_BYTES_MAX {
            return Err(invalid(&format!("domain: use at most {KEY_BYTES_MAX} bytes")));
        }
        if descriptors.is_empty() {
            return Err(invalid("rate limit descriptor list must not be empty"));
        }
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(invalid(&format!("descriptors: use at most {DESCRIPTORS_MAX}")));
        }
        let mut parsed = ParsedRls {
            message,
            is_domain: generation.rules.is_domain(domain),
            entries: SmallVec::new(),
            entry_ranges: SmallVec::new(),
            meters: SmallVec::new(),
            parts: SmallVec::new(),
            uncounted: 0,
        };
        for (number, descriptor) in descriptors.iter().enumerate() {
            parsed.add(descriptor).map_err(|why| invalid(&format!("descriptors[{number}]: {why}")))?;
        }
        parsed.split_into_rounds(&generation.rules, now)?;
        Ok(parsed)
    }

    /// Puts descriptors that ask different things of one bucket into different rounds: some only peek, some bring a
    /// limit of their own.
    fn split_into_rounds(&mut self, rules: &RuleSet, now: Time) -> Result<(), RlsError> {
        let charge = |requests: &[Request<'_>]| rules.charges_of_all(requests, now, &mut Charges::default());
        let mix = |requests: &[Request<'_>]| charge(requests).is_err_and(|error| error.is_mixed());
        if self.has_refunds() {
            charge(&self.refunds()).map_err(|error| invalid(&error.to_string()))?; // before anything is charged
        }
        if self.parts.len() < 2 || !mix(&self.requests(0)) {
            return Ok(());
        }
        // Peeks come first, in rounds of their own: they show the state before this message. A domain has no peeks:
        // hits of 0 are counted in order.
        let mut rounds: Vec<(bool, Vec<usize>)> = Vec::new();
        for looks in [true, false] {
            for (place, descriptor) in self.message.descriptors.iter().enumerate() {
                if descriptor.is_negative_hits || (!self.is_domain && self.hits(descriptor) == 0) != looks {
                    continue;
                }
                let fits = |(own, others): &(bool, Vec<usize>)| {
                    let together = others.iter().chain([&place]).filter_map(|place| self.request(*place));
                    *own == looks && !mix(&together.collect::<Vec<_>>())
                };
                match rounds.iter().position(fits).and_then(|round| rounds.get_mut(round)) {
                    Some((_, round)) => round.push(place),
                    None => rounds.push((looks, vec![place])),
                }
            }
        }
        for (round, (_, entry_ranges)) in (0..).zip(rounds) {
            for (place, part) in self.parts.iter_mut().enumerate() {
                if entry_ranges.contains(&place) {
                    *part = DescriptorGroup::Round(round);
                }
            }
        }
        // All rounds must be valid before the first one is charged.
        (0..self.rounds())
            .try_for_each(|round| charge(&self.requests(round)))
            .map_err(|error| invalid(&error.to_string()))
    }

    /// Counts only these descriptors, if there are any: the others peek, in rounds of their own.
    pub(crate) fn count_only(&mut self, entry_ranges: &[u16]) {
        if entry_ranges.is_empty() {
            return;
        }
        let rounds = self.rounds();
        for (place, part) in (0..).zip(&mut self.parts) {
            if let DescriptorGroup::Round(round) = part
                && !entry_ranges.contains(&place)
            {
                *round += rounds;
                self.uncounted |= 1 << place;
            }
        }
    }

    fn add(&mut self, descriptor: &'a RateLimitDescriptor) -> Result<(), String> {
        let entries = &descriptor.entries;
        if entries.is_empty() {
            return Err("a descriptor needs an entry".to_owned());
        }
        if entries.len() > ENTRIES_MAX {
            return Err(format!("entries: use at most {ENTRIES_MAX}"));
        }
        let (start, mut meter) = (self.entries.len(), None);
        for entry in entries {
            if entry.key.is_empty() {
                return Err("entries: a key must not be empty".to_owned());
            }
            if entry.key.len() > KEY_BYTES_MAX {
                return Err(format!("entries: a key may have {KEY_BYTES_MAX} bytes"));
            }
            if entry.value.len() > VALUE_BYTES_MAX {
                return Err(format!("entries: a value may have {VALUE_BYTES_MAX} bytes"));
            }
            if entry.key == METER && !self.is_domain {
                read_meter(&entry.value, &mut meter)?;
                continue;
            }
            self.entries.push((&entry.key, &entry.value));
        }
        if descriptor.limit.is_some_and(|limit| Unit::from_number(limit.unit).is_none()) {
            return Err("limit.unit: name a unit of time".to_owned());
        }
        self.entry_ranges.push(start..self.entries.len());
        let meter = meter.filter(|meter| *meter != Request::REQUESTS);
        self.meters.push(meter.map(|meter| [(meter, self.hits(descriptor).max(1))]));
        self.parts.push(if descriptor.is_negative_hits { DescriptorGroup::Refund } else { DescriptorGroup::Round(0) });
        Ok(())
    }

    /// True if a descriptor refunds units.
    pub(crate) fn has_refunds(&self) -> bool {
        self.parts.contains(&DescriptorGroup::Refund)
    }

    /// The number of decisions, refunds aside.
    pub(crate) fn rounds(&self) -> u8 {
        let round = |part: &DescriptorGroup| match part {
            DescriptorGroup::Round(round) => *round,
            DescriptorGroup::Refund => 0,
        };
        self.parts.iter().map(round).max().unwrap_or_default() + 1
    }

    /// The requests of one round, decided all or nothing.
    pub(crate) fn requests(&self, round: u8) -> SmallVec<[Request<'_>; 4]> {
        self.only(DescriptorGroup::Round(round))
    }

    /// The refunds.
    pub(crate) fn refunds(&self) -> SmallVec<[Request<'_>; 4]> {
        self.only(DescriptorGroup::Refund)
    }

    /// The group of each descriptor.
    pub(crate) fn parts(&self) -> &[DescriptorGroup] {
        &self.parts
    }

    /// Entries and hits of a descriptor.
    pub(crate) fn descriptor(&self, place: u16) -> Option<(&[(&'a str, &'a str)], u64)> {
        let place = usize::from(place);
        let entries = self.entries.get(self.entry_ranges.get(place)?.clone())?;
        Some((entries, self.hits(self.message.descriptors.get(place)?)))
    }

    /// The hits of a descriptor in a domain, where descriptors are counted one after the other. Elsewhere 0: they are
    /// charged as one.
    pub(crate) fn hits_in_order(&self, place: u16) -> u64 {
        if self.is_domain { self.descriptor(place).map_or(0, |(_, hits)| hits) } else { 0 }
    }

    fn hits(&self, descriptor: &RateLimitDescriptor) -> u64 {
        descriptor.hits_addend.unwrap_or_else(|| u64::from(self.message.hits_addend.max(1)))
    }

    /// All descriptors: those of one group as requests, the others as mentions, because rules may depend on them.
    fn only(&self, part: DescriptorGroup) -> SmallVec<[Request<'_>; 4]> {
        let all = (0..).zip(&self.parts);
        let one = |(place, own): (usize, &DescriptorGroup)| {
            let request = self.request(place)?;
            Some(if *own == part { request } else { request.mention() })
        };
        all.filter_map(one).collect()
    }

    fn request(&self, place: usize) -> Option<Request<'_>> {
        let descriptor = self.message.descriptors.get(place)?;
        let entries = self.entries.get(self.entry_ranges.get(place)?.clone())?;
        let hits = self.hits(descriptor);
        let mut request = Request::new().in_namespace(&self.message.domain).with_custom(entries).cost(hits);
        request.limit = descriptor.limit.and_then(|limit| {
            let (requests, window) = (u64::from(limit.requests_per_unit), Unit::from_number(limit.unit)?.window());
            Some(AskedLimit { requests, window })
        });
        if self.is_domain {
            // Rules of a domain match the entries in order.
            return Some(if self.uncounted & (1 << place) == 0 { request } else { request.peek() });
        }
        for (key, value) in entries {
            match Attribute::from_name(key) {
                Some(attribute) if request.get(attribute).is_none() => request.set(attribute, value),
                None if *key == REMOTE_ADDRESS && value.parse::<IpAddr>().is_ok() => {
                    request.set(Attribute::Ip, value);
                }
                _ => {}
            }
        }
        if let Some(Some(costs)) = self.meters.get(place) {
            let request = request.with_costs(costs).cost(0);
            return Some(if hits == 0 && !descriptor.is_negative_hits { request.peek() } else { request });
        }
        // A descriptor without hits asks whether one unit is left.
        Some(if hits == 0 && !descriptor.is_negative_hits { request.cost(1).peek() } else { request })
    }
}

fn read_meter<'a>(name: &'a str, meter: &mut Option<&'a str>) -> Result<(), String> {
    if !is_attribute(name) {
        return Err("entries: a meter is a lower-case letter, then up to 63 of a-z, 0-9, _, ., -".to_owned());
    }
    match meter.replace(name) {
        None => Ok(()),
        Some(_) => Err("entries: name one meter".to_owned()),
    }
}

fn invalid(why: &str) -> RlsError {
    RlsError::Invalid(why.to_owned())
}
