//! Rules of the database, as a resource.

use serde_json::{Map, Value, json};
use tollgate_control::record::{RuleDraft, RuleRecord};
use tollgate_control::{Control, Edit, Error, Precondition, RecordKind};

use super::file_rules::in_file;
use crate::body_fields::BodyFields;
use crate::call::AdminCall;
use crate::problem::{AdminProblem, MapProblem};
use crate::resource::Resource;
use crate::{short_form, warnings};

/// Rules, as a resource.
pub(crate) struct RuleResource;

/// Fields of responses that bodies cannot change: a response may be sent back unmodified.
const READ_ONLY: &[&str] = &["source", "location", "mode_override", "warnings", "created_at", "updated_at", "version"];
/// Ids that are other paths, or that clients remove from paths.
const RESERVED: &[&str] = &["refresh", "export", "import", ".", ".."];

impl Resource for RuleResource {
    const KIND: RecordKind = RecordKind::Rule;
    const PATH: &'static str = "/v1/rules";
    const PREFIX: &'static str = "rule";
    type Record = RuleRecord;
    type Draft = RuleDraft;

    fn read(
        call: &AdminCall<'_>,
        id: Option<&str>,
        body: Map<String, Value>,
    ) -> Result<(Option<String>, RuleDraft), AdminProblem> {
        let mut fields = BodyFields::open(body);
        READ_ONLY.iter().for_each(|name| drop(fields.take(name)));
        fields.same("namespace", call.namespace());
        let named = match id {
            Some(id) => {
                fields.same("rule_id", id);
                None
            }
            None => fields.text("rule_id"),
        };
        if let Some(id) = named.as_deref().or(id).filter(|id| RESERVED.contains(id)) {
            let message = format!("rule_id is `{id}`, which is the path of something else");
            fields.refuse("rule_id", "reserved", message, "choose another id");
        }
        let name = fields.text("name").filter(|name| named.as_deref().or(id) != Some(name)).unwrap_or_default();
        let enabled = fields.flag("enabled").unwrap_or(true);
        let document = fields.rest()?;
        Ok((named, RuleDraft { name, document: tidy(document), enabled }))
    }

    fn guard(call: &AdminCall<'_>, id: &str) -> Result<(), AdminProblem> {
        match in_file(call, id) {
            None => Ok(()),
            Some(rule) => Err(AdminProblem::new(
                409,
                "rule_in_file",
                format!(
                    "The rule `{id}` comes from {}: change it there; the file is read again when it changes. \
                     What can be done here: overrides of it, and its switch (PUT /v1/rules/{{rule_id}}/mode).",
                    rule.location
                ),
            )),
        }
    }

    async fn find(control: &Control, namespace: &str, id: &str) -> tollgate_control::Result<RuleRecord> {
        match (control.rule(namespace, id).await, id.split_once('.')) {
            (Err(Error::NotFound(what)), Some((plan, name))) => Err(match control.plan(namespace, plan).await {
                Ok(record) if record.contains(name) => record.holds_rule(name),
                _ => Error::NotFound(what),
            }),
            (found, _) => found,
        }
    }

    /// Records have `limit.requests`, of which `limit.amount` is another spelling.
    fn respelled(mut patch: Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::Object(limit)) = patch.get_mut("limit")
            && !limit.contains_key("requests")
            && let Some(amount) = limit.remove("amount")
        {
            limit.insert("requests".to_owned(), amount);
        }
        patch
    }

    fn json(record: &RuleRecord) -> Value {
        record.json()
    }

    fn shown(mut json: Value) -> Value {
        warnings::of_rule(&mut json);
        if let Value::Object(members) = &mut json {
            members.insert("source".to_owned(), "database".into());
        }
        json
    }

    fn version(record: &RuleRecord) -> i64 {
        record.version
    }

    fn writable(record: &RuleRecord) -> Map<String, Value> {
        let RuleDraft { name, document, enabled } = &record.draft;
        let mut body = document.clone();
        body.insert("name".to_owned(), name.as_str().into());
        body.insert("enabled".to_owned(), (*enabled).into());
        body
    }

    fn complete(body: &mut Map<String, Value>) {
        short_form::complete(body);
    }

    fn to_full_form(body: Map<String, Value>) -> Result<(Map<String, Value>, MapProblem), AdminProblem> {
        short_form::to_full_form(body)
    }

    fn edit(namespace: &str, id: &str, to: Option<RuleDraft>, expect: Precondition) -> Edit {
        Edit::Rule { namespace: namespace.to_owned(), rule_id: id.to_owned(), to, expect }
    }
}

/// Removes conditions that merging has emptied.
fn tidy(mut document: Map<String, Value>) -> Map<String, Value> {
    document.retain(|name, value| !(name == "match" && *value == json!({})));
    document
}
