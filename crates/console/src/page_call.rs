//! One request for a page: the session, the parameters, and the operator's client of the API.

use http::Method;
use http::request::Parts;
use tollgate_net::Peer;
use tollgate_web::{Head, HeaderLookup};

use crate::api::{CallProblem, OperatorClient};
use crate::operator::Operator;
use crate::parameters::PageParameters;
use crate::response::PageResponse;
use crate::session::ConsoleSession;
use crate::state::ConsoleState;

/// A request for a page.
pub(crate) struct PageCall<'a> {
    pub(crate) shared: &'a ConsoleState,
    pub(crate) peer: &'a Peer,
    pub(crate) path: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    host: Option<&'a [u8]>,
    /// True for a form that changes something.
    pub(crate) is_change: bool,
    pub(crate) query: PageParameters,
    pub(crate) form: PageParameters,
    pub(crate) session: Option<ConsoleSession>,
    cookies: Vec<u8>,
}

impl<'a> PageCall<'a> {
    pub(crate) fn new(shared: &'a ConsoleState, peer: &'a Peer, parts: &'a Parts, body: &[u8]) -> PageCall<'a> {
        let head = Head::of(parts);
        PageCall {
            shared,
            peer,
            path: parts.uri.path(),
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
            host: head.host,
            is_change: parts.method == Method::POST,
            query: PageParameters::read(parts.uri.query().unwrap_or_default().as_bytes()),
            form: PageParameters::read(body),
            session: shared.session(head.headers.find("cookie")),
            cookies: match head.headers.find("cookie") {
                HeaderLookup::Once(cookies) => cookies.to_vec(),
                HeaderLookup::Absent | HeaderLookup::Repeated => Vec::new(),
            },
        }
    }

    /// The way to a page that shows a new secret once.
    pub(crate) fn hand_over(&self, path: &str, secret: &str) -> PageResponse {
        match self.shared.sessions.hand_over(secret, self.shared.clock.wall()) {
            Some(cookie) => PageResponse::redirect(path).cookie(cookie),
            None => PageResponse::redirect(path),
        }
    }

    /// The secret that the page before handed over, and the cookie that forgets it.
    pub(crate) fn take_over(&self) -> Option<(String, String)> {
        self.shared.sessions.take_over(&self.cookies, self.shared.clock.wall())
    }

    /// The same call without cookies, for a token that was just typed.
    pub(crate) fn client<'b>(&'b self, token: &'b str) -> OperatorClient<'b> {
        OperatorClient { admin: &self.shared.admin, peer: self.peer, host: self.host, token }
    }

    /// The operator, if the session's token is valid.
    pub(crate) async fn operator(&self) -> Result<Operator<'_>, CallProblem> {
        let Some(session) = &self.session else { return Err(CallProblem::new(401, "no_session", "Sign in.")) };
        let api = self.client(&session.token);
        let whoami = api.get("/v1/whoami").await?;
        Ok(Operator { api, form_token: &session.form_token, whoami })
    }

    /// True if the browser runs on the same machine.
    pub(crate) fn is_local(&self) -> bool {
        self.peer.whole.is_none_or(|address| address.to_canonical().is_loopback())
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.clock.wall().nanos() / 1_000_000
    }

    /// True if the form was made for this session.
    pub(crate) fn is_own_form(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.made(self.form.get("form_token")))
    }
}
