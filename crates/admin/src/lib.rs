//! The admin REST API: rules, overrides, grants, clients, keys, tokens, audit, violations and the mode; and the pages for operators.
//!
//! The API knows JSON, tokens and the control plane, and nothing of sockets or SQL. There is no web framework: routing is a
//! table from which permissions, the OpenAPI document, the page about it and the metrics' names are made as well.
//!
//! | step of a call | modules |
//! |---|---|
//! | handler of HTTP requests, shared state | `api`, `state` |
//! | `Host` and `Origin` | `browser` |
//! | row of the table | `endpoints` (the table), `endpoint` (a row), `parameter`, `access`, `route` |
//! | token, role, namespace, media type | `admission` |
//! | query and body | `query`, `percent`, `json`, `body_fields`, `short_form` (of rules) |
//! | context of a handler | `call` |
//! | create, read, replace, merge, delete | `resource`, `merge`, `changes`; `rules`, `overrides`, `grants`, `clients`; those of the rules file: `file_entries` |
//! | other handlers | `tokens`, `api_keys`, `audit`, `violations`, `penalties`, `webhooks`, `generations`, `namespaces`, `explain`, `import_export`, `mode`, `server` |
//! | response | `response`, `problem`, `cursor` (sealed), `tree` (YAML and JSON) |
//! | description | `openapi` (with the schemas of `tollgate-api-schema`), `docs` |
//! | caps on event streams | `stream_limiter` |
//! | what the node provides | `node`, `mode_switch` |
//! | `/live`, `/ready`, `/metrics`, `/stats`, `/rlconfig` | `operator_pages` |

mod access;
mod admission;
mod api;
mod api_keys;
mod app;
mod audit;
mod body_fields;
mod browser;
mod call;
mod changes;
mod clients;
mod csv;
mod cursor;
mod docs;
mod endpoint;
mod endpoints;
mod explain;
mod file_entries;
mod fleet_nodes;
mod generations;
mod grant_exchange;
mod grants;
mod import_export;
mod json;
mod merge;
mod mode;
mod mode_switch;
mod namespaces;
mod node;
mod node_health;
mod nodes;
mod openapi;
mod operator_pages;
mod overrides;
mod parameter;
mod penalties;
mod percent;
mod plan_exchange;
mod plans;
mod problem;
mod query;
mod resource;
mod response;
mod route;
mod rules;
mod server;
mod short_form;
mod state;
mod stream_limiter;
mod tokens;
mod traffic;
mod tree;
mod usage;
mod violations;
mod warnings;
mod webhooks;

pub use access::{AdminAccess, NamespaceScope};
pub use api::{AdminApi, PreparedAdmin};
pub use app::AdminApp;
pub use browser::check_origin;
pub use endpoint::{AdminEndpoint, EndpointHeader, HttpMethod, RequestBody, ResponseContent, Tag};
pub use endpoints::{endpoints, paths};
pub use fleet_nodes::{FleetNodeList, FleetNodeStatus, NodeSnapshot};
pub use mode::MODE_WRITE_TIMEOUT;
pub use mode_switch::{ModeScope, ModeState, ModeSwitch};
pub use node::{FileKind, FileRule, NodeHooks, NodeStatus, QuarantinedRow};
pub use node_health::{DatabaseHealth, StoreServer};
pub use openapi::document;
pub use operator_pages::{LoadCounts, OperatorPage, OperatorPages};
pub use parameter::{Parameter, ParameterKind};
pub use problem::AdminProblem;
pub use state::AdminConfig;
pub use tree::{of_json, to_object};
