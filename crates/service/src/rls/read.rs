//! Reads a `RateLimitRequest` as requests.

use std::net::IpAddr;
use std::ops::Range;

use smallvec::SmallVec;
use tollgate_core::{AskedLimit, Attribute, Charge, Request};
use tollgate_engine::MatchedRequests;
use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_rules::envoy::Unit;
use tollgate_rules::key::is_attribute;
use tollgate_ruleset::RuleSet;

use super::RlsError;

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

/// The amount of the meter that a descriptor names, in the form of a request's costs.
type DescriptorCosts<'a> = Option<[(&'a str, u64); 1]>;

/// A validated message.
pub(crate) struct ParsedRls<'a> {
    pub(crate) message: &'a RateLimitRequest,
    /// The rules of the domain are files of envoyproxy/ratelimit, and its semantics apply.
    pub(crate) is_domain: bool,
    entries: SmallVec<[(&'a str, &'a str); 8]>,
    /// The range of each descriptor in `entries`.
    entry_ranges: SmallVec<[Range<usize>; 4]>,
    /// The meter of each descriptor that names one, with its hits: 1 for a descriptor that peeks.
    meters: SmallVec<[DescriptorCosts<'a>; 4]>,
    /// The group that decides each descriptor.
    groups: SmallVec<[DescriptorGroup; 4]>,
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
    /// Over its limit by the local cache: not decided.
    Cached,
}

impl<'a> ParsedRls<'a> {
    /// Reads a message, with all descriptors in one round. Matches no rule.
    pub(crate) fn read(message: &'a RateLimitRequest, rules: &RuleSet) -> Result<ParsedRls<'a>, RlsError> {
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
            is_domain: rules.is_domain(domain),
            entries: SmallVec::new(),
            entry_ranges: SmallVec::new(),
            meters: SmallVec::new(),
            groups: SmallVec::new(),
            uncounted: 0,
        };
        for (index, descriptor) in descriptors.iter().enumerate() {
            parsed.add(descriptor).map_err(|why| invalid(&format!("descriptors[{index}]: {why}")))?;
        }
        Ok(parsed)
    }

    /// True if descriptors may ask different things of one bucket: some only peek, or bring a limit of their own.
    pub(crate) fn may_need_rounds(&self) -> bool {
        let several = self.groups.len() > 1;
        let peeks = (0..self.groups.len()).filter(|index| self.peeks(*index)).count();
        several
            && ((1..self.groups.len()).contains(&peeks)
                || self.message.descriptors.iter().any(|own| own.limit.is_some()))
    }

    /// All descriptors as requests, to be matched. The decisions about them take some as requests and some as mentions.
    pub(crate) fn all_requests(&self) -> SmallVec<[Request<'_>; 4]> {
        self.only(|_| true)
    }

    /// Puts descriptors that ask different things of one bucket into different rounds: some only peek, some bring a
    /// limit of their own. Fails if refunds do, before anything is charged.
    pub(crate) fn split_into_rounds(&mut self, matched: &MatchedRequests) -> Result<(), RlsError> {
        let charges = matched.charges();
        if self.has_refunds() {
            let refunds = charges.select(matched.rules(), &self.refunds());
            refunds.map_err(|error| invalid(&error.to_string()))?;
        }
        let mut charged: SmallVec<[(usize, SmallVec<[Charge; 4]>); 4]> = SmallVec::new();
        for index in (0..self.groups.len()).filter(|index| self.groups.get(*index) != Some(&DescriptorGroup::Refund)) {
            charged.push((index, charges.of_request(index as u16).copied().collect())); // at most 32 descriptors
        }
        let together = charged.iter().try_fold(Vec::new(), |joined, (_, charges)| join_charges(&joined, charges));
        if together.is_some() {
            return Ok(());
        }
        // Peeks come first, in rounds of their own: they show the state before this message. A domain has no peeks:
        // hits of 0 are counted in order.
        let mut rounds: Vec<(bool, Vec<Charge>)> = Vec::new();
        for peeks in [true, false] {
            for (index, charges) in &charged {
                if self.peeks(*index) != peeks {
                    continue;
                }
                let mut same = rounds.iter().enumerate().filter(|(_, (own, _))| *own == peeks);
                let fit = same.find_map(|(round, (_, own))| Some((round, join_charges(own, charges)?)));
                let (round, joined) = fit.unwrap_or_else(|| (rounds.len(), charges.to_vec()));
                match rounds.get_mut(round) {
                    Some((_, own)) => *own = joined,
                    None => rounds.push((peeks, joined)),
                }
                if let (Some(group), Ok(round)) = (self.groups.get_mut(*index), u8::try_from(round)) {
                    *group = DescriptorGroup::Round(round);
                }
            }
        }
        Ok(())
    }

    /// True if a descriptor asks without hits, outside of a domain.
    fn peeks(&self, index: usize) -> bool {
        !self.is_domain && self.message.descriptors.get(index).is_some_and(|descriptor| self.hits(descriptor) == 0)
    }

    /// Counts only these descriptors, if there are any: the others peek, in rounds of their own.
    pub(crate) fn count_only(&mut self, counted: &[u16]) {
        if counted.is_empty() {
            return;
        }
        let rounds = self.rounds();
        for (index, group) in (0..).zip(&mut self.groups) {
            if let DescriptorGroup::Round(round) = group
                && !counted.contains(&index)
            {
                *round += rounds;
                self.uncounted |= 1 << index;
            }
        }
    }

    /// Takes these descriptors out of the decision: the local cache refuses them.
    pub(crate) fn refuse_by_cache(&mut self, refused: impl Iterator<Item = u16>) {
        for index in refused {
            if let Some(group) = self.groups.get_mut(usize::from(index)) {
                *group = DescriptorGroup::Cached;
            }
        }
    }

    /// Counts nothing: all descriptors peek.
    pub(crate) fn count_nothing(&mut self) {
        self.uncounted = u32::MAX;
    }

    /// False for a descriptor that only peeks.
    pub(crate) fn is_counted(&self, index: u16) -> bool {
        self.uncounted & (1 << (index % 32)) == 0
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
        self.groups.push(if descriptor.is_negative_hits { DescriptorGroup::Refund } else { DescriptorGroup::Round(0) });
        Ok(())
    }

    /// True if a descriptor refunds units.
    pub(crate) fn has_refunds(&self) -> bool {
        self.groups.contains(&DescriptorGroup::Refund)
    }

    /// The number of decisions, refunds aside.
    pub(crate) fn rounds(&self) -> u8 {
        let round = |group: &DescriptorGroup| match group {
            DescriptorGroup::Round(round) => *round,
            DescriptorGroup::Refund | DescriptorGroup::Cached => 0,
        };
        self.groups.iter().map(round).max().unwrap_or_default() + 1
    }

    /// False for a descriptor that is refunded.
    pub(crate) fn is_decided(&self, index: u16) -> bool {
        matches!(self.groups.get(usize::from(index)), Some(DescriptorGroup::Round(_)))
    }

    /// The requests of one round, decided all or nothing.
    pub(crate) fn requests(&self, round: u8) -> SmallVec<[Request<'_>; 4]> {
        self.only_group(DescriptorGroup::Round(round))
    }

    /// The refunds.
    pub(crate) fn refunds(&self) -> SmallVec<[Request<'_>; 4]> {
        self.only_group(DescriptorGroup::Refund)
    }

    /// The group of each descriptor.
    pub(crate) fn groups(&self) -> &[DescriptorGroup] {
        &self.groups
    }

    /// Entries and hits of a descriptor.
    pub(crate) fn descriptor(&self, index: u16) -> Option<(&[(&'a str, &'a str)], u64)> {
        let index = usize::from(index);
        let entries = self.entries.get(self.entry_ranges.get(index)?.clone())?;
        Some((entries, self.hits(self.message.descriptors.get(index)?)))
    }

    /// The hits of a descriptor in a domain, where descriptors are counted one after the other. Elsewhere 0: they are
    /// charged as one.
    pub(crate) fn hits_in_order(&self, index: u16) -> u64 {
        if self.is_domain { self.descriptor(index).map_or(0, |(_, hits)| hits) } else { 0 }
    }

    fn hits(&self, descriptor: &RateLimitDescriptor) -> u64 {
        descriptor.hits_addend.unwrap_or_else(|| u64::from(self.message.hits_addend.max(1)))
    }

    fn only_group(&self, group: DescriptorGroup) -> SmallVec<[Request<'_>; 4]> {
        self.only(|index| self.groups.get(index) == Some(&group))
    }

    /// All descriptors: the selected ones as requests, the others as mentions, because rules may depend on them.
    fn only(&self, selects: impl Fn(usize) -> bool) -> SmallVec<[Request<'_>; 4]> {
        let one = |index| {
            let request = self.request(index)?;
            Some(if selects(index) { request } else { request.mention() })
        };
        (0..self.groups.len()).filter_map(one).collect()
    }

    fn request(&self, index: usize) -> Option<Request<'_>> {
        let descriptor = self.message.descriptors.get(index)?;
        let entries = self.entries.get(self.entry_ranges.get(index)?.clone())?;
        let hits = self.hits(descriptor);
        let mut request = Request::new().in_namespace(&self.message.domain).with_custom(entries).cost(hits);
        request.limit = descriptor.limit.and_then(|limit| {
            let (requests, window) = (u64::from(limit.requests_per_unit), Unit::from_number(limit.unit)?.window());
            Some(AskedLimit { requests, window })
        });
        if self.is_domain {
            // Rules of a domain match the entries in order.
            return Some(if self.uncounted & (1 << index) == 0 { request } else { request.peek() });
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
        if let Some(Some(costs)) = self.meters.get(index) {
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

/// The charges of both, one per bucket, as one decision has them; `None` if they ask different things of a bucket.
fn join_charges(own: &[Charge], added: &[Charge]) -> Option<Vec<Charge>> {
    let mut joined = own.to_vec();
    for charge in added {
        match joined.iter_mut().find(|twin| twin.bucket == charge.bucket) {
            Some(twin) if twin.limit == charge.limit => twin.ask = twin.ask.join(charge.ask)?,
            Some(_) => return None,
            None => joined.push(*charge),
        }
    }
    Some(joined)
}

fn invalid(why: &str) -> RlsError {
    RlsError::Invalid(why.to_owned())
}
