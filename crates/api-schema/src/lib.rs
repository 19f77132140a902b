//! JSON Schemas of the request and response bodies of the admin API, for its OpenAPI 3.1 document.

mod api_keys;
mod builders;
mod grants;
mod overrides;
mod responses;
mod rules;
mod traffic;
mod webhooks;

pub use builders::reference;
pub use responses::AUDIT_KINDS;

use serde_json::{Map, Value};

/// Every schema by its name.
pub fn all() -> Map<String, Value> {
    let mut all = Map::new();
    let schemas = [
        rules::schemas(),
        overrides::schemas(),
        grants::schemas(),
        api_keys::schemas(),
        webhooks::schemas(),
        responses::schemas(),
        traffic::schemas(),
    ];
    for (name, schema) in schemas.concat() {
        all.insert(name.to_owned(), schema);
    }
    all
}
