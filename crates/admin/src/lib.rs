//! The admin API: rules, overrides, clients, tokens and all about them, for people and programs that may change them.
//!
//! A second way to answer the calls of the same transport: it allocates as it likes, knows JSON, tokens and the control
//! plane, and nothing of sockets or SQL. A call goes through here once:
//!
//! | step | file |
//! |---|---|
//! | is the name ours, is it no other page's doing? | `browser` |
//! | which row of the table is it? | `endpoints`, `endpoint`, `route` |
//! | who asks? may they? | `book`, `entry`, and `tollgate_service::auth_throttle` |
//! | what do they send? | `query`, `json`, `fields`, `short` |
//! | do it | one file per resource, over [`tollgate_control`] |
//! | say so | `said`, `problem`; keys hidden by `mask`, cursors by `cursor` |
//!
//! No web framework: routing is a table that also has to yield permissions and the description, and the rest is a match.

mod admission;
mod audit;
mod body_fields;
mod browser;
mod call;
mod changes;
mod clients;
mod cursor;
mod docs;
mod endpoint;
mod endpoints;
mod explain;
mod generations;
mod import_export;
mod json;
mod merge;
mod mode;
mod mode_switch;
mod namespaces;
mod node;
mod openapi;
mod operator_pages;
mod overrides;
mod percent;
mod problem;
mod query;
mod resource;
mod response;
mod route;
mod rules;
mod schema;
mod server;
mod short_form;
mod tokens;
mod tree;
mod violations;

pub use endpoint::{
    AdminAccess, AdminEndpoint, EndpointHeader, HttpMethod, NamespaceScope, Parameter, ParameterKind, RequestBody,
    ResponseContent, Tag,
};
pub use endpoints::{endpoints, paths};
pub use mode::MODE_WRITE_TIMEOUT;
pub use mode_switch::{ModeScope, ModeState, ModeSwitch};
pub use node::{DatabaseHealth, FileKind, FileRule, NodeHooks, NodeStatus, QuarantinedRow, StoreServer};
pub use openapi::document;
pub use operator_pages::{LoadCounts, OperatorPage, OperatorPages};
pub use tree::to_object;

use std::sync::Arc;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use tollgate_control::{Control, Instant};
use tollgate_core::{Clock, Secret};
use tollgate_net::{Address, Peer};
use tollgate_service::Reply;
use tollgate_service::admin_tokens::AdminTokens;
use tollgate_service::auth_throttle::AuthThrottle;
use tollgate_service::violations::KeyHashing;
use tollgate_telemetry::LogThrottle;
use tollgate_web::{Handler, Head, HttpError};

use self::admission::{PendingAdmission, RequestAdmission};
use self::browser::AllowedHosts;
use self::call::{AdminCall, AdminRequest, IfMatch};
use self::cursor::CursorSealer;
use self::endpoint::HttpMethod as M;
use self::operator_pages::PreparedPage;
use self::problem::AdminProblem;

/// What the admin API is made of.
pub struct AdminConfig {
    /// The database; without one nothing can be changed.
    pub control: Option<Control>,
    /// Who may come in.
    pub tokens: Arc<AdminTokens>,
    /// The switch between off, shadow and enforce.
    pub mode_switch: Arc<ModeSwitch>,
    /// The node it runs in.
    pub node: NodeHooks,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Where it listens: the address is one of its names.
    pub address: Address,
    /// Names under which it may be called, beside loopback names and its address.
    pub allowed_hosts: Vec<String>,
    /// Whether `/metrics` is for everybody who reaches the listener, or for those with a token.
    pub metrics: AdminAccess,
    /// What digests of keys and cursors are made with; the same on all nodes.
    pub secret: [u8; 32],
    /// What client keys are hashed with at rest; `None` if they are kept as they are.
    pub site_key: Option<[u8; 32]>,
}

/// The admin API.
pub struct AdminApi {
    pages: OperatorPages,
    control: Option<Control>,
    tokens: Arc<AdminTokens>,
    mode_switch: Arc<ModeSwitch>,
    node: NodeHooks,
    clock: Arc<dyn Clock>,
    hosts: AllowedHosts,
    metrics: AdminAccess,
    secret: Secret,
    key_hashing: KeyHashing,
    cursors: CursorSealer,
    auth_throttle: AuthThrottle,
    log_throttle: LogThrottle,
}

/// What is remembered of a head while its body is read.
#[derive(Debug)]
pub enum PreparedAdmin {
    /// A page for operators.
    Page(PreparedPage),
    /// A row of the table.
    Admitted(Box<AdminRequest>),
    /// The same, if the database knows its token.
    Pending(Box<PendingAdmission>),
}

impl AdminApi {
    /// The admin API, with the pages for operators.
    pub fn new(pages: OperatorPages, config: AdminConfig) -> AdminApi {
        let AdminConfig { control, tokens, mode_switch, node, clock, address, allowed_hosts, .. } = config;
        let AdminConfig { metrics, secret, site_key, .. } = config;
        let masks = derive(&secret, b"masks").first_chunk().copied().unwrap_or_default();
        let auth_throttle = AuthThrottle::new(clock.clone(), Secret::new(masks));
        AdminApi {
            pages,
            control,
            tokens,
            mode_switch,
            node,
            clock,
            hosts: AllowedHosts::new(&allowed_hosts, &address),
            metrics,
            secret: Secret::new(masks),
            key_hashing: site_key.as_ref().map_or(KeyHashing::plain(), |key| KeyHashing::hashed(key)),
            cursors: CursorSealer::new(&derive(&secret, b"cursors")),
            auth_throttle,
            log_throttle: LogThrottle::new(LINES_MAX),
        }
    }

    /// The present moment, as rows have it.
    fn now(&self) -> Instant {
        Instant::from(self.clock.wall())
    }

    async fn run(&self, request: &AdminRequest, body: &[u8], reply: &mut Reply) {
        let call = AdminCall { admin: self, request, body };
        let done = match request.endpoint.body == RequestBody::None && !says_nothing(body) {
            true => Err(AdminProblem::new(400, "unexpected_body", "No body belongs here; leave it out, or send {}.")),
            false => (request.endpoint.run)(&call).await,
        };
        match done {
            Ok(response) if is_known(request, response.version) => response.unchanged().write_to(reply),
            Ok(response) => response.write_to(reply),
            Err(problem) => problem.write_to(reply),
        }
        protect(reply);
    }
}

/// True for no body, and for an object without members.
fn says_nothing(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty()
        || body
            .strip_prefix(b"{")
            .and_then(|rest| rest.strip_suffix(b"}"))
            .is_some_and(|rest| rest.trim_ascii().is_empty())
}

/// Lines of one kind that may be logged in ten seconds.
const LINES_MAX: u32 = 5;

fn derive(secret: &[u8; 32], name: &[u8]) -> [u8; 32] {
    let tag = sign(&Key::new(HMAC_SHA256, secret), name);
    tag.as_ref().first_chunk().copied().unwrap_or_default()
}

/// True if the caller has what would be shown.
fn is_known(request: &AdminRequest, version: Option<i64>) -> bool {
    let known = request.if_none_match.filter(|_| request.endpoint.method == M::Get);
    version.is_some()
        && known.is_some_and(|known| known == IfMatch::Anything || version.map(IfMatch::Version) == Some(known))
}

/// What every answer says to browsers: keep nothing, guess nothing, run and embed nothing that is not ours.
fn protect(reply: &mut Reply) {
    const FIELDS: &[(&str, &str)] = &[
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        (
            "Content-Security-Policy",
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in FIELDS {
        reply.fields.push(name, value);
    }
}

impl Handler for AdminApi {
    type Prepared = PreparedAdmin;

    fn prepare(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedAdmin, usize)> {
        let entered = match (self.hosts.check(head), OperatorPage::find_on_admin(head.path)) {
            (Err(problem), _) => Err(problem),
            (Ok(()), Some(page)) => match self.may_see_page(page, peer, head) {
                Ok(()) => {
                    let prepared = self.pages.prepare_page(page, head, reply)?;
                    return Some((PreparedAdmin::Page(prepared), 0));
                }
                Err(problem) => Err(problem),
            },
            (Ok(()), None) => self.admit(peer, head),
        };
        match entered {
            Ok(RequestAdmission::Admitted(request)) => {
                let max_bytes = request.endpoint.body.max_bytes();
                Some((PreparedAdmin::Admitted(request), max_bytes))
            }
            Ok(RequestAdmission::Pending(pending)) => {
                let max_bytes = pending.max_bytes();
                Some((PreparedAdmin::Pending(pending), max_bytes))
            }
            Err(problem) => {
                problem.write_to(reply);
                protect(reply);
                None
            }
        }
    }

    async fn handle(&self, prepared: &PreparedAdmin, body: &[u8], reply: &mut Reply) {
        match prepared {
            PreparedAdmin::Page(page) => self.pages.handle(page, body, reply).await,
            PreparedAdmin::Admitted(request) => self.run(request, body, reply).await,
            PreparedAdmin::Pending(pending) => match self.admit_pending(pending).await {
                Ok(request) => self.run(&request, body, reply).await,
                Err(problem) => {
                    problem.write_to(reply);
                    protect(reply);
                }
            },
        }
    }

    fn reject(&self, error: HttpError, reply: &mut Reply) {
        match error {
            HttpError::BodyTooLarge => {
                let detail = "Send less at once: at most 1 MiB of JSON, 16 MiB of rules to import, nothing where no body belongs.";
                AdminProblem::new(413, "body_too_large", detail).write_to(reply);
                reply.close = true;
            }
            error => self.pages.reject(error, reply),
        }
        protect(reply);
    }

    fn completed(&self, prepared: Option<&PreparedAdmin>, status: u16) {
        match prepared {
            Some(PreparedAdmin::Admitted(request)) => self.pages.metrics.responded(request.endpoint.path, status),
            Some(PreparedAdmin::Page(page)) => self.pages.completed(Some(page), status),
            Some(PreparedAdmin::Pending(_)) | None => self.pages.completed(None, status),
        }
    }
}
