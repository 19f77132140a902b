//! `priority` of a route: one class, or one by what is known of the request.

use http::{HeaderMap, HeaderName};
use tollgate_core::{Attribute, Request};
use tollgate_overload::spec::read_priority;
use tollgate_overload::{Priorities, Priority};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue, MapFields};
use tollgate_rules::yaml::YamlKind;

use super::header_conditions::{have_all, read_conditions};

/// The class of a request: that of the first case whose conditions hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrioritySpec {
    /// The cases, in their order.
    pub cases: Vec<PriorityCase>,
    /// The class of all others.
    pub otherwise: PriorityClass,
}

/// A class and its name, which rules see as the attribute `priority`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityClass {
    /// The rank.
    pub rank: Priority,
    /// The name.
    pub name: String,
}

/// A class for requests with these properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityCase {
    /// The class.
    pub class: PriorityClass,
    /// What the identity proves: attribute and values, one of which it has; `*` for any.
    pub attributes: Vec<(String, Vec<String>)>,
    /// Header fields and their values; `*` for any.
    pub headers: Vec<(HeaderName, String)>,
}

const FIELDS: &[&str] = &["class", "match", "headers"];
const EXAMPLE: &str = "{ class: critical, match: { tier: paid } }";

impl PriorityClass {
    fn of(rank: Priority, priorities: &Priorities) -> PriorityClass {
        PriorityClass { rank, name: priorities.name(rank).to_owned() }
    }

    fn read(value: FieldValue<'_>, priorities: &Priorities, problems: &mut Problems) -> PriorityClass {
        PriorityClass::of(read_priority(value, priorities, problems), priorities)
    }
}

impl PrioritySpec {
    /// The class of requests that name none.
    pub(crate) fn unnamed(priorities: &Priorities) -> PrioritySpec {
        PrioritySpec { cases: Vec::new(), otherwise: PriorityClass::of(priorities.unnamed(), priorities) }
    }

    /// Reads a class, or a list of cases whose last one may be a class alone.
    pub(super) fn read(value: FieldValue<'_>, priorities: &Priorities, problems: &mut Problems) -> PrioritySpec {
        let mut spec = PrioritySpec::unnamed(priorities);
        let YamlKind::List(items) = &value.node.kind else {
            spec.otherwise = PriorityClass::read(value, priorities, problems);
            return spec;
        };
        for (index, node) in items.iter().enumerate() {
            let item = FieldValue { node, path: FieldPath::Item(&value.path, index) };
            if index + 1 == items.len() && !matches!(node.kind, YamlKind::Map(_)) {
                spec.otherwise = PriorityClass::read(item, priorities, problems);
                continue;
            }
            let fields = item.fields(FIELDS, EXAMPLE, problems);
            let Some(named) = fields.required("class", EXAMPLE, problems) else { continue };
            spec.cases.push(PriorityCase {
                class: PriorityClass::read(named, priorities, problems),
                attributes: read_match(&fields, problems),
                headers: fields.get("headers").map(|value| read_conditions(&value, problems)).unwrap_or_default(),
            });
        }
        spec
    }

    /// The class of a request whose attributes are proven.
    pub(crate) fn of(&self, request: &Request<'_>, headers: &HeaderMap) -> &PriorityClass {
        let case = self.cases.iter().find(|case| case.holds(request, headers));
        case.map_or(&self.otherwise, |case| &case.class)
    }
}

impl PriorityCase {
    fn holds(&self, request: &Request<'_>, headers: &HeaderMap) -> bool {
        let has = |(name, wanted): &(String, Vec<String>)| {
            let own = match Attribute::from_name(name) {
                Some(attribute) => request.get(attribute),
                None => request.custom.iter().find(|(own, _)| own == name).map(|(_, value)| *value),
            };
            own.is_some_and(|own| wanted.iter().any(|wanted| wanted == "*" || wanted == own))
        };
        self.attributes.iter().all(has) && have_all(headers, &self.headers)
    }
}

fn read_match(fields: &MapFields<'_>, problems: &mut Problems) -> Vec<(String, Vec<String>)> {
    let Some(value) = fields.get("match") else { return Vec::new() };
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map of attributes", "write `{ tier: paid }`"));
        return Vec::new();
    };
    let conditions = entries.iter().map(|(key, node)| {
        let value = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        let values = value.one_or_more().iter().filter_map(|item| item.text(problems)).map(str::to_owned).collect();
        (key.text.clone(), values)
    });
    conditions.collect()
}
