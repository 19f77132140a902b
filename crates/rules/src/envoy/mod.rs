//! Configuration files of envoyproxy/ratelimit, as they are, as rules.
//!
//! A file says what the limits of one domain are: a tree of descriptors, one level for each entry of a request's
//! descriptor. [`load`] reads files into [`EnvoyDomain`]s with every mistake reported at its place, and
//! [`RuleSet::assemble_with`](crate::ruleset::RuleSet::assemble_with) makes a namespace of each: one ordinary rule for
//! every node with a limit, so that metrics, decision log, failure policies and generations are the same as for any
//! other, and the tree, by which those rules are found instead of by conditions. Requests to such a namespace carry the
//! entries of one descriptor as custom attributes, in their order.
//!
//! Unlike that service, key and value are never joined: a rule for the key `a_b` does not apply to the entry (`a`, `b`),
//! and no two descriptors share a counter because their texts happen to join alike.

mod client;
mod domain;
mod load;
mod metadata;
mod name;
mod read;
mod rule;
mod shrink;
mod unit;

pub use client::{client_key, descriptor_key};
pub use domain::{Allowance, EnvoyDescriptor, EnvoyDomain, RateLimit};
pub use load::{Duplicates, EnvoyFile, load};
pub use metadata::Metadata;
pub use read::read;
pub use rule::EnvoyRule;
pub use shrink::shrinkage;
pub use unit::Unit;

pub(crate) use name::{OVERRIDE, label, rule_name};
pub(crate) use rule::DescriptorLevel;
