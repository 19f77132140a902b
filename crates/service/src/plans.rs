//! Plans as JSON: what each one contains, and the rules that it has in the end.

use serde_json::{Map, Value, json};
use tollgate_rules::plan::{DEPTH_MAX, rule_name};
use tollgate_rules::yaml::{YamlKey, YamlNode};
use tollgate_rules::{PlanSpec, RuleFile, datetime, document};

/// A plan of a file or of the database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanDocument {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub plan_id: String,
    /// The plan that it extends.
    pub extends: Option<String>,
    /// The plan of clients without one.
    pub is_default: bool,
    /// Free text.
    pub description: String,
    /// The rules that it contains, as written, with their names.
    pub limits: Vec<Map<String, Value>>,
    /// `database`, or `file`.
    pub source: &'static str,
    /// File and line.
    pub location: Option<String>,
}

impl PlanDocument {
    /// The plans of a rules file; `object` converts the tree of a rule to JSON.
    pub fn of_file(
        file: &RuleFile,
        tree: &YamlNode,
        file_name: &str,
        object: impl Fn(&YamlNode) -> Map<String, Value>,
    ) -> Vec<PlanDocument> {
        let document = |(plan, (_, tree)): (&PlanSpec, &(YamlKey, YamlNode))| PlanDocument {
            namespace: file.namespace.clone(),
            plan_id: plan.name.clone(),
            extends: plan.extends.clone(),
            is_default: plan.is_default,
            description: plan.description.clone().unwrap_or_default(),
            limits: document::limits_of(tree).iter().map(|limit| object(&document::explicit(limit, file))).collect(),
            source: "file",
            location: Some(format!("{file_name}:{}", plan.at.line)),
        };
        file.plans.iter().zip(document::plans_of(tree)).map(document).collect()
    }

    /// The plan with the rules that it has among `plans` of its namespace: its own, and inherited ones.
    pub fn json(&self, plans: &[PlanDocument]) -> Value {
        json!({
            "plan_id": self.plan_id,
            "namespace": self.namespace,
            "extends": self.extends,
            "default": self.is_default,
            "description": self.description,
            "limits": self.limits,
            "rules": self.rules(plans),
            "source": self.source,
            "location": self.location,
        })
    }

    /// The rules that it has: its own first, then inherited ones that it does not replace. `plan` is the plan that
    /// contains the rule, `rule_id` its name in the namespace.
    pub fn rules(&self, plans: &[PlanDocument]) -> Vec<Value> {
        let mut rules: Vec<(String, Value)> = Vec::new();
        let mut next = Some(self);
        for _ in 0..=DEPTH_MAX {
            let Some(plan) = next else { break };
            for limit in &plan.limits {
                let name = limit.get("name").and_then(Value::as_str).unwrap_or_default();
                if rules.iter().any(|(known, _)| known == name) {
                    continue;
                }
                let mut rule = limit.clone();
                rule.insert("plan".to_owned(), plan.plan_id.as_str().into());
                rule.insert("rule_id".to_owned(), rule_name(&plan.plan_id, name).into());
                rules.push((name.to_owned(), rule.into()));
            }
            let extended = |other: &&PlanDocument| {
                other.namespace == plan.namespace && plan.extends.as_ref() == Some(&other.plan_id)
            };
            next = plans.iter().find(extended);
        }
        rules.into_iter().map(|(_, rule)| rule).collect()
    }
}

/// The plans of a client, as its field `plan`, with another one from an instant on: what starts before it stays. Without an
/// instant the plan replaces all others.
pub fn with_step(before: Option<&Value>, plan: &str, from_ns: Option<u64>) -> Value {
    let Some(from_ns) = from_ns else { return plan.into() };
    let steps = match before {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(steps)) => steps.clone(),
        Some(step) => vec![step.clone()],
    };
    let starts_before = |step: &Value| {
        let start = step.get("from").and_then(Value::as_str).and_then(|text| datetime::parse_or_date(text).ok());
        start.unwrap_or(0) < from_ns
    };
    let kept = steps.into_iter().filter(starts_before);
    kept.chain([json!({ "plan": plan, "from": datetime::display(from_ns) })]).collect()
}

/// The changes from one plan to another, both as JSON: the rules that differ, in the order of the second plan, and those that it lacks.
pub fn differences(from: &Value, to: &Value) -> Vec<Value> {
    let named = |plan: &Value, name: &str| rules(plan).iter().find(|rule| name_of(rule) == name).map(content);
    let change = |name: &str, before: Option<Value>, after: Option<Value>| {
        (before != after).then(|| json!({ "kind": "rule", "id": name, "before": before, "after": after }))
    };
    let in_second = rules(to).iter().map(|rule| change(name_of(rule), named(from, name_of(rule)), Some(content(rule))));
    let lacking = rules(from).iter().filter(|rule| named(to, name_of(rule)).is_none());
    in_second.chain(lacking.map(|rule| change(name_of(rule), Some(content(rule)), None))).flatten().collect()
}

fn name_of(rule: &Value) -> &str {
    rule.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A rule without the plan that contains it.
fn content(rule: &Value) -> Value {
    let mut fields: Map<String, Value> = rule.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| !["plan", "rule_id"].contains(&name.as_str()));
    fields.into()
}

/// The rules that a plan has, as JSON.
pub fn rules(plan: &Value) -> &[Value] {
    plan.get("rules").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(plan_id: &str, extends: Option<&str>, limits: Value) -> PlanDocument {
        let limits = limits.as_array().unwrap().iter().map(|limit| limit.as_object().unwrap().clone()).collect();
        PlanDocument { plan_id: plan_id.to_owned(), extends: extends.map(str::to_owned), limits, ..Default::default() }
    }

    #[test]
    fn a_plan_has_its_own_rules_and_those_it_does_not_replace() {
        let plans = [
            plan("free", None, json!([{ "name": "calls", "limit": 1 }, { "name": "uploads" }])),
            plan("pro", Some("free"), json!([{ "name": "calls", "limit": 2 }])),
        ];
        let expected = json!([
            { "name": "calls", "limit": 2, "plan": "pro", "rule_id": "pro.calls" },
            { "name": "uploads", "plan": "free", "rule_id": "free.uploads" },
        ]);
        assert_eq!(Value::from(plans[1].rules(&plans)), expected);
        let circular = [plan("a", Some("b"), json!([])), plan("b", Some("a"), json!([]))];
        assert_eq!(circular[0].rules(&circular), [Value::Null; 0], "ends, although the database refuses circles");
    }

    #[test]
    fn only_rules_that_differ_are_listed() {
        let plan = |rules: Value| json!({ "rules": rules });
        let free =
            plan(json!([{ "name": "a", "plan": "free", "limit": 1 }, { "name": "b", "limit": 1 }, { "name": "d" }]));
        let pro =
            plan(json!([{ "name": "a", "plan": "pro", "limit": 1 }, { "name": "b", "limit": 2 }, { "name": "c" }]));
        let ids = |changes: Vec<Value>| changes.iter().map(|change| change["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(differences(&free, &pro)), ["b", "c", "d"]);
        assert_eq!(ids(differences(&free, &free)), [Value::Null; 0]);
    }

    #[test]
    fn a_step_replaces_what_starts_later() {
        let december = 1_796_083_200_000_000_000;
        let steps = json!(["free", { "plan": "pro", "from": "2026-12-01" }, { "plan": "team", "from": "2027-01-01" }]);
        let new = json!({ "plan": "team", "from": "2026-12-01T00:00:00Z" });
        assert_eq!(with_step(Some(&steps), "team", Some(december)), json!(["free", new]));
        assert_eq!(with_step(Some(&json!("free")), "team", Some(december)), json!(["free", new]));
        assert_eq!(with_step(None, "team", Some(december)), json!([new]));
        assert_eq!(with_step(Some(&steps), "team", None), json!("team"));
    }
}
