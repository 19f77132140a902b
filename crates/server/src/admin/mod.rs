//! The admin API: rules, overrides, clients, tokens and all about them, for people and programs that may change them.
//!
//! A second way to answer the calls of the same transport: it allocates as it likes, knows JSON, tokens and the control
//! plane, and nothing of sockets or SQL. A call goes through here once:
//!
//! | step | file |
//! |---|---|
//! | is the name ours, is it no other page's doing? | `browser` |
//! | which row of the table is it? | `endpoints`, `endpoint`, `route` |
//! | who asks? may they? | `book`, `entry`, and `crate::failures` |
//! | what do they send? | `query`, `json`, `fields`, `short` |
//! | do it | one file per resource, over [`tollgate_control`] |
//! | say so | `said`, `problem`; keys hidden by `mask`, cursors by `cursor` |
//!
//! No web framework: routing is a table that also has to yield permissions and the description, and the rest is a match.

mod audit;
mod book;
mod browser;
mod call;
mod changes;
mod clients;
mod cursor;
mod docs;
mod endpoint;
mod endpoints;
mod entry;
mod exchange;
mod explain;
mod fields;
mod generations;
mod json;
mod mask;
mod merge;
mod mode;
mod namespaces;
mod node;
mod openapi;
mod overrides;
mod percent;
mod problem;
mod query;
mod route;
mod rules;
mod said;
mod schema;
mod server;
mod short;
mod switchboard;
mod thing;
mod tokens;
mod tree;
mod violations;

pub use book::{Rejected, TokenBook, Who};
pub use endpoint::{Access, Body, Content, Endpoint, Header, Method, Parameter, Reach, Tag, Takes};
pub use endpoints::{endpoints, route_names};
pub(crate) use mask::Mask;
pub use mode::MODE_PATIENCE;
pub use node::{Database, FileKind, FileRule, Node, Quarantined, Status, StoreServer};
pub use openapi::document;
pub use switchboard::{Scope, Setting, Switchboard};
pub(crate) use tree::to_object;

use std::sync::Arc;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use tollgate_control::{Control, Instant};
use tollgate_core::{Clock, Secret};

use self::browser::Hosts;
use self::call::{Asked, Call, IfMatch};
use self::cursor::Cursors;
use self::endpoint::Method as M;
use self::entry::{Entry, Later};
use self::problem::Problem;
use crate::Reply;
use crate::api::{Api, Plan as ApiPlan, Route, Surface};
use crate::failures::Failures;
use crate::http::{Answer, Fault, Head};
use crate::net::{Address, Peer};
use crate::telemetry::Quiet;
use crate::violations::AtRest;

/// What the admin API is made of.
pub struct AdminConfig {
    /// The database; without one nothing can be changed.
    pub control: Option<Control>,
    /// Who may come in.
    pub book: Arc<TokenBook>,
    /// The switch between off, shadow and enforce.
    pub switchboard: Arc<Switchboard>,
    /// The node it runs in.
    pub node: Node,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Where it listens: the address is one of its names.
    pub address: Address,
    /// Names under which it may be called, beside loopback names and its address.
    pub allowed_hosts: Vec<String>,
    /// Whether `/metrics` is for everybody who reaches the listener, or for those with a token.
    pub metrics: Access,
    /// What digests of keys and cursors are made with; the same on all nodes.
    pub secret: [u8; 32],
    /// What client keys are hashed with at rest; `None` if they are kept as they are.
    pub site_key: Option<[u8; 32]>,
}

/// The admin API.
pub struct Admin {
    api: Api,
    control: Option<Control>,
    book: Arc<TokenBook>,
    switchboard: Arc<Switchboard>,
    node: Node,
    clock: Arc<dyn Clock>,
    hosts: Hosts,
    metrics: Access,
    secret: Secret,
    at_rest: AtRest,
    cursors: Cursors,
    failures: Failures,
    quiet: Quiet,
}

/// What is remembered of a head while its body is read.
#[derive(Debug)]
pub enum Plan {
    /// Health and figures, which need nothing of all this.
    Api(ApiPlan),
    /// A row of the table.
    Asked(Box<Asked>),
    /// The same, if the database knows its token.
    Later(Box<Later>),
}

impl Admin {
    /// The admin API, with health and figures as `api` tells them.
    pub fn new(api: Api, config: AdminConfig) -> Admin {
        let AdminConfig { control, book, switchboard, node, clock, address, allowed_hosts, .. } = config;
        let AdminConfig { metrics, secret, site_key, .. } = config;
        let masks = derive(&secret, b"masks").first_chunk().copied().unwrap_or_default();
        let failures = Failures::new(clock.clone(), Secret::new(masks));
        Admin {
            api,
            control,
            book,
            switchboard,
            node,
            clock,
            hosts: Hosts::new(&allowed_hosts, &address),
            metrics,
            secret: Secret::new(masks),
            at_rest: site_key.as_ref().map_or(AtRest::plain(), |key| AtRest::hashed(key)),
            cursors: Cursors::new(&derive(&secret, b"cursors")),
            failures,
            quiet: Quiet::new(LINES_MAX),
        }
    }

    /// The present moment, as rows have it.
    fn now(&self) -> Instant {
        Instant::from(self.clock.wall())
    }

    async fn run(&self, asked: &Asked, body: &[u8], reply: &mut Reply) {
        let call = Call { admin: self, asked, body };
        let done = match asked.endpoint.body == Body::None && !says_nothing(body) {
            true => Err(Problem::new(400, "unexpected_body", "No body belongs here; leave it out, or send {}.")),
            false => (asked.endpoint.run)(&call).await,
        };
        match done {
            Ok(said) if is_known(asked, said.version) => said.unchanged().fill(reply),
            Ok(said) => said.fill(reply),
            Err(problem) => problem.fill(reply),
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
fn is_known(asked: &Asked, version: Option<i64>) -> bool {
    let known = asked.if_none_match.filter(|_| asked.endpoint.method == M::Get);
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

impl Answer for Admin {
    type Plan = Plan;

    fn open(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(Plan, usize)> {
        let entered = match (self.hosts.check(head), Route::find(Surface::Admin, head.path)) {
            (Err(problem), _) => Err(problem),
            (Ok(()), Some(route)) => match self.may_look(route, peer, head) {
                Ok(()) => return self.api.open(peer, head, reply).map(|(plan, most)| (Plan::Api(plan), most)),
                Err(problem) => Err(problem),
            },
            (Ok(()), None) => self.enter(peer, head),
        };
        match entered {
            Ok(Entry::Now(asked)) => {
                let most = asked.endpoint.body.most();
                Some((Plan::Asked(asked), most))
            }
            Ok(Entry::Later(later)) => {
                let most = later.most();
                Some((Plan::Later(later), most))
            }
            Err(problem) => {
                problem.fill(reply);
                protect(reply);
                None
            }
        }
    }

    async fn answer(&self, plan: &Plan, body: &[u8], reply: &mut Reply) {
        match plan {
            Plan::Api(plan) => self.api.answer(plan, body, reply).await,
            Plan::Asked(asked) => self.run(asked, body, reply).await,
            Plan::Later(later) => match self.admit(later).await {
                Ok(asked) => self.run(&asked, body, reply).await,
                Err(problem) => {
                    problem.fill(reply);
                    protect(reply);
                }
            },
        }
    }

    fn refuse(&self, fault: Fault, reply: &mut Reply) {
        match fault {
            Fault::BodyTooLarge => {
                let detail = "Send less at once: at most 1 MiB of JSON, 16 MiB of rules to import, nothing where no body belongs.";
                Problem::new(413, "body_too_large", detail).fill(reply);
                reply.close = true;
            }
            fault => self.api.refuse(fault, reply),
        }
        protect(reply);
    }

    fn answered(&self, plan: Option<&Plan>, status: u16) {
        match plan {
            Some(Plan::Asked(asked)) => self.api.shared().metrics.http_answered(asked.endpoint.path, status),
            Some(Plan::Api(plan)) => self.api.answered(Some(plan), status),
            Some(Plan::Later(_)) | None => self.api.answered(None, status),
        }
    }
}
