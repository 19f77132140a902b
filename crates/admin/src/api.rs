//! The admin API as a handler of HTTP requests: admits a head, runs its endpoint once the body is read, writes the reply.

use std::sync::Arc;

use tollgate_net::Peer;
use tollgate_service::Reply;
use tollgate_web::{Handler, Head, HttpError};

use crate::admission::{AdmittedRequest, PendingAdmission, RequestAdmission};
use crate::call::{AdminCall, IfMatch};
use crate::endpoint::{HttpMethod, RequestBody};
use crate::operator_pages::{OperatorPage, OperatorPages, PreparedPage};
use crate::problem::AdminProblem;
use crate::state::{AdminConfig, AdminState, SelfDescription};
use crate::{docs, openapi};

/// The admin API.
pub struct AdminApi {
    pages: OperatorPages,
    state: Arc<AdminState>,
}

/// A request whose body is being read.
#[derive(Debug)]
pub enum PreparedAdmin {
    /// A page for operators.
    Page(PreparedPage),
    /// A call of an endpoint.
    Admitted(Box<AdmittedRequest>),
    /// A call of an endpoint, if the database knows its token.
    Pending(Box<PendingAdmission>),
}

impl AdminApi {
    /// The admin API, with the pages for operators.
    pub fn new(pages: OperatorPages, config: AdminConfig) -> AdminApi {
        let description = SelfDescription { openapi: openapi::text, page: docs::page };
        AdminApi { state: Arc::new(AdminState::new(pages.service.clone(), config, description)), pages }
    }

    /// Refuses a request under an unknown host name, for pages beside the API.
    pub fn check_host(&self, head: &Head<'_>) -> Result<(), AdminProblem> {
        self.state.hosts.check(head)
    }

    async fn run(&self, admitted: &AdmittedRequest, body: &[u8], reply: &mut Reply) {
        let AdmittedRequest { endpoint, request } = admitted;
        let call = AdminCall { state: &self.state, request, body };
        let done = match endpoint.body == RequestBody::None && !is_empty(body) {
            true => Err(AdminProblem::new(400, "unexpected_body", "No body belongs here; leave it out, or send {}.")),
            false => (endpoint.run)(&call).await,
        };
        match done {
            Ok(response) if is_unchanged(admitted, response.version) => response.unchanged().write_to(reply),
            Ok(response) => response.write_to(reply),
            Err(problem) => problem.write_to(reply),
        }
        add_security_headers(reply);
    }

    /// The state of all calls.
    pub(crate) fn state(&self) -> &Arc<AdminState> {
        &self.state
    }

    /// Counts a response that was not sent by the handler.
    pub(crate) fn responded(&self, path: &'static str, status: u16) {
        self.pages.metrics.responded(path, status);
    }

    pub(crate) fn refuse(problem: &AdminProblem, reply: &mut Reply) {
        problem.write_to(reply);
        add_security_headers(reply);
    }
}

/// True for no body, and for an object without members.
fn is_empty(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty()
        || body
            .strip_prefix(b"{")
            .and_then(|rest| rest.strip_suffix(b"}"))
            .is_some_and(|rest| rest.trim_ascii().is_empty())
}

/// True if `If-None-Match` names the version that would be returned.
fn is_unchanged(admitted: &AdmittedRequest, version: Option<i64>) -> bool {
    let known = admitted.request.if_none_match.filter(|_| admitted.endpoint.method == HttpMethod::Get);
    version.is_some()
        && known.is_some_and(|known| known == IfMatch::Anything || version.map(IfMatch::Version) == Some(known))
}

/// Tells browsers not to cache, sniff, frame or run anything that is not from here.
fn add_security_headers(reply: &mut Reply) {
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
        let admission = match (self.state.hosts.check(head), OperatorPage::find_on_admin(head.path)) {
            (Err(problem), _) => Err(problem),
            (Ok(()), Some(page)) => match self.state.may_see_page(page, peer, head) {
                Ok(()) => {
                    let prepared = self.pages.prepare_page(page, head, reply)?;
                    return Some((PreparedAdmin::Page(prepared), 0));
                }
                Err(problem) => Err(problem),
            },
            (Ok(()), None) => self.state.admit(peer, head),
        };
        match admission {
            Ok(RequestAdmission::Admitted(admitted)) => {
                let max_bytes = admitted.endpoint.body.max_bytes();
                Some((PreparedAdmin::Admitted(admitted), max_bytes))
            }
            Ok(RequestAdmission::Pending(pending)) => {
                let max_bytes = pending.max_bytes();
                Some((PreparedAdmin::Pending(pending), max_bytes))
            }
            Err(problem) => {
                AdminApi::refuse(&problem, reply);
                None
            }
        }
    }

    async fn handle(&self, prepared: &PreparedAdmin, body: &[u8], reply: &mut Reply) {
        match prepared {
            PreparedAdmin::Page(page) => self.pages.handle(page, body, reply).await,
            PreparedAdmin::Admitted(admitted) => self.run(admitted, body, reply).await,
            PreparedAdmin::Pending(pending) => match self.state.admit_pending(pending).await {
                Ok(admitted) => self.run(&admitted, body, reply).await,
                Err(problem) => AdminApi::refuse(&problem, reply),
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
        add_security_headers(reply);
    }

    fn completed(&self, prepared: Option<&PreparedAdmin>, status: u16) {
        match prepared {
            Some(PreparedAdmin::Admitted(admitted)) => self.pages.metrics.responded(admitted.endpoint.path, status),
            Some(PreparedAdmin::Page(page)) => self.pages.completed(Some(page), status),
            Some(PreparedAdmin::Pending(_)) | None => self.pages.completed(None, status),
        }
    }
}
