//! What the test vectors run against: anything that keeps buckets, driven by a clock that the test holds.

use std::fmt;

use tollgate_core::{Charge, Outcome, SlotId, Time};

use crate::Reference;

/// A keeper of buckets. Implementors promise that `now` is the only time they see.
pub trait Subject {
    /// Decides over all charges at once, all or nothing; one outcome per charge, in order.
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome>;

    /// Gives units of a charge back. Without the stamp of the charge: of whatever the bucket holds.
    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>);

    /// Releases a slot; false if `id` holds none.
    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool;
}

/// A way to make subjects, by the name that `--store` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// [`Reference`]: the model of a store.
    Reference,
}

impl Store {
    /// What the vectors run on unless told otherwise.
    pub const DEFAULT: Store = Store::Reference;

    /// Every store there is.
    pub const ALL: [Store; 1] = [Store::Reference];

    /// The name that chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            Store::Reference => "reference",
        }
    }

    /// The store behind a name or URL.
    pub fn from_url(url: &str) -> Result<Store, UnknownStore> {
        Store::ALL.into_iter().find(|store| store.name() == url).ok_or_else(|| UnknownStore(url.to_owned()))
    }

    /// A subject without any bucket.
    pub fn open(self) -> Box<dyn Subject> {
        match self {
            Store::Reference => Box::new(Reference::default()),
        }
    }
}

/// Nobody answers to this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStore(String);

impl fmt::Display for UnknownStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Store::ALL.into_iter().map(Store::name).collect();
        write!(f, "unknown store {:?}; known are: {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownStore {}
