//! The records of the control plane, as they are read and as they are to be written.
//!
//! A *draft* is what somebody wants to be written, already valid by itself. A *record* is what a row says, with its
//! version and its times. A rule's `document` is the same map that a rules file would hold under `rules:`, as JSON.

mod audited_json;
mod client;
mod columns;
pub(crate) mod document;
mod namespace;
mod overriding;
mod rule;
mod rule_mode;
mod rule_row;
mod stored_record;
mod token;

pub(crate) use columns::RuleColumns;
pub(crate) use namespace::NamespaceRow;
pub(crate) use rule_row::RuleRow;
pub(crate) use stored_record::{RowStamp, StoredRecord};

pub use client::{ClientDraft, ClientRecord};
pub use namespace::NamespaceDraft;
pub use overriding::{OverrideDraft, OverrideRecord};
pub use rule::{RuleDraft, RuleRecord};
pub use rule_mode::{RuleModeDraft, RuleModeRecord};
pub use token::{Role, TokenRecord};
