//! One thing that can be done with the admin API, and everything there is to know about it.
//!
//! From these rows come the routes, the permissions, the OpenAPI document, the page about it, the names in metrics and
//! the table test of who may do what. What a row does not say does not exist.

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
    /// By which method.
    pub method: HttpMethod,
    /// At which path; a segment in braces stands for any text.
    pub path: &'static str,
    /// Its name in generated clients.
    pub id: &'static str,
    /// Under which heading it is described.
    pub tag: Tag,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What else there is to know.
    pub detail: &'static str,
    /// Who may.
    pub access: AdminAccess,
    /// Of which namespaces.
    pub scope: NamespaceScope,
    /// What may stand behind the question mark.
    pub query: &'static [Parameter],
    /// Header fields that matter.
    pub headers: &'static [EndpointHeader],
    /// What is sent.
    pub body: RequestBody,
    /// What is answered when all went well.
    pub responses: &'static [(u16, ResponseContent)],
    /// Does it.
    pub run: EndpointHandler,
}

/// Does what an endpoint is for.
pub type EndpointHandler = for<'a> fn(&'a AdminCall<'a>) -> EndpointFuture<'a>;

/// Doing it.
pub type EndpointFuture<'a> = Pin<Box<dyn Future<Output = Result<AdminResponse, AdminProblem>> + Send + 'a>>;

impl AdminEndpoint {
    /// What rows have in common: read by a viewer, in one namespace, without parameters.
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

    /// The same for what changes something: an operator's.
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

    /// Everything that may stand behind the question mark, the namespace included.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let namespace = match self.scope {
            NamespaceScope::Namespace => Some(&NAMESPACE),
            NamespaceScope::Namespaces => Some(&NAMESPACES),
            NamespaceScope::Nothing | NamespaceScope::Everything => None,
        };
        namespace.into_iter().chain(self.query)
    }

    /// The names in braces, in their order.
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

/// How something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpMethod {
    /// Reads; HEAD does too.
    Get,
    /// Makes.
    Post,
    /// Replaces.
    Put,
    /// Merges.
    Patch,
    /// Removes.
    Delete,
}

impl HttpMethod {
    /// The method of a request; HEAD is a GET whose body nobody reads.
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

/// Headings of the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// Rules.
    Rules,
    /// Overrides.
    Overrides,
    /// Clients.
    Clients,
    /// Violations.
    Violations,
    /// Generations.
    Generations,
    /// Audit.
    Audit,
    /// Tokens.
    Tokens,
    /// The mode.
    Mode,
    /// The server itself.
    Server,
    /// The short form.
    Aliases,
}

impl Tag {
    /// Every heading, in the order of the page, and what it is about.
    pub const ALL: [(Tag, &'static str); 10] = [
        (Tag::Rules, "Who is limited to how much. Rules of a file are listed too, and cannot be changed here."),
        (Tag::Overrides, "Other numbers of one rule for one client, for a time."),
        (
            Tag::Clients,
            "What is known of clients: tier, organisation, attributes. A request that names only its key gets them.",
        ),
        (Tag::Violations, "Who was refused: counted by client, rule and minute."),
        (Tag::Generations, "Every change makes a generation: what changed, and the way back."),
        (Tag::Audit, "Who changed what, when. Rows are chained by hashes and never change."),
        (Tag::Tokens, "Who may use this API."),
        (Tag::Mode, "The switch between enforce, shadow and off. It works without store and database."),
        (Tag::Server, "This server, and this description."),
        (Tag::Aliases, "The same rules in their short form."),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Rules => "rules",
            Tag::Overrides => "overrides",
            Tag::Clients => "clients",
            Tag::Violations => "violations",
            Tag::Generations => "generations",
            Tag::Audit => "audit",
            Tag::Tokens => "tokens",
            Tag::Mode => "mode",
            Tag::Server => "server",
            Tag::Aliases => "aliases",
        }
    }
}

/// Header fields that matter to some endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointHeader {
    /// Only if it is still this version, and it has to be said which.
    IfMatch,
    /// Only if it is still this version, where somebody says so.
    IfMatchOptional,
    /// Only if it is not there: `*`. Or, of what is read, only if it is another version.
    IfNoneMatch,
    /// The same call again is answered alike, and done once.
    IdempotencyKey,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// Nothing.
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

/// Where no body belongs, tools send an empty object nevertheless.
const NOTHING_BYTES_MAX: usize = 256;

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContent {
    /// Nothing but the status.
    Nothing,
    /// JSON of this schema.
    Json(&'static str),
    /// The same, with its version as ETag.
    Versioned(&'static str),
    /// The same for something that was just made, with its Location.
    Created(&'static str),
    /// Text of another media type.
    Text(&'static str),
}
