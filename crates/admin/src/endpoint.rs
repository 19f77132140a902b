//! One endpoint of the admin API: a row of the table.
//!
//! Routes, permissions, the OpenAPI document, the page about it, the paths in metrics and the permission test are all made
//! from these rows.

use std::fmt;
use std::pin::Pin;

use tollgate_control::record::Role;

use super::access::{AdminAccess, NamespaceScope};
use super::call::AdminCall;
use super::parameter::{NAMESPACE, NAMESPACES, Parameter};
use super::problem::AdminProblem;
use super::response::AdminResponse;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct AdminEndpoint {
    /// Its method.
    pub method: HttpMethod,
    /// Its path; a segment in braces is a parameter.
    pub path: &'static str,
    /// Its operation id: the name in generated clients.
    pub id: &'static str,
    /// The section of the description.
    pub tag: Tag,
    /// One line about what it does.
    pub summary: &'static str,
    /// Further description.
    pub detail: &'static str,
    /// The token that it needs.
    pub access: AdminAccess,
    /// The namespaces that it acts on.
    pub scope: NamespaceScope,
    /// Its query parameters, without the namespace.
    pub query: &'static [Parameter],
    /// The header fields that it evaluates.
    pub headers: &'static [EndpointHeader],
    /// The request body.
    pub body: RequestBody,
    /// Successful responses.
    pub responses: &'static [(u16, ResponseContent)],
    /// The handler.
    pub run: EndpointHandler,
}

/// Handles a call of an endpoint.
pub type EndpointHandler = for<'a> fn(&'a AdminCall<'a>) -> EndpointFuture<'a>;

/// The future of a handler.
pub type EndpointFuture<'a> = Pin<Box<dyn Future<Output = Result<AdminResponse, AdminProblem>> + Send + 'a>>;

impl AdminEndpoint {
    /// A row with the defaults: GET, for viewers, in one namespace, without parameters.
    pub const fn get(
        path: &'static str,
        id: &'static str,
        tag: Tag,
        summary: &'static str,
        run: EndpointHandler,
    ) -> AdminEndpoint {
        AdminEndpoint {
            method: HttpMethod::Get,
            path,
            id,
            tag,
            summary,
            detail: "",
            access: AdminAccess::Needs(Role::Viewer),
            scope: NamespaceScope::Namespace,
            query: &[],
            headers: &[],
            body: RequestBody::None,
            responses: &[],
            run,
        }
    }

    /// A row that changes something: for operators.
    pub const fn change(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        tag: Tag,
        summary: &'static str,
        run: EndpointHandler,
    ) -> AdminEndpoint {
        AdminEndpoint {
            method,
            access: AdminAccess::Needs(Role::Operator),
            ..AdminEndpoint::get(path, id, tag, summary, run)
        }
    }

    /// All query parameters, the namespace included.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let namespace = match self.scope {
            NamespaceScope::Namespace => Some(&NAMESPACE),
            NamespaceScope::Namespaces => Some(&NAMESPACES),
            NamespaceScope::Nothing | NamespaceScope::Everything => None,
        };
        namespace.into_iter().chain(self.query)
    }

    /// The names of the path parameters, in order.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// True if it changes something.
    pub const fn writes(&self) -> bool {
        !matches!(self.method, HttpMethod::Get)
    }
}

impl fmt::Debug for AdminEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.name(), self.path)
    }
}

/// HTTP methods of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpMethod {
    /// Reads; also for HEAD.
    Get,
    /// Creates.
    Post,
    /// Replaces.
    Put,
    /// Merges.
    Patch,
    /// Deletes.
    Delete,
}

impl HttpMethod {
    /// The method of a request; HEAD is a GET without its body.
    pub fn of(text: &str) -> Option<HttpMethod> {
        Some(match text {
            "GET" | "HEAD" => HttpMethod::Get,
            "POST" => HttpMethod::Post,
            "PUT" => HttpMethod::Put,
            "PATCH" => HttpMethod::Patch,
            "DELETE" => HttpMethod::Delete,
            _ => return None,
        })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
        }
    }
}

/// Sections of the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// Rules.
    Rules,
    /// Overrides.
    Overrides,
    /// Grants.
    Grants,
    /// Clients.
    Clients,
    /// API keys.
    Keys,
    /// Plans.
    Plans,
    /// Violations.
    Violations,
    /// Penalties.
    Penalties,
    /// Usage of quotas.
    Usage,
    /// Traffic.
    Traffic,
    /// Generations.
    Generations,
    /// Audit.
    Audit,
    /// Tokens.
    Tokens,
    /// Webhooks.
    Webhooks,
    /// The mode.
    Mode,
    /// The server itself.
    Server,
    /// The short form.
    Aliases,
}

impl Tag {
    /// Every section in the order of the page, with its description.
    pub const ALL: [(Tag, &'static str); 17] = [
        (Tag::Rules, "Who is limited to how much. Rules of a file are listed too, and cannot be changed here."),
        (Tag::Overrides, "Other numbers of one rule for one client, for a time."),
        (Tag::Grants, "Units that one client gets once, in the period of a quota."),
        (
            Tag::Clients,
            "Client directory: plan, tier, organisation, attributes. A request that names only its key gets them.",
        ),
        (Tag::Keys, "API keys of clients, which gateways look up. A key is told once; only a digest of it is kept."),
        (
            Tag::Plans,
            "Named sets of rules and quotas. Clients and organisations have them: the field `plan` of a client assigns one.",
        ),
        (Tag::Violations, "Who was refused: counted by client, rule and minute."),
        (Tag::Penalties, "Who is refused altogether for a while, because a rule refused it again and again."),
        (Tag::Usage, "What was used of quotas, by client, rule and period: kept for billing."),
        (Tag::Traffic, "What is allowed and refused, by which rule and whom: now, over time, and one by one."),
        (Tag::Generations, "Every change makes a generation: what changed, and the way back."),
        (Tag::Audit, "Who changed what, when. Rows are chained by hashes and never change."),
        (Tag::Tokens, "Who may use this API."),
        (Tag::Webhooks, "URLs that events are sent to: marks of quotas, many denials, a store that is away."),
        (Tag::Mode, "The switch between enforce, shadow and off. It works without store and database."),
        (Tag::Server, "This server, and this description."),
        (Tag::Aliases, "The same rules in their short form."),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Rules => "rules",
            Tag::Overrides => "overrides",
            Tag::Grants => "grants",
            Tag::Clients => "clients",
            Tag::Keys => "keys",
            Tag::Plans => "plans",
            Tag::Violations => "violations",
            Tag::Penalties => "penalties",
            Tag::Usage => "usage",
            Tag::Traffic => "traffic",
            Tag::Generations => "generations",
            Tag::Audit => "audit",
            Tag::Tokens => "tokens",
            Tag::Webhooks => "webhooks",
            Tag::Mode => "mode",
            Tag::Server => "server",
            Tag::Aliases => "aliases",
        }
    }
}

/// Header fields that some endpoints evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointHeader {
    /// `If-Match`, required.
    IfMatch,
    /// `If-Match`, optional.
    IfMatchOptional,
    /// `If-None-Match`: `*` to create; of a read, the version that the caller has.
    IfNoneMatch,
    /// `Idempotency-Key`: a repeated call is done once and gets the same response.
    IdempotencyKey,
    /// `Accept`: JSON or CSV.
    Accept,
}

/// The request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// None.
    None,
    /// JSON of one of these schemas.
    Json(&'static [&'static str]),
    /// A JSON merge patch of one of these schemas.
    Patch(&'static [&'static str]),
    /// A rules file.
    Yaml,
}

impl RequestBody {
    /// Longest body.
    pub const fn max_bytes(self) -> usize {
        match self {
            RequestBody::None => NOTHING_BYTES_MAX,
            RequestBody::Json(_) | RequestBody::Patch(_) => 1 << 20,
            RequestBody::Yaml => 16 << 20,
        }
    }
}

/// Some tools send an empty object where no body is expected.
const NOTHING_BYTES_MAX: usize = 256;

/// The content of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContent {
    /// No body.
    Nothing,
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of this schema, with its version as ETag.
    Versioned(&'static str),
    /// JSON of this schema for a new record, with ETag and Location.
    Created(&'static str),
    /// JSON of this schema, or its entries as CSV.
    JsonOrCsv(&'static str),
    /// Text of another media type.
    Text(&'static str),
}
