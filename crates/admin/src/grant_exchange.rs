//! Grants in exports and imports.

use std::collections::HashMap;

use tollgate_control::record::{GrantDraft, GrantRecord};
use tollgate_control::{Edit, Instant, Precondition};
use tollgate_rules::GrantSpec;
use tollgate_rules::yaml::YamlNode;

use super::resource;

/// What identifies a grant of a file, which has no id. Equal ones are told apart by their order, because grants add up.
type GrantKey = (String, String, Option<Instant>, i64);

fn key(draft: &GrantDraft) -> GrantKey {
    (draft.client_key.clone(), draft.rule_id.clone(), draft.valid_from, draft.amount)
}

/// The edits that make the grants of a file, or find them among those that are stored.
pub(super) fn edits(namespace: &str, stored: &[GrantRecord], specs: &[GrantSpec]) -> Vec<Edit> {
    let mut known: HashMap<GrantKey, Vec<&str>> = HashMap::new();
    for record in stored.iter().rev() {
        known.entry(key(&record.draft)).or_default().push(&record.grant_id);
    }
    let mut fresh: HashMap<String, usize> = HashMap::new();
    let edit = |spec: &GrantSpec| {
        let draft = draft(spec);
        let known = known.get_mut(&key(&draft)).and_then(Vec::pop).map(str::to_owned);
        let grant_id = known.unwrap_or_else(|| {
            let id = stable_id(&draft);
            let twins = fresh.entry(id.clone()).or_default();
            *twins += 1;
            if *twins > 1 { format!("{id}-{twins}") } else { id }
        });
        Edit::Grant { namespace: namespace.to_owned(), grant_id, to: Some(draft), expect: Precondition::Anything }
    };
    specs.iter().map(edit).collect()
}

/// A grant as an entry of a rules file.
pub(super) fn tree(record: &GrantRecord) -> YamlNode {
    let GrantDraft { client_key, rule_id, amount, valid_from, valid_until, reason } = &record.draft;
    let mut entries = vec![("client_key", YamlNode::text(client_key)), ("rule", YamlNode::text(rule_id))];
    entries.push(("amount", YamlNode::plain(amount)));
    entries.extend(valid_from.map(|from| ("valid_from", YamlNode::text(from.to_string()))));
    entries.extend(valid_until.map(|until| ("valid_until", YamlNode::text(until.to_string()))));
    entries.extend((!reason.is_empty()).then(|| ("reason", YamlNode::text(reason))));
    YamlNode::map(entries)
}

fn draft(spec: &GrantSpec) -> GrantDraft {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let instant = |nanos: u64| Instant(number(nanos / 1000));
    GrantDraft {
        client_key: spec.client_key.clone(),
        rule_id: spec.rule.clone(),
        amount: number(spec.amount),
        valid_from: Some(instant(spec.valid_from_ns)),
        valid_until: spec.valid_until_ns.map(instant),
        reason: spec.reason.clone().unwrap_or_default(),
    }
}

/// A stable id, so that importing a file twice changes nothing the second time.
fn stable_id(draft: &GrantDraft) -> String {
    let from = draft.valid_from.map(|from| from.to_string()).unwrap_or_default();
    format!("grt-{}", resource::hash(&[&draft.client_key, &draft.rule_id, &from, &draft.amount.to_string()]))
}
