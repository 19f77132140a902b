//! The table of all endpoints.

use std::sync::LazyLock;

use super::endpoint::AdminEndpoint;
use super::operator_pages::OperatorPage;
use super::{
    api_keys, audit, clients, explain, generations, grants, import_export, mode, namespaces, nodes, overrides,
    penalties, plans, rules, server, tokens, traffic, usage, violations, webhooks,
};

/// Every endpoint, in the order of the description.
pub fn endpoints() -> &'static [AdminEndpoint] {
    static ALL: LazyLock<Vec<AdminEndpoint>> = LazyLock::new(|| {
        [
            rules::ENDPOINTS,
            import_export::ENDPOINTS,
            rules::MODE_ENDPOINTS,
            explain::ENDPOINTS,
            namespaces::ENDPOINTS,
            overrides::ENDPOINTS,
            grants::ENDPOINTS,
            clients::ENDPOINTS,
            api_keys::ENDPOINTS,
            plans::ENDPOINTS,
            violations::ENDPOINTS,
            penalties::ENDPOINTS,
            usage::ENDPOINTS,
            traffic::ENDPOINTS,
            generations::ENDPOINTS,
            audit::ENDPOINTS,
            tokens::ENDPOINTS,
            webhooks::ENDPOINTS,
            mode::ENDPOINTS,
            nodes::ENDPOINTS,
            server::ENDPOINTS,
        ]
        .concat()
    });
    &ALL
}

/// Every path, for metrics; parameters in braces.
pub fn paths() -> impl Iterator<Item = &'static str> {
    OperatorPage::PATHS.iter().copied().chain(endpoints().iter().map(|endpoint| endpoint.path))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::access::{AdminAccess, NamespaceScope};
    use super::super::endpoint::{EndpointHeader, HttpMethod, RequestBody};
    use super::*;

    #[test]
    fn rows_make_sense() {
        let (mut ways, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for endpoint in endpoints() {
            let AdminEndpoint { method, path, id, access, scope, body, headers, responses, .. } = endpoint;
            let name = format!("{} {path}", method.name());
            assert!(ways.insert((method.name(), path)), "{name} stands twice");
            assert!(ids.insert(id), "{id} stands twice");
            assert!(!responses.is_empty(), "{name} answers nothing");
            assert!(
                *access != AdminAccess::Open || (*method == HttpMethod::Get && *scope == NamespaceScope::Nothing),
                "{name} is open"
            );
            assert!(*method != HttpMethod::Get || *body == RequestBody::None, "{name} reads, and has a body");
            assert!(!headers.contains(&EndpointHeader::IdempotencyKey) || *method == HttpMethod::Post, "{name}");
            let names: Vec<&str> = endpoint.parameters().map(|parameter| parameter.name).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{name} has a parameter twice");
        }
    }
}
