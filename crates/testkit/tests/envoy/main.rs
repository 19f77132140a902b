//! Files of envoyproxy/ratelimit: the published cases, what is refused, and what their trees mean.

#![allow(clippy::indexing_slicing, clippy::expect_used, reason = "a test that cannot go on may panic")]

mod errors;
mod matching;
mod vectors;
