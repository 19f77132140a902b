//! Lists rules: those of files first, then those of plans of the database, then the other ones of the database.

use serde_json::{Map, Value, json};
use tollgate_control::record::PlanRuleRecord;
use tollgate_control::{Page, RuleFilter};

use super::file_rules::show_file;
use super::mode::RuleModes;
use super::path_filter::PathFilter;
use super::plan_rules;
use super::resource::RuleResource;
use crate::call::AdminCall;
use crate::node::{FileKind, FileRule};
use crate::problem::AdminProblem;
use crate::resource::Resource;

/// Where a page ended: after so many rules of files, or of files and plans, or at a cursor of the database.
enum ListPosition {
    Files(usize),
    Plans(usize),
    Database(Option<String>),
}

impl ListPosition {
    fn read(cursor: Option<&str>) -> ListPosition {
        match cursor.map(|cursor| cursor.split_at_checked(1)) {
            None => ListPosition::Files(0),
            Some(Some(("f", count))) => ListPosition::Files(count.parse().unwrap_or(0)),
            Some(Some(("p", count))) => ListPosition::Plans(count.parse().unwrap_or(0)),
            Some(Some((_, ""))) => ListPosition::Database(None),
            Some(Some((_, next))) => ListPosition::Database(Some(next.to_owned())),
            Some(None) => ListPosition::Database(None),
        }
    }

    fn write(&self) -> String {
        match self {
            ListPosition::Files(count) => format!("f{count}"),
            ListPosition::Plans(count) => format!("p{count}"),
            ListPosition::Database(next) => format!("d{}", next.as_deref().unwrap_or_default()),
        }
    }
}

/// A page of the list in the full form, and the cursor of the next.
pub(super) async fn list(call: &AdminCall<'_>) -> Result<(Vec<Value>, Option<String>), AdminProblem> {
    if !call.may_see() {
        return Ok((Vec::new(), None));
    }
    let Page { limit, after } = call.page()?;
    let filter = filter(call);
    let path_filter = call.query().text("endpoint").map(PathFilter::read).transpose()?;
    // Limits of Envoy's files match descriptors, not paths.
    let by =
        |path_filter: &PathFilter<'_>, rule: &FileRule| rule.kind == FileKind::Rules && path_filter.by(&rule.document);
    let governs = |rule: &FileRule| path_filter.as_ref().is_none_or(|path_filter| by(path_filter, rule));
    let source = call.query().text("source");
    let mut rules = Vec::new();
    let mut position = ListPosition::read(after.as_deref());
    if let ListPosition::Files(seen) = position {
        let all = (call.state.node.file_rules)();
        let mut fitting = all
            .iter()
            .filter(|rule| {
                source.is_none_or(|source| source == rule.kind.name()) && fits(&ListedRule::of(rule), &filter)
            })
            .filter(|rule| governs(rule))
            .skip(seen);
        rules.extend(fitting.by_ref().take(limit as usize).map(show_file));
        position = match fitting.next() {
            Some(_) => ListPosition::Files(seen + rules.len()),
            None => ListPosition::Plans(0),
        };
    }
    let room = |rules: &Vec<Value>| limit.saturating_sub(u32::try_from(rules.len()).unwrap_or(u32::MAX));
    if let (ListPosition::Plans(seen), None | Some("database")) = (&position, source) {
        let governs = |rule: &PlanRuleRecord| path_filter.as_ref().is_none_or(|filter| filter.by(&rule.document));
        let all = plan_rules::all(call, filter.namespaces.as_deref()).await?;
        let fitting = all.iter().filter(|rule| fits(&ListedRule::of_plan(rule), &filter) && governs(rule));
        let mut fitting = fitting.skip(*seen);
        let before = rules.len();
        rules.extend(fitting.by_ref().take(room(&rules) as usize).map(plan_rules::shown));
        position = match fitting.next() {
            Some(_) => ListPosition::Plans(seen + rules.len() - before),
            None => ListPosition::Database(None),
        };
    }
    let room = room(&rules);
    let mut next = Some(position).filter(|position| may_follow(position, source));
    if let Some(ListPosition::Database(after)) = &next {
        let after = after.clone();
        next = match (source, &call.state.control) {
            (_, None) => None,
            (_, Some(_)) if room == 0 => Some(ListPosition::Database(None)),
            (_, Some(control)) => {
                let page = Page { limit: room, after };
                let listing = match &path_filter {
                    Some(path_filter) => path_filter.list(control, &filter, page).await?,
                    None => control.rules(&filter, &page).await?,
                };
                rules.extend(listing.entries.iter().map(|record| RuleResource::shown(record.json())));
                listing.next.map(|next| ListPosition::Database(Some(next)))
            }
        };
    }
    let (mask, switches) = (call.mask(), RuleModes::read(call).await?);
    let rules = rules.into_iter().map(|rule| mask.value(switches.show(rule))).collect();
    Ok((rules, call.cursor(next.map(|position| position.write()).as_deref())))
}

/// False after the last rules of files if only those are wanted.
fn may_follow(position: &ListPosition, source: Option<&str>) -> bool {
    matches!(position, ListPosition::Files(_)) || !matches!(source, Some("file" | "envoy"))
}

fn filter(call: &AdminCall<'_>) -> RuleFilter {
    let query = call.query();
    RuleFilter {
        namespaces: call.namespaces(),
        endpoint: query.owned("pattern"),
        tier: query.owned("tier"),
        client_key: query.owned("client_key"),
        name: query.owned("name"),
        enabled: query.flag("enabled"),
        search: query.owned("search"),
    }
}

/// What the filter of the database looks at in a rule that has no row of its own.
struct ListedRule<'a> {
    namespace: &'a String,
    names: [&'a str; 2],
    document: &'a Map<String, Value>,
}

impl<'a> ListedRule<'a> {
    fn of(rule: &'a FileRule) -> ListedRule<'a> {
        ListedRule { namespace: &rule.namespace, names: [&rule.rule_id, ""], document: &rule.document }
    }

    fn of_plan(rule: &'a PlanRuleRecord) -> ListedRule<'a> {
        ListedRule { namespace: &rule.namespace, names: [&rule.rule_id, &rule.name], document: &rule.document }
    }
}

/// Applies the filter of the database.
fn fits(rule: &ListedRule<'_>, filter: &RuleFilter) -> bool {
    let RuleFilter { namespaces, endpoint, tier, client_key, name, enabled, search } = filter;
    let condition = |attribute: &str| rule.document.get("match").and_then(|conditions| conditions.get(attribute));
    let asks_for = |attribute: &str, wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| match condition(attribute) {
            Some(Value::String(text)) => text == wanted,
            Some(Value::Array(items)) => items.contains(&json!(wanted)),
            _ => wanted == "*" && attribute != "tier",
        })
    };
    namespaces.as_ref().is_none_or(|names| names.contains(rule.namespace))
        && asks_for("endpoint", endpoint)
        && asks_for("tier", tier)
        && asks_for("client_key", client_key)
        && name.as_ref().is_none_or(|name| rule.names.contains(&name.as_str()))
        && enabled.is_none_or(|enabled| enabled)
        && search.as_deref().is_none_or(|search| contains(rule, search))
}

/// True if the text is in the id, the name or the endpoint, in any case.
fn contains(rule: &ListedRule<'_>, search: &str) -> bool {
    let search = search.to_lowercase();
    let endpoint = rule.document.get("match").and_then(|conditions| conditions.get("endpoint"));
    let is_in = |text: &str| text.to_lowercase().contains(&search);
    let endpoints = match endpoint {
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    rule.names.iter().any(|name| is_in(name)) || endpoints.iter().filter_map(Value::as_str).any(is_in)
}
