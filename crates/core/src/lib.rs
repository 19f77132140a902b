//! The rate-limiting algorithms: pure functions on integers. The caller passes the time.
//!
//! This crate reads no clock, starts no thread, opens no file and never waits. A [`Limit`] is a value, and so is the
//! state of a bucket; a decision is a function of the two, the time and the ask. Stores keep the states, rules choose
//! the limits, the engine combines them.
//!
//! An algorithm has three steps, because a request may touch several buckets and is charged to all or to none:
//! [`admits`](Algorithm::admits) reads a state, [`record`](Algorithm::record) writes the decision over all buckets,
//! [`view`](Algorithm::view) computes what is left and when to retry.
//!
//! ```
//! use tollgate_core::{Algorithm, Ask, Effect, Gcra, Span, Time, Wait};
//!
//! let limit = Gcra::new(1, Span::SECOND, 5).unwrap(); // one per second, five at once
//! let (mut tat, now) = (Default::default(), Time::from_secs(1_700_000_000));
//! for _ in 0..5 {
//!     assert!(limit.admits(&tat, now, &Ask::Consume(1)));
//!     limit.record(&mut tat, now, &Ask::Consume(1), Effect::Charge);
//! }
//! assert!(!limit.admits(&tat, now, &Ask::Consume(1)));
//! assert_eq!(limit.view(&tat, now, &Ask::Consume(1), false, 0).wait, Wait::For(Span::SECOND));
//! ```

mod algorithm;
mod ask;
mod charge;
mod clock;
mod concurrency;
mod detached_request;
mod digest;
mod enforcement;
mod fixed_window;
mod gcra;
mod integer;
mod limit;
mod limit_error;
mod outcome;
mod queue;
mod quota;
mod quota_bucket;
mod request;
mod sharing;
mod sliding_counter;
mod sliding_log;
mod slot_hasher;
mod time;
mod words;

pub use algorithm::{Algorithm, Effect, State};
pub use ask::{Ask, SlotId};
pub use charge::{Charge, Owner, Receipt, Soft};
pub use clock::{Clock, ManualClock};
pub use concurrency::{Concurrency, Slots, SlotsSummary};
pub use detached_request::{DetachedLists, DetachedRequest};
pub use digest::{Digest, KeyHasher, Secret};
pub use enforcement::Enforcement;
pub use fixed_window::{FixedWindow, Window};
pub use gcra::{Gcra, Tat};
pub use limit::{Limit, LimitKind};
pub use limit_error::LimitError;
pub use outcome::{Outcome, Wait};
pub use queue::{NextFree, Queue};
pub use quota::{Quota, QuotaUse};
pub use quota_bucket::QuotaBucket;
pub use request::{AskedLimit, Attribute, Purpose, Request};
pub use sharing::{LeaseSize, Sharing, Source};
pub use sliding_counter::{Counter, SlidingCounter};
pub use sliding_log::{Log, LogSummary, SlidingLog};
pub use time::{Span, Time};
pub use words::last_word;
