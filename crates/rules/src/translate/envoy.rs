//! Translates the descriptors of a domain into rules, each with the conditions under which its descriptor is found.

use super::{TranslationDraft, fixed_window, is_attribute, key_by, peculiar, reserved};
use crate::check::{is_rule_name, nearest_rule_name};
use crate::envoy::{Allowance, EnvoyDescriptor, EnvoyDomain, RateLimit, Unit, rule_name};
use crate::position::SourcePosition;
use crate::yaml::YamlNode;

/// A descriptor and its siblings.
type TreeStep<'a> = (&'a EnvoyDescriptor, &'a [EnvoyDescriptor]);

/// Largest number of lines in one note.
const LINES_MAX: usize = 20;

/// Positions of the descriptors that were translated.
#[derive(Default)]
struct TranslatedNodes {
    limits: Vec<SourcePosition>,
    exemptions: Vec<SourcePosition>,
}

pub(super) fn translate(domain: &EnvoyDomain, draft: &mut TranslationDraft) {
    let mut became = TranslatedNodes::default();
    level(domain, &domain.descriptors, &mut Vec::new(), &mut became, draft);
    // A rule cannot require that a request has no further attributes.
    wider(&became.limits, "counts every descriptor that has its keys", draft);
    wider(&became.exemptions, "exempts every descriptor that has its keys from all limits", draft);
}

fn wider(places: &[SourcePosition], what: &str, draft: &mut TranslationDraft) {
    let Some((first, others)) = places.split_first() else { return };
    let lines: Vec<String> = others.iter().take(LINES_MAX).map(|place| place.line.to_string()).collect();
    let more = match others.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let like = match lines.len() {
        0 => String::new(),
        1 => format!("like line {}, ", lines.concat()),
        _ => format!("like lines {}{more}, ", lines.join(", ")),
    };
    draft.note(*first, format!("{like}{what}; there, only one that ends with the last of them"));
}

fn level<'a>(
    domain: &EnvoyDomain,
    nodes: &'a [EnvoyDescriptor],
    path: &mut Vec<TreeStep<'a>>,
    became: &mut TranslatedNodes,
    draft: &mut TranslationDraft,
) {
    for node in nodes {
        path.push((node, nodes));
        if let Some(limit) = &node.rate_limit
            && rule(domain, path, node, limit, draft)
        {
            match limit.allowance {
                Allowance::Unlimited => became.exemptions.push(node.at),
                Allowance::Limited { .. } => became.limits.push(node.at),
            }
        }
        level(domain, &node.descriptors, path, became, draft);
        path.pop();
    }
}

fn rule(
    domain: &EnvoyDomain,
    path: &[TreeStep<'_>],
    node: &EnvoyDescriptor,
    limit: &RateLimit,
    draft: &mut TranslationDraft,
) -> bool {
    if let Some(why) = impossible(path) {
        draft.leave_out(&domain.name, node.at, why);
        return false;
    }
    let conditions = path.iter().filter_map(|step| Some((step.0.key.as_str(), condition(step)?)));
    let keys: Vec<&str> = path.iter().map(|(node, _)| *node).filter(counts_by).map(|node| node.key.as_str()).collect();
    let mut fields = vec![("match", YamlNode::map(conditions))];
    match limit.allowance {
        Allowance::Unlimited => fields.push(("unlimited", YamlNode::plain(true))),
        Allowance::Limited { requests_per_unit, unit } => {
            fields.push(("key_by", key_by(&keys)));
            fields.push(("limit", fixed_window(requests_per_unit.into(), window(unit))));
            fields.push(("count_denied", YamlNode::plain(true)));
        }
    }
    if node.shadow_mode || node.quota_mode {
        fields.push(("mode", YamlNode::text("shadow")));
    }
    let path_name = rule_name(path.iter().map(|(node, _)| (node.key.as_str(), node.value.as_deref())));
    let name = limit.name.clone().filter(|name| is_rule_name(name)).unwrap_or_else(|| nearest_rule_name(&path_name));
    let added = draft.add(&domain.name, node.at, &name, fields);
    if added {
        path.iter().filter_map(|(node, _)| peculiar(&node.key)).for_each(|what| draft.note(node.at, what));
        remark(node, limit, draft);
    }
    added
}

/// Whether each value has its own counter.
fn counts_by(node: &&EnvoyDescriptor) -> bool {
    match &node.value {
        None => true,
        Some(value) => value.contains('*') && !node.share_threshold,
    }
}

fn impossible(path: &[TreeStep<'_>]) -> Option<String> {
    for (number, (node, level)) in path.iter().enumerate() {
        let key = &node.key;
        if !is_attribute(key) {
            return Some(format!("the key `{key}` cannot be an attribute: use letters, digits, `_`, `-` and `.`"));
        }
        if let Some(why) = reserved(key) {
            return Some(why);
        }
        if path.iter().take(number).any(|(before, _)| before.key == *key) {
            return Some(format!("the key `{key}` is there twice on the way: an attribute has one value"));
        }
        let values = level.iter().filter(|sibling| sibling.key == *key).filter_map(|sibling| sibling.value.as_ref());
        if let Some(value) = values.into_iter().find(|value| value.starts_with('!')) {
            return Some(format!("the value `{value}` would mean \"not\""));
        }
    }
    None
}

/// The condition on an entry's value under which this descriptor is found.
fn condition((node, level): &TreeStep<'_>) -> Option<YamlNode> {
    let siblings = || level.iter().filter(|sibling| sibling.key == node.key && sibling.at != node.at);
    let before = |sibling: &&EnvoyDescriptor| match &node.value {
        None => true,
        Some(_) => !sibling.is_pattern() || sibling.at < node.at,
    };
    let value = node.value.as_deref();
    if let Some(exact) = value.filter(|value| !value.contains('*')) {
        return Some(YamlNode::text(exact));
    }
    let others = siblings().filter(before).filter_map(|sibling| sibling.value.as_ref());
    let others: Vec<YamlNode> = others.map(|value| YamlNode::text(format!("!{value}"))).collect();
    match (value, others.is_empty()) {
        (None, true) => Some(YamlNode::text("*")),
        (None, false) => Some(YamlNode::list(others)),
        (Some(value), true) => Some(YamlNode::text(value)),
        (Some(value), false) => Some(YamlNode::list([YamlNode::text(value)].into_iter().chain(others))),
    }
}

/// Adds notes for options that the rule does not have.
fn remark(node: &EnvoyDescriptor, limit: &RateLimit, draft: &mut TranslationDraft) {
    let said = [
        (
            !limit.replaces.is_empty(),
            "`replaces` is left out: between the descriptors of one request there is none here",
        ),
        (node.quota_mode, "`quota_mode` became `mode: shadow`: a rule refuses by itself or not at all"),
        (node.detailed_metric, "`detailed_metric` is left out: metrics go by rule, never by values"),
        (node.value_to_metric, "`value_to_metric` is left out: metrics go by rule, never by values"),
        (node.metadata.is_some(), "`metadata` is left out"),
    ];
    for (_, what) in said.into_iter().filter(|(is_so, _)| *is_so) {
        draft.note(node.at, what);
    }
}

const fn window(unit: Unit) -> &'static str {
    match unit {
        Unit::Second => "1s",
        Unit::Minute => "1m",
        Unit::Hour => "1h",
        Unit::Day => "1d",
        Unit::Week => "7d",
        Unit::Month => "30d",
        Unit::Year => "365d",
    }
}
