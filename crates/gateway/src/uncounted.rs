//! What routes charge and no rule counts. It is no mistake, because rules come and go while the gateway runs; but nearly
//! always a name is misspelt, and what should be limited is not.

use std::collections::BTreeMap;
use std::fmt;

use tollgate_core::Request;

use crate::spec::RouteSpec;

/// What can be asked about the rules in force.
pub trait CountedMeters {
    /// True if there is a rule in the namespace.
    fn has_rules(&self, namespace: &str) -> bool;
    /// True if a rule of the namespace counts the meter.
    fn counts(&self, namespace: &str, meter: &str) -> bool;
}

impl CountedMeters for tollgate_service::Service {
    fn has_rules(&self, namespace: &str) -> bool {
        tollgate_service::Service::has_rules(self, namespace)
    }

    fn counts(&self, namespace: &str, meter: &str) -> bool {
        tollgate_service::Service::counts(self, namespace, meter)
    }
}

/// What routes charge and no rule counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncountedCharge {
    /// The namespace of the routes.
    pub namespace: String,
    /// The meter; `None` if the namespace has no rule at all.
    pub meter: Option<String>,
    /// The names of the routes.
    pub routes: Vec<String>,
}

impl UncountedCharge {
    /// All of them, by namespace and meter.
    pub fn find<'a>(
        routes: impl IntoIterator<Item = &'a RouteSpec>,
        rules: &(impl CountedMeters + ?Sized),
    ) -> Vec<UncountedCharge> {
        let mut found: BTreeMap<(&str, Option<&str>), Vec<String>> = BTreeMap::new();
        for route in routes {
            let namespace = route.namespace.as_deref().unwrap_or(Request::DEFAULT_NAMESPACE);
            if !rules.has_rules(namespace) {
                found.entry((namespace, None)).or_default().push(route.name.clone());
                continue;
            }
            let meters = route.cost.iter().flat_map(|cost| cost.meter_names()).map(|meter| &**meter);
            for meter in meters.filter(|meter| !rules.counts(namespace, meter)) {
                let names = found.entry((namespace, Some(meter))).or_default();
                if names.last() != Some(&route.name) {
                    names.push(route.name.clone());
                }
            }
        }
        let charges = found.into_iter().map(|((namespace, meter), routes)| UncountedCharge {
            namespace: namespace.to_owned(),
            meter: meter.map(str::to_owned),
            routes,
        });
        charges.collect()
    }
}

impl fmt::Display for UncountedCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UncountedCharge { namespace, meter, routes } = self;
        let shown = routes.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if routes.len() > 3 { format!(" and {} more", routes.len() - 3) } else { String::new() };
        match meter {
            Some(meter) => {
                write!(
                    f,
                    "no rule of the namespace {namespace} counts the meter {meter}, which is charged by {shown}{more}"
                )
            }
            None => write!(f, "no rule is in the namespace {namespace}, which is that of {shown}{more}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::read;

    struct OutputOnly;

    impl CountedMeters for OutputOnly {
        fn has_rules(&self, namespace: &str) -> bool {
            namespace == "default"
        }

        fn counts(&self, _: &str, meter: &str) -> bool {
            matches!(meter, "requests" | "output_tokens")
        }
    }

    #[test]
    fn names_meters_and_namespaces_that_no_rule_counts() {
        let spec = read(
            "routes.yaml",
            "upstreams: { a: { servers: http://127.0.0.1:1 } }
routes:
  - { name: chat, path: /v1/*, upstream: a, cost: llm }
  - { name: batch, path: /batch, upstream: a, cost: { input_tokens: 5, requests: 2 } }
  - { name: other, path: /other, upstream: a, namespace: partners, cost: { points: 1 } }
  - { name: rest, upstream: a }
",
        )
        .unwrap();
        let found = UncountedCharge::find(&spec.routes, &OutputOnly);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "no rule of the namespace default counts the meter input_tokens, which is charged by chat, batch",
                "no rule is in the namespace partners, which is that of other",
            ]
        );
    }
}
