//! Mode overrides of single rules of any source: the mode holds instead of the rule's own until it is removed.
//!
//! Rules of files cannot be edited here, and an on-call engineer should not have to edit one of the database: the override
//! leaves the rule unchanged, survives reloads of files, is in the audit, and is shown with the rule.

use std::collections::HashMap;

use serde_json::{Value, json};
use tollgate_control::record::{Role, RuleModeDraft, RuleModeRecord};
use tollgate_control::{Edit, Enforcement, Precondition};

use crate::access::AdminAccess;
use crate::body_fields::BodyFields;
use crate::call::AdminCall;
use crate::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use crate::parameter::DRY_RUN;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;
use crate::{changes, json, resource};

const PATH: &str = "/v1/rules/{rule_id}/mode";

pub(crate) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        responses: &[(200, ResponseContent::Json("RuleMode"))],
        ..AdminEndpoint::get(PATH, "getRuleMode", Tag::Rules, "Read the switch of a rule", |call| Box::pin(get(call)))
    },
    AdminEndpoint {
        detail: "Holds instead of the rule's own mode, whatever the source of the rule, also when a file is read again; \
                 until it is removed. The role on-call may switch to `shadow` and to `enforce`, but not where it is `off`.",
        access: AdminAccess::Needs(Role::OnCall),
        query: &[DRY_RUN],
        body: RequestBody::Json(&["RuleModeInput"]),
        responses: &[(200, ResponseContent::Json("RuleMode"))],
        ..AdminEndpoint::change(HttpMethod::Put, PATH, "setRuleMode", Tag::Rules, "Switch a rule to a mode", |call| {
            Box::pin(set(call))
        })
    },
    AdminEndpoint {
        detail: "The rule's own mode holds again.",
        access: AdminAccess::Needs(Role::OnCall),
        query: &[DRY_RUN],
        responses: &[(204, ResponseContent::Nothing), (200, ResponseContent::Json("DryRun"))],
        ..AdminEndpoint::change(
            HttpMethod::Delete,
            PATH,
            "removeRuleMode",
            Tag::Rules,
            "Remove the switch of a rule",
            |call| Box::pin(remove(call)),
        )
    },
];

async fn get(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    Ok(AdminResponse::json(&call.control()?.rule_mode(call.namespace(), call.id()).await?.json()))
}

async fn set(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let mut fields = BodyFields::of(json::object(call.body)?, &["mode", "reason"]);
    let mode = fields.required_word("mode", &Enforcement::ALL.map(Enforcement::name), Enforcement::named);
    let reason = fields.text("reason").unwrap_or_default();
    fields.rest()?;
    let Some(mode) = mode else { return Err(AdminProblem::of_faults(Vec::new())) };
    check_off(call, Some(mode)).await?;
    let applied =
        resource::apply(call, vec![edit(call, Some(RuleModeDraft { mode, reason }), Precondition::Anything)], "switch");
    let applied = applied.await?;
    if call.dry_run() { Ok(changes::response(call, &applied)) } else { get(call).await }
}

async fn remove(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    check_off(call, None).await?;
    let applied = resource::apply(call, vec![edit(call, None, Precondition::Present)], "switch back").await?;
    if call.dry_run() { Ok(changes::response(call, &applied)) } else { Ok(AdminResponse::nothing(204)) }
}

/// Switching to `off`, and back from it, needs the role operator.
async fn check_off(call: &AdminCall<'_>, to: Option<Enforcement>) -> Result<(), AdminProblem> {
    if call.identity().is_none_or(|identity| identity.role.may(Role::Operator)) {
        return Ok(());
    }
    let now = call.control()?.rule_mode(call.namespace(), call.id()).await.ok().map(|record| record.draft.mode);
    match [to, now].contains(&Some(Enforcement::Off)) {
        true => {
            let detail = "Switching a rule to off, and back from it, takes a token of the role operator.";
            Err(AdminProblem::new(403, "role_too_weak", detail))
        }
        false => Ok(()),
    }
}

fn edit(call: &AdminCall<'_>, to: Option<RuleModeDraft>, expect: Precondition) -> Edit {
    Edit::RuleMode { namespace: call.namespace().to_owned(), rule_id: call.id().to_owned(), to, expect }
}

/// Mode overrides by namespace and rule.
pub(super) struct RuleModes(HashMap<(String, String), RuleModeRecord>);

impl RuleModes {
    /// Reads those of the namespaces of a call.
    pub(super) async fn read(call: &AdminCall<'_>) -> Result<RuleModes, AdminProblem> {
        let Some(control) = &call.state.control else { return Ok(RuleModes(HashMap::new())) };
        let records = control.rule_modes(call.namespaces().as_deref()).await?;
        let by_rule = |record: RuleModeRecord| ((record.namespace.clone(), record.rule_id.clone()), record);
        Ok(RuleModes(records.into_iter().map(by_rule).collect()))
    }

    /// Adds the mode override to the JSON of a rule.
    pub(super) fn show(&self, mut rule: Value) -> Value {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let switch = self.0.get(&(text("namespace"), text("rule_id")));
        if let (Some(RuleModeRecord { draft, updated_at, .. }), Value::Object(members)) = (switch, &mut rule) {
            let switch = json!({ "mode": draft.mode.name(), "reason": draft.reason, "since": updated_at.to_string() });
            members.insert("mode_override".to_owned(), switch);
        }
        rule
    }
}
