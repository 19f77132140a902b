//! Checks a call before its body is read: path, token, role, namespace, media type. The order of the checks keeps callers
//! from learning more than their token allows.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_control::record::Role;
use tracing::warn;

use crate::access::{AdminAccess, NamespaceScope};
use crate::call::{AdminRequest, idempotency_key, may_see, namespace, precondition};
use crate::endpoint::{AdminEndpoint, EndpointHeader, RequestBody};
use crate::operator_pages::OperatorPage;
use crate::parameter::Parameter;
use crate::problem::AdminProblem;
use crate::query::QueryParameters;
use crate::state::AdminState;
use crate::{browser, endpoints, route};
use tollgate_net::{Peer, masked_network};
use tollgate_service::admin_tokens::{AdminIdentity, AdminTokens, TokenRejection};
use tollgate_web::Head;

impl AdminState {
    /// Admits a call, rejects it, or leaves the decision to [`admit_pending`](AdminState::admit_pending).
    pub(super) fn admit(&self, peer: &Peer, head: &Head<'_>) -> Result<RequestAdmission, AdminProblem> {
        let (endpoint, path_parameters) = route::find(endpoints::endpoints(), head.method, head.path)?;
        if endpoint.writes() {
            browser::check_origin(head)?;
        }
        let identity = match endpoint.access {
            AdminAccess::Open => None,
            AdminAccess::Needs(role) => match self.authorize(peer, head, role) {
                Err(problem) if problem.code == UNKNOWN && self.may_be_new(head) => {
                    let (token, rest) = (bearer(head).to_vec(), read(endpoint, path_parameters, head));
                    let address = peer.address;
                    return Ok(RequestAdmission::Pending(Box::new(PendingAdmission { token, role, address, rest })));
                }
                identity => Some(self.log_unknown(peer.address, identity)?),
            },
        };
        let admitted = read(endpoint, path_parameters, head)?.with_identity(identity)?;
        Ok(RequestAdmission::Admitted(Box::new(admitted)))
    }

    /// True if another process may just have created the token: it is well-formed, and there is a database to ask.
    fn may_be_new(&self, head: &Head<'_>) -> bool {
        self.control.is_some() && AdminTokens::id_of(bearer(head)).is_some()
    }

    /// Admits a call whose token this node does not know, if the database knows it. The token already counts as a bad one,
    /// so that guesses query the database no more often than they are answered.
    pub(super) async fn admit_pending(&self, pending: &PendingAdmission) -> Result<AdmittedRequest, AdminProblem> {
        let PendingAdmission { token, role, address, rest } = pending;
        let asked_at = Instant::now();
        if let (Some(control), Some(id)) = (&self.control, AdminTokens::id_of(token))
            && let Ok(Ok(record)) = timeout(TOKEN_LOOKUP_TIMEOUT, control.token(id)).await
        {
            self.tokens.add_found(&record, asked_at);
        }
        let identity = self.tokens.find(token, self.now()).map_err(|_| unknown_token());
        let identity = self.log_unknown(*address, identity)?;
        check_role(&identity, *role)?;
        rest.clone()?.with_identity(Some(identity))
    }

    /// Health is open to all callers; metrics are open to those that the configuration names.
    pub(super) fn may_see_page(&self, page: OperatorPage, peer: &Peer, head: &Head<'_>) -> Result<(), AdminProblem> {
        match (page, self.metrics) {
            (OperatorPage::Metrics, AdminAccess::Needs(role)) => {
                self.log_unknown(peer.address, self.authorize(peer, head, role)).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn authorize(&self, peer: &Peer, head: &Head<'_>, role: Role) -> Result<AdminIdentity, AdminProblem> {
        let identity = self.authenticate(peer, head)?;
        check_role(&identity, role).map(|()| identity)
    }

    /// Finds the identity of a token. After too many bad tokens from an address, further ones are not compared.
    fn authenticate(&self, peer: &Peer, head: &Head<'_>) -> Result<AdminIdentity, AdminProblem> {
        if QueryParameters::holds_token(head.query) {
            return Err(unauthorized(
                "token_in_query",
                "A token in a URL ends up in logs and histories: revoke this one, and send one as Authorization: Bearer TOKEN.",
            ));
        }
        if head.authorization.is_none() {
            return Err(unauthorized("no_token", "Send a token: Authorization: Bearer TOKEN."));
        }
        if bearer(head).is_empty() {
            let detail = "Authorization holds no token (an unset variable?): send Authorization: Bearer TOKEN.";
            return Err(unauthorized("no_token", detail));
        }
        if let Some(wait) = self.auth_throttle.wait(peer.address) {
            let seconds = wait.nanos().div_ceil(1_000_000_000).max(1);
            return Err(AdminProblem::new(
                429,
                "too_many_bad_tokens",
                "Too many bad tokens came from this address; wait.",
            )
            .with("Retry-After", seconds.to_string()));
        }
        match self.tokens.find(bearer(head), self.now()) {
            Ok(identity) => Ok(identity),
            Err(TokenRejection::Expired) => {
                Err(unauthorized("token_expired", "This token has expired; ask for another one."))
            }
            Err(TokenRejection::Unknown) => {
                self.auth_throttle.note(peer.address);
                Err(unknown_token())
            }
        }
    }

    /// Logs that a token is unknown. One that may be new is unknown when the database does not have it either.
    fn log_unknown<T>(&self, address: Option<IpAddr>, outcome: Result<T, AdminProblem>) -> Result<T, AdminProblem> {
        if let Err(problem) = &outcome
            && problem.code == UNKNOWN
            && let Some(unsaid) = self.log_throttle.admit("token")
        {
            warn!(network = %masked_network(address), unsaid, "unknown token presented to the admin API");
        }
        outcome
    }
}

/// The outcome of admission.
pub(super) enum RequestAdmission {
    /// The call is admitted.
    Admitted(Box<AdmittedRequest>),
    /// The token may be new: the database is queried once the body is read.
    Pending(Box<PendingAdmission>),
}

/// A request and the endpoint that it calls.
#[derive(Clone, Debug)]
pub struct AdmittedRequest {
    pub(super) endpoint: &'static AdminEndpoint,
    pub(super) request: AdminRequest,
}

impl AdmittedRequest {
    fn with_identity(self, identity: Option<AdminIdentity>) -> Result<AdmittedRequest, AdminProblem> {
        let admitted = AdmittedRequest { request: AdminRequest { identity, ..self.request }, ..self };
        check_namespace(&admitted)?;
        Ok(admitted)
    }
}

/// A call whose token is not known yet.
#[derive(Debug)]
pub struct PendingAdmission {
    token: Vec<u8>,
    role: Role,
    /// For the log, if the token stays unknown.
    address: Option<IpAddr>,
    /// The rest of the head. An error in it is not reported before the token is known.
    rest: Result<AdmittedRequest, AdminProblem>,
}

impl PendingAdmission {
    /// Longest body that is read of such a call.
    pub(super) fn max_bytes(&self) -> usize {
        self.rest.as_ref().map_or(0, |admitted| admitted.endpoint.body.max_bytes().min(UNKNOWN_BODY_MAX))
    }
}

/// Longest body that is read before the token is known.
const UNKNOWN_BODY_MAX: usize = 64 << 10;
/// How long the database may take to look up a token.
const TOKEN_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// The code of a token that is not known.
const UNKNOWN: &str = "unknown_token";

fn unknown_token() -> AdminProblem {
    unauthorized(UNKNOWN, "This server does not know that token, or no longer.")
}

/// The token that a head presents; empty if there is none.
pub(super) fn bearer<'a>(head: &Head<'a>) -> &'a [u8] {
    let value = head.authorization.unwrap_or_default();
    let token = value.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    token.map_or(&b""[..], |(_, token)| token.trim_ascii())
}

/// Reads the head, without the identity of the caller.
fn read(
    endpoint: &'static AdminEndpoint,
    path_parameters: Vec<String>,
    head: &Head<'_>,
) -> Result<AdmittedRequest, AdminProblem> {
    check_media(endpoint, head)?;
    let accepted: Vec<&'static Parameter> = endpoint.parameters().collect();
    let takes_idempotency_key = endpoint.headers.contains(&EndpointHeader::IdempotencyKey);
    let request = AdminRequest {
        query: QueryParameters::read(&accepted, head.query)?,
        if_match: precondition(head.if_match)?,
        if_none_match: precondition(head.if_none_match)?,
        idempotency_key: idempotency_key(head.idempotency_key)?.filter(|_| takes_idempotency_key),
        accepts_csv: head.accept.is_some_and(accepts_csv),
        path: endpoint.path,
        scope: endpoint.scope,
        path_parameters,
        identity: None,
    };
    Ok(AdmittedRequest { endpoint, request })
}

/// True if `Accept` names CSV with a weight other than zero.
fn accepts_csv(accept: &[u8]) -> bool {
    let is_csv = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let is_csv = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("text/csv"));
        let zero = |weight: &str| weight.trim_matches(['0', '.']).is_empty();
        is_csv && !parts.any(|part| part.strip_prefix("q=").is_some_and(zero))
    };
    str::from_utf8(accept).is_ok_and(|accept| accept.split(',').any(is_csv))
}

fn check_role(identity: &AdminIdentity, role: Role) -> Result<(), AdminProblem> {
    match identity.role.may(role) {
        true => Ok(()),
        false => Err(AdminProblem::new(
            403,
            "role_too_weak",
            format!("This needs a token of the role {}; yours is of the role {}.", role.name(), identity.role.name()),
        )),
    }
}

fn unauthorized(code: &'static str, detail: &str) -> AdminProblem {
    AdminProblem::new(401, code, detail).with("WWW-Authenticate", "Bearer")
}

/// In a namespace that the token is not for, lists are empty and changes are refused.
fn check_namespace(admitted: &AdmittedRequest) -> Result<(), AdminProblem> {
    let AdmittedRequest { endpoint, request } = admitted;
    let Some(own) = request.identity.as_ref().and_then(|identity| identity.namespaces.as_deref()) else {
        return Ok(());
    };
    let names = own.join(", ");
    let is_named = request.query.text("namespace").is_some();
    if endpoint.scope == NamespaceScope::Namespace && !is_named && !may_see(request) {
        let detail = format!("Say which namespace is meant, ?namespace=NAME: this token is for {names}.");
        return Err(AdminProblem::new(400, "namespace_needed", detail));
    }
    match may_see(request) {
        true => Ok(()),
        false if endpoint.scope == NamespaceScope::Everything => {
            let detail = format!("This is about all namespaces, and this token is only for {names}.");
            Err(AdminProblem::new(403, "not_for_all_namespaces", detail))
        }
        false if endpoint.writes() => {
            let detail = format!("This token is not for the namespace {}; it is for {names}.", namespace(request));
            Err(AdminProblem::new(403, "other_namespace", detail))
        }
        false if endpoint.path_parameters().next().is_some() => {
            Err(AdminProblem::not_found("such thing in that namespace"))
        }
        false => Ok(()), // a list, which will be empty
    }
}

/// Checks the media type. `curl -d` labels every body as a form, so a form is read as JSON where JSON is accepted, as on
/// the data port. Pages of other origins may send forms without a preflight, so a form that a browser could have sent is
/// refused: every browser in use sends `Origin` or `Sec-Fetch-Site` with a POST, and a page needs a preflight to add
/// `Authorization`. Plain text is never accepted.
fn check_media(endpoint: &AdminEndpoint, head: &Head<'_>) -> Result<(), AdminProblem> {
    if head.content_encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err(AdminProblem::new(415, "encoded_body", "Send the body as it is, without Content-Encoding."));
    }
    let media =
        head.content_type.map(|value| value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii());
    let is = |names: &[&str]| {
        media.is_some_and(|media| names.iter().any(|name| media.eq_ignore_ascii_case(name.as_bytes())))
    };
    let is_form = is(&["application/x-www-form-urlencoded"]) && !head.is_from_page() && head.authorization.is_some();
    let (fits, wanted) = match endpoint.body {
        RequestBody::None => (true, ""),
        RequestBody::Json(_) => {
            (is_form || is(&["application/json"]), "Send JSON, with Content-Type: application/json.")
        }
        RequestBody::Patch(_) => (
            is_form || is(&["application/json", "application/merge-patch+json"]),
            "Send a JSON merge patch, with Content-Type: application/merge-patch+json (or application/json).",
        ),
        RequestBody::Yaml => (
            is(&["application/yaml", "application/x-yaml", "text/yaml"]),
            "Send a rules file, with Content-Type: application/yaml.",
        ),
    };
    if fits { Ok(()) } else { Err(AdminProblem::new(415, "wrong_media_type", wanted)) }
}
