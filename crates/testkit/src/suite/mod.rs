//! The tests that every store must pass.
//!
//! A store under test brings a [`Fixture`]: itself, and a way to set its clock. [`run`] checks the promises of the trait
//! case by case, then compares the store with the [`Reference`](crate::Reference) on long random sequences. A new store
//! gets the whole suite with one test:
//!
//! ```text
//! #[tokio::test]
//! async fn my_store_passes_the_suite() {
//!     suite::run(async || MyFixture::start().await).await;
//! }
//! ```

mod cases;
mod sequences;

use tollgate_core::Time;
use tollgate_store::Store;

/// An empty store, and a clock that the suite sets.
pub trait Fixture {
    /// The store under test.
    type Store: Store;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Sets the store's clock to `now`.
    fn set_time(&self, now: Time);
}

/// Runs every case, each on a fixture of its own. Panics with the name of the case that fails.
pub async fn run<F: Fixture>(make: impl AsyncFn() -> F) {
    cases::all_or_nothing(&make().await).await;
    cases::a_denied_request_charges_nothing(&make().await).await;
    cases::shadow_charges_never_refuse(&make().await).await;
    cases::count_denied_charges_refused_requests(&make().await).await;
    cases::peek_and_cost_zero_change_nothing(&make().await).await;
    cases::up_to_takes_what_is_there(&make().await).await;
    cases::a_receipt_is_honoured_once(&make().await).await;
    cases::a_refund_returns_only_what_is_owed(&make().await).await;
    cases::slots_are_held_renewed_and_released(&make().await).await;
    cases::forgotten_buckets_are_unused(&make().await).await;
    cases::no_charges_are_allowed(&make().await).await;
    for seed in 1..=sequences::SEEDS {
        sequences::agree_with_the_reference(&make().await, seed).await;
    }
}
