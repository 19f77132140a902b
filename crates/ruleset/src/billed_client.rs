//! Whose bucket a rule charges for a request, as customers are named: for the history of usage.

use tollgate_core::{Request, Time};

use super::attributes::AttrId;
use super::facts::RequestFacts;
use super::matching::part_of;
use super::rule::Rule;
use super::{CompiledNamespace, RuleSet};

/// The client that owns a bucket, in plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledClient {
    /// The client key: `key:abc`, `user:42`, …; `name=value` if the rule does not count by a client; `-` if all clients
    /// share the bucket.
    pub client: String,
    /// The organisation of the request or of the client directory.
    pub organisation: Option<String>,
}

/// Stands for all clients together.
const EVERY_CLIENT: &str = "-";
/// Attributes that name a client, the most specific first.
const CLIENTS: [(AttrId, &str); 5] = [
    (AttrId::API_KEY, "key:"),
    (AttrId::USER_ID, "user:"),
    (AttrId::CLIENT_KEY, ""),
    (AttrId::IP, "ip:"),
    (AttrId::ORG, "org:"),
];

impl RuleSet {
    /// The client whose bucket `rule` charges for a request. `None` for a domain of Envoy files, and for a request that
    /// cannot be read. Slow: called once per bucket, not per request.
    pub fn billed_client(&self, request: &Request<'_>, rule: &Rule, wall: Time) -> Option<BilledClient> {
        let namespace = self.namespaces.get(request.namespace).filter(|namespace| namespace.domain.is_none())?;
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.billed_client(request, rule, wall));
        }
        let mut facts = RequestFacts::new(namespace, wall);
        facts.gather(namespace, request, self.secret).ok()?;
        let organisation = facts.value(AttrId::ORG).map(|org| format!("org:{org}"));
        Some(BilledClient { client: client_of(rule, namespace, &facts), organisation })
    }
}

fn client_of(rule: &Rule, namespace: &CompiledNamespace, facts: &RequestFacts<'_>) -> String {
    let parts: Vec<AttrId> = rule.key.iter().filter_map(|part| part_of(part, facts).map(|(id, _)| id)).collect();
    if let Some((id, kind)) = CLIENTS.iter().find(|(id, _)| parts.contains(id)) {
        return format!("{kind}{}", rule.key_text(*id, facts));
    }
    let described = parts.iter().map(|id| format!("{}={}", namespace.attributes.name(*id), rule.key_text(*id, facts)));
    let described = described.collect::<Vec<_>>().join(",");
    if described.is_empty() { EVERY_CLIENT.to_owned() } else { described }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, Secret};
    use tollgate_rules::read;

    use super::*;
    use crate::CompileOptions;

    const RULES: &str = "
rules:
  - { name: by-key, key_by: api_key, quota: { amount: 9, every: month } }
  - { name: by-user-and-model, key_by: [user_id, model], quota: { amount: 9, every: month } }
  - { name: by-org, key_by: org, quota: { amount: 9, every: month } }
  - { name: by-model, key_by: model, quota: { amount: 9, every: month } }
  - { name: by-client, key_by: client_key, quota: { amount: 9, every: month } }
  - { name: by-address, key_by: ip, quota: { amount: 9, every: month } }
  - { name: in-all, key_by: global, quota: { amount: 9, every: month } }
clients:
  - { client_key: 'key:abc', org: acme }
";

    #[test]
    fn a_bucket_belongs_to_the_client_that_its_rule_counts_by() {
        let options = CompileOptions { secret: Secret::new([7; 16]), seed: 1 };
        let rules = RuleSet::compile(&[read("rules", RULES).unwrap()], &options).unwrap();
        let billed = |name: &str, request: &Request<'_>| {
            let rule = rules.rule_named("default", name).unwrap();
            let BilledClient { client, organisation } = rules.billed_client(request, rule, Time::ZERO).unwrap();
            (client, organisation.unwrap_or_default())
        };
        let is = |client: &str, org: &str| (client.to_owned(), org.to_owned());
        let key = Request::new().with(Attribute::ApiKey, "abc");
        assert_eq!(billed("by-key", &key), is("key:abc", "org:acme"), "the directory knows the organisation");
        assert_eq!(billed("by-key", &Request::new().with(Attribute::ClientKey, "key:abc")), is("key:abc", "org:acme"));
        let custom = [("model", "large")];
        let user = Request::new().with(Attribute::UserId, "42").with(Attribute::Org, "o").with_custom(&custom);
        assert_eq!(billed("by-user-and-model", &user), is("user:42", "org:o"));
        assert_eq!(billed("by-org", &user), is("org:o", "org:o"));
        assert_eq!(billed("by-model", &user), is("model=large", "org:o"));
        assert_eq!(billed("in-all", &user), is("-", "org:o"));
        assert_eq!(billed("by-client", &Request::new().with(Attribute::ClientKey, "raw")), is("raw", ""));
        assert_eq!(billed("by-address", &Request::new().with(Attribute::Ip, "192.0.2.1")), is("ip:192.0.2.1", ""));
        let unreadable = Request::new().with(Attribute::Ip, "nonsense");
        let rule = rules.rule_named("default", "by-address").unwrap();
        assert_eq!(rules.billed_client(&unreadable, rule, Time::ZERO), None);
    }
}
