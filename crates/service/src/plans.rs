//! Plans as JSON: what each one contains, and the rules that it has in the end.

use serde_json::{Map, Value, json};
use tollgate_rules::plan::{DEPTH_MAX, rule_name};

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
}
