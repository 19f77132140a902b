//! The list of rules: those of files first, then those of the database.

use serde_json::{Value, json};
use tollgate_control::{Page, RuleFilter};

use super::governed::Governed;
use super::mode::Switches;
use super::{Rule, show_file};
use crate::call::Call;
use crate::node::{FileKind, FileRule};
use crate::problem::AdminProblem;
use crate::thing::Thing;

/// Where a piece of the list ended: so many rules of files were shown, or so far the database.
enum Place {
    Files(usize),
    Database(Option<String>),
}

impl Place {
    fn read(cursor: Option<&str>) -> Place {
        match cursor.map(|cursor| cursor.split_at_checked(1)) {
            None => Place::Files(0),
            Some(Some(("f", count))) => Place::Files(count.parse().unwrap_or(0)),
            Some(Some((_, ""))) => Place::Database(None),
            Some(Some((_, next))) => Place::Database(Some(next.to_owned())),
            Some(None) => Place::Database(None),
        }
    }

    fn write(&self) -> String {
        match self {
            Place::Files(count) => format!("f{count}"),
            Place::Database(next) => format!("d{}", next.as_deref().unwrap_or_default()),
        }
    }
}

/// A piece of the list, in the full form, and where the next begins.
pub(super) async fn list(call: &Call<'_>) -> Result<(Vec<Value>, Option<String>), AdminProblem> {
    if !call.may_see() {
        return Ok((Vec::new(), None));
    }
    let Page { limit, after } = call.page()?;
    let filter = filter(call);
    let governed = call.query().text("endpoint").map(Governed::read).transpose()?;
    // Limits of Envoy's files are about descriptors, and govern no path.
    let by = |governed: &Governed<'_>, rule: &FileRule| rule.kind == FileKind::Rules && governed.by(&rule.document);
    let governs = |rule: &FileRule| governed.as_ref().is_none_or(|governed| by(governed, rule));
    let source = call.query().text("source");
    let mut rules = Vec::new();
    let mut place = Place::read(after.as_deref());
    if let Place::Files(seen) = place {
        let all = (call.admin.node.file_rules)();
        let mut fitting = all
            .iter()
            .filter(|rule| source.is_none_or(|source| source == rule.kind.name()) && fits(rule, &filter))
            .filter(|rule| governs(rule))
            .skip(seen);
        rules.extend(fitting.by_ref().take(limit as usize).map(show_file));
        place = match fitting.next() {
            Some(_) => Place::Files(seen + rules.len()),
            None => Place::Database(None),
        };
    }
    let room = limit.saturating_sub(u32::try_from(rules.len()).unwrap_or(u32::MAX));
    let mut next = Some(place);
    if let Some(Place::Database(after)) = &next {
        let after = after.clone();
        next = match (source, &call.admin.control) {
            (Some("file" | "envoy"), _) | (_, None) => None,
            (_, Some(_)) if room == 0 => Some(Place::Database(None)),
            (_, Some(control)) => {
                let page = Page { limit: room, after };
                let listing = match &governed {
                    Some(governed) => governed.list(control, &filter, page).await?,
                    None => control.rules(&filter, &page).await?,
                };
                rules.extend(listing.entries.iter().map(|record| Rule::shown(record.json())));
                listing.next.map(|next| Place::Database(Some(next)))
            }
        };
    }
    let (mask, switches) = (call.mask(), Switches::read(call).await?);
    let rules = rules.into_iter().map(|rule| mask.value(switches.show(rule))).collect();
    Ok((rules, call.cursor(next.map(|place| place.write()).as_deref())))
}

fn filter(call: &Call<'_>) -> RuleFilter {
    let query = call.query();
    RuleFilter {
        namespaces: call.namespaces(),
        endpoint: query.owned("pattern"),
        tier: query.owned("tier"),
        client_key: query.owned("client_key"),
        name: query.owned("name"),
        enabled: query.flag("enabled"),
    }
}

/// What the database would find, found in a file.
fn fits(rule: &FileRule, filter: &RuleFilter) -> bool {
    let RuleFilter { namespaces, endpoint, tier, client_key, name, enabled } = filter;
    let condition = |attribute: &str| rule.document.get("match").and_then(|conditions| conditions.get(attribute));
    let asks_for = |attribute: &str, wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| match condition(attribute) {
            Some(Value::String(text)) => text == wanted,
            Some(Value::Array(items)) => items.contains(&json!(wanted)),
            _ => wanted == "*" && attribute != "tier",
        })
    };
    namespaces.as_ref().is_none_or(|names| names.contains(&rule.namespace))
        && asks_for("endpoint", endpoint)
        && asks_for("tier", tier)
        && asks_for("client_key", client_key)
        && name.as_ref().is_none_or(|name| *name == rule.rule_id)
        && enabled.is_none_or(|enabled| enabled)
}
