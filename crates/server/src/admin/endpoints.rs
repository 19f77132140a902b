//! The one table of everything that can be done.

use std::sync::LazyLock;

use super::endpoint::Endpoint;
use super::{audit, clients, explain, generations, mode, namespaces, overrides, rules, server, tokens, violations};
use crate::api::Route;

/// Every endpoint, in the order of the description.
pub fn endpoints() -> &'static [Endpoint] {
    static ALL: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
        [
            rules::ENDPOINTS,
            rules::MODE_ENDPOINTS,
            explain::ENDPOINTS,
            namespaces::ENDPOINTS,
            overrides::ENDPOINTS,
            clients::ENDPOINTS,
            violations::ENDPOINTS,
            generations::ENDPOINTS,
            audit::ENDPOINTS,
            tokens::ENDPOINTS,
            mode::ENDPOINTS,
            server::ENDPOINTS,
        ]
        .concat()
    });
    &ALL
}

/// Every path for metrics: those of the data API, and those of the admin API with their braces.
pub fn route_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let mut names = Route::NAMES.to_vec();
        for endpoint in endpoints() {
            if !names.contains(&endpoint.path) {
                names.push(endpoint.path);
            }
        }
        names
    });
    &NAMES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::endpoint::{Access, Body, Header, Method, Reach};
    use super::*;

    #[test]
    fn rows_make_sense() {
        let (mut ways, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for endpoint in endpoints() {
            let Endpoint { method, path, id, access, reach, body, headers, answers, .. } = endpoint;
            let name = format!("{} {path}", method.name());
            assert!(ways.insert((method.name(), path)), "{name} stands twice");
            assert!(ids.insert(id), "{id} stands twice");
            assert!(!answers.is_empty(), "{name} answers nothing");
            assert!(*access != Access::Open || (*method == Method::Get && *reach == Reach::Nothing), "{name} is open");
            assert!(*method != Method::Get || *body == Body::None, "{name} reads, and has a body");
            assert!(!headers.contains(&Header::IdempotencyKey) || *method == Method::Post, "{name}");
            let names: Vec<&str> = endpoint.parameters().map(|parameter| parameter.name).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{name} has a parameter twice");
        }
        assert!(route_names().len() > Route::NAMES.len());
    }
}
