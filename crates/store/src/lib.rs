//! Stores: they keep buckets and charge them.
//!
//! A [`Store`] reads all buckets of a request, then charges all of them or none. [`Memory`] does so in this process:
//! exact, bounded, and without a network; a node falls back to it while a shared store is unavailable. [`Fleet`] shares
//! the buckets of another store with other nodes, calling it as rarely as each rule allows.

mod clock;
pub mod fleet;
pub mod memory;
pub mod random;
mod store;
mod sync;

pub use clock::MonotonicClock;
pub use fleet::{Fleet, FleetConfig, FleetStats};
pub use memory::{Memory, MemoryConfig, MemoryStats, RestoredQuotas};
pub use store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};
