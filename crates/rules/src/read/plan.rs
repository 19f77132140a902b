//! Reads `plans`, and the `plan` of a client.

use super::field::{FieldPath, FieldValue};
use super::matching::Spelling;
use super::rule::{flag, read_rule};
use crate::datetime;
use crate::plan::{LIMITS_MAX, PLAN_NAME_HELP, PLANS_MAX, is_plan_name};
use crate::problem::{Problem, Problems, quote};
use crate::spec::{PlanSchedule, PlanSpec};
use crate::yaml::YamlKind;

/// Fields of a plan, in canonical order.
pub const PLAN_FIELDS: &[&str] = &["description", "extends", "default", "limits"];

/// Fields of a step of a client's plans, in canonical order.
pub(crate) const STEP_FIELDS: &[&str] = &["plan", "from"];

const EXAMPLE: &str = "pro: { extends: free, limits: [{ name: requests, limit: { requests: 100, window: 1m } }] }";

/// Reads the map under `plans`.
pub(super) fn read_plans(value: &FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> Vec<PlanSpec> {
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map", format!("write plans by name, for example `{EXAMPLE}`")));
        return Vec::new();
    };
    if entries.len() > PLANS_MAX {
        let message = format!("{} has {} plans", value.path, entries.len());
        problems.push(value.problem("too-large", message).help(format!("use at most {PLANS_MAX}")));
        return Vec::new();
    }
    let mut plans = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if !is_plan_name(&key.text) {
            let message = format!("{} cannot be the name of a plan", quote(&key.text));
            problems.push(Problem::error("bad-name", key.position(), entry.path, message).help(PLAN_NAME_HELP));
        }
        plans.push(PlanSpec { name: key.text.clone(), at: key.position(), ..read_plan(entry, spelling, problems) });
    }
    plans
}

/// Reads one plan; the caller knows its name.
pub(crate) fn read_plan(value: FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> PlanSpec {
    let fields = value.fields(PLAN_FIELDS, EXAMPLE, problems);
    let mut text = |name| fields.get(name).and_then(|value| value.text(problems)).map(str::to_owned);
    let mut plan = PlanSpec {
        at: value.position(),
        description: text("description"),
        extends: text("extends"),
        ..PlanSpec::default()
    };
    plan.is_default = flag(&fields, "default", problems);
    let Some(limits) = fields.get("limits") else { return plan };
    if limits.node.items().len() > LIMITS_MAX {
        let message = format!("{} has {} rules", limits.path, limits.node.items().len());
        problems.push(limits.problem("too-large", message).help(format!("use at most {LIMITS_MAX} in one plan")));
        return plan;
    }
    for item in limits.items("rules", problems).collect::<Vec<_>>() {
        let before = problems.len();
        let rule = read_rule(item, spelling, problems);
        if rule.name.is_none() && problems.len() == before {
            let help = "name it: a plan that extends this one replaces the rule by its name, and usage is kept by it";
            problems.push(item.problem("missing-field", format!("{} has no `name`", item.path)).help(help));
        }
        plan.limits.push(rule);
    }
    plan
}

/// Reads the `plan` of a client: a name, or steps with the instants from which they hold.
pub(super) fn read_schedule(value: &FieldValue<'_>, problems: &mut Problems) -> Option<PlanSchedule> {
    let before = problems.len();
    let items = value.one_or_more();
    if items.is_empty() {
        let help = "name a plan, or remove the field";
        problems.push(value.problem("blank", format!("{} is an empty list", value.path)).help(help));
    }
    if items.len() > PlanSchedule::STEPS_MAX {
        let message = format!("{} has {} steps", value.path, items.len());
        let help = format!("use at most {}; steps before the one that holds can be removed", PlanSchedule::STEPS_MAX);
        problems.push(value.problem("too-large", message).help(help));
        return None;
    }
    let mut steps: Vec<(u64, String)> = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        let Some((from_ns, plan)) = read_step(item, problems) else { continue };
        if number > 0 && steps.last().is_some_and(|(before_ns, _)| *before_ns >= from_ns) {
            let help = "give every plan after the first one a `from`, in ascending order";
            let message = format!("{} does not start after the plan before it", item.path);
            problems.push(item.problem("bad-time", message).help(help));
        }
        steps.push((from_ns, plan));
    }
    let schedule = PlanSchedule::of(steps.iter().map(|(from_ns, plan)| (*from_ns, plan.as_str())));
    (problems.len() == before).then_some(schedule)
}

/// Reads `pro`, or `{ plan: pro, from: 2026-12-01 }`.
fn read_step(item: &FieldValue<'_>, problems: &mut Problems) -> Option<(u64, String)> {
    if !matches!(item.node.kind, YamlKind::Map(_)) {
        return Some((0, read_name(item, problems)?));
    }
    let fields = item.fields(STEP_FIELDS, "{ plan: pro, from: 2026-12-01 }", problems);
    let plan = fields.required("plan", "write `{ plan: pro, from: 2026-12-01 }`", problems);
    let plan = plan.and_then(|value| read_name(&value, problems));
    let from_ns = match fields.get("from") {
        Some(value) => read_instant(&value, problems)?,
        None => 0,
    };
    Some((from_ns, plan?))
}

fn read_name(value: &FieldValue<'_>, problems: &mut Problems) -> Option<String> {
    let text = value.text(problems)?;
    if !is_plan_name(text) {
        let message = format!("{}: {} cannot be the name of a plan", value.path, quote(text));
        problems.push(value.problem("bad-name", message).help(PLAN_NAME_HELP));
        return None;
    }
    Some(text.to_owned())
}

/// An instant, or a date: its first instant in UTC.
fn read_instant(value: &FieldValue<'_>, problems: &mut Problems) -> Option<u64> {
    let text = value.text(problems)?;
    datetime::parse_or_date(text).map_err(|fault| problems.push(value.fault("bad-time", fault))).ok()
}
