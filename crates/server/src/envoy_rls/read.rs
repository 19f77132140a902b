//! From a message to requests.

use std::net::IpAddr;
use std::ops::Range;

use smallvec::SmallVec;
use tollgate_core::{AskedLimit, Attribute, Request};
use tollgate_engine::Pinned;
use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_rules::envoy::Unit;

use super::Refused;

/// Most descriptors of a request.
pub const DESCRIPTORS_MAX: usize = 32;
/// Most entries of a descriptor.
pub const ENTRIES_MAX: usize = 16;
/// Longest key of an entry.
pub const KEY_BYTES_MAX: usize = 512;
/// Longest value of an entry.
pub const VALUE_BYTES_MAX: usize = 1024;

/// What Envoy calls the address of a caller.
const REMOTE_ADDRESS: &str = "remote_address";

/// A message that was found to be in order.
pub(crate) struct Asked<'a> {
    pub(crate) message: &'a RateLimitRequest,
    /// The domain's rules are files of envoyproxy/ratelimit: it is answered as that answers.
    pub(crate) is_domain: bool,
    entries: SmallVec<[(&'a str, &'a str); 8]>,
    /// Where each descriptor's entries are.
    places: SmallVec<[Range<usize>; 4]>,
}

/// Which decision has a descriptor's part, and at which place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Asked(u16),
    Given(u16),
}

impl<'a> Asked<'a> {
    pub(crate) fn read(message: &'a RateLimitRequest, generation: &Pinned) -> Result<Asked<'a>, Refused> {
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
        let mut asked = Asked {
            message,
            is_domain: generation.rules.is_domain(domain),
            entries: SmallVec::new(),
            places: SmallVec::new(),
        };
        for (number, descriptor) in descriptors.iter().enumerate() {
            asked.add(descriptor).map_err(|why| invalid(&format!("descriptors[{number}]: {why}")))?;
        }
        Ok(asked)
    }

    fn add(&mut self, descriptor: &'a RateLimitDescriptor) -> Result<(), String> {
        let entries = &descriptor.entries;
        if entries.is_empty() {
            return Err("a descriptor needs an entry".to_owned());
        }
        if entries.len() > ENTRIES_MAX {
            return Err(format!("entries: use at most {ENTRIES_MAX}"));
        }
        let start = self.entries.len();
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
            self.entries.push((&entry.key, &entry.value));
        }
        if descriptor.limit.is_some_and(|limit| Unit::from_number(limit.unit).is_none()) {
            return Err("limit.unit: name a unit of time".to_owned());
        }
        self.places.push(start..self.entries.len());
        Ok(())
    }

    /// True if some descriptor gives units back.
    pub(crate) fn gives_back(&self) -> bool {
        self.message.descriptors.iter().any(|descriptor| descriptor.is_negative_hits)
    }

    /// What is decided, all or nothing.
    pub(crate) fn requests(&self) -> SmallVec<[Request<'_>; 4]> {
        self.some(false)
    }

    /// What is given back.
    pub(crate) fn refunds(&self) -> SmallVec<[Request<'_>; 4]> {
        self.some(true)
    }

    /// Each descriptor, and where its part of the answer is.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        let (mut asked, mut given) = (0, 0);
        self.message.descriptors.iter().map(move |descriptor| {
            let (next, part): (&mut u16, fn(u16) -> Part) = match descriptor.is_negative_hits {
                true => (&mut given, Part::Given),
                false => (&mut asked, Part::Asked),
            };
            *next += 1;
            part(*next - 1)
        })
    }

    /// Entries and hits of a descriptor, by its part.
    pub(crate) fn descriptor(&self, part: Part) -> Option<(&[(&'a str, &'a str)], u64)> {
        let place = self.parts().position(|own| own == part)?;
        let entries = self.entries.get(self.places.get(place)?.clone())?;
        Some((entries, self.hits(self.message.descriptors.get(place)?)))
    }

    /// What the descriptor at a place of the decision asked for, where descriptors are counted one after the other: in
    /// a domain. Elsewhere they are charged as one.
    pub(crate) fn hits_in_turn(&self, place: u16) -> u64 {
        if self.is_domain { self.descriptor(Part::Asked(place)).map_or(0, |(_, hits)| hits) } else { 0 }
    }

    fn hits(&self, descriptor: &RateLimitDescriptor) -> u64 {
        descriptor.hits_addend.unwrap_or_else(|| u64::from(self.message.hits_addend.max(1)))
    }

    fn some(&self, negative: bool) -> SmallVec<[Request<'_>; 4]> {
        let all = self.message.descriptors.iter().zip(&self.places);
        let some = all.filter(|(descriptor, _)| descriptor.is_negative_hits == negative);
        some.map(|(descriptor, place)| self.request(descriptor, place.clone())).collect()
    }

    fn request(&self, descriptor: &RateLimitDescriptor, place: Range<usize>) -> Request<'_> {
        let entries = self.entries.get(place).unwrap_or_default();
        let hits = self.hits(descriptor);
        let mut request = Request::new().in_namespace(&self.message.domain).with_custom(entries).cost(hits);
        request.limit = descriptor.limit.and_then(|limit| {
            let (requests, window) = (u64::from(limit.requests_per_unit), Unit::from_number(limit.unit)?.window());
            Some(AskedLimit { requests, window })
        });
        if self.is_domain {
            return request; // its rules go by the entries as they stand, in their order
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
        // A check without hits asks whether anything is left at all.
        if hits == 0 && !descriptor.is_negative_hits { request.cost(1).peek() } else { request }
    }
}

fn invalid(why: &str) -> Refused {
    Refused::Invalid(why.to_owned())
}
