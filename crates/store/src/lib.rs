//! Where buckets live.
//!
//! A [`Store`] looks at all buckets of a request, then charges all of them or none. [`Memory`] does so in this process:
//! exact, bounded, and without a network; it is also what a node falls back to when a shared store is away. [`Fleet`]
//! shares the buckets of another store with other nodes, asking it as seldom as each rule allows.

mod clock;
pub mod fleet;
pub mod memory;
pub mod random;
mod store;
mod sync;

pub use clock::MonotonicClock;
pub use fleet::{Fleet, FleetConfig, FleetStats};
pub use memory::{Memory, MemoryConfig, MemoryStats};
pub use store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};
