//! Records of the control plane.
//!
//! A *draft* is content to be written, valid by itself. A *record* is a stored row with its version and times. A rule's
//! `document` is the same map that a rules file has under `rules:`, as JSON.

mod api_key;
mod audited_json;
mod client;
mod columns;
pub(crate) mod document;
mod grant;
mod namespace;
mod overriding;
mod plan;
mod plan_rules;
mod rule;
mod rule_mode;
mod rule_row;
mod stored_record;
mod token;
mod webhook;

pub(crate) use client::client_plans;
pub(crate) use columns::RuleColumns;
pub(crate) use namespace::NamespaceRow;
pub(crate) use rule_row::RuleRow;
pub(crate) use stored_record::{RowStamp, StoredRecord};

pub use api_key::ApiKeyRecord;
pub use client::{ClientDraft, ClientRecord};
pub use grant::{GrantDraft, GrantRecord};
pub use namespace::NamespaceDraft;
pub use overriding::{OverrideDraft, OverrideRecord};
pub use plan::{PlanDraft, PlanRecord};
pub use plan_rules::{PlanRuleRecord, plan_rules, plan_warnings};
pub use rule::{RuleDraft, RuleRecord, rule_warnings};
pub use rule_mode::{RuleModeDraft, RuleModeRecord};
pub use token::{Role, TokenRecord};
pub use webhook::{DeliveryRecord, DeliveryState, WebhookRecord};
