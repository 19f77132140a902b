//! Configuration files of envoyproxy/ratelimit, used unchanged as rules.
//!
//! A file defines the limits of one domain: a tree of descriptors, one level for each entry of a request's descriptor.
//! [`load`] reads files into [`EnvoyDomain`]s and reports every mistake with its position.
//! `tollgate_ruleset::RuleSet::assemble_with` compiles each into a namespace: an ordinary rule
//! for every descriptor with a limit, so that metrics, decision log, failure policies and generations work as for other
//! rules, and the tree that finds these rules instead of conditions. Requests to such a namespace have the entries of
//! one descriptor as custom attributes, in order.
//!
//! Unlike in envoyproxy/ratelimit, key and value are never joined: a rule for the key `a_b` does not apply to the entry
//! (`a`, `b`), and two descriptors do not share a counter because their joined texts are equal.

mod client;
mod domain;
mod load;
mod metadata;
mod name;
mod read;
mod shrink;
mod unit;

pub use client::{client_key, descriptor_key};
pub use domain::{Allowance, EnvoyDescriptor, EnvoyDomain, RateLimit};
pub use load::{Duplicates, EnvoyFile, load};
pub use metadata::Metadata;
pub use name::{OVERRIDE, label, rule_name};
pub use read::read;
pub use shrink::shrinkage;
pub use unit::Unit;
