//! Hostile clients over real sockets: malformed, slow, greedy, many, and those of a server that ends.
//! What they send ends nothing but their own connection, costs other connections nothing, and these are answered meanwhile.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod behind_hyper;
mod caller;
mod corpus;
mod crowd;
mod drain;
mod flood;
mod floods;
mod frames;
mod greedy;
mod mutual;
mod pipeline;
mod rig;
mod slow;
mod storm;
mod tls;
mod transit;
