//! A node among others: what each way of sharing promises, over a simulated network with delays, losses and deaths.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails there has found its bug")]

mod world;

mod behind;
mod deny;
mod hot;
mod mixed;
