//! The admin listener: pages of the console, and the admin API below them.

use std::sync::Arc;

use http::{HeaderValue, Method, header};
use tollgate_admin::AdminApp;
use tollgate_core::Clock;
use tollgate_http::DataApi;
use tollgate_web::{Handler, HeaderLookup, HttpError, WebApp, WebRequest, WebResponse};

use crate::live_slots::LiveSlots;
use crate::page_call::PageCall;
use crate::response::{self, PageResponse};
use crate::session::SessionSealer;
use crate::state::ConsoleState;
use crate::{assets, live, pages};

/// Configuration of the console.
pub struct ConsoleConfig {
    /// Keys sessions; the same on all nodes.
    pub secret: [u8; 32],
    /// The data API, which pages try.
    pub data_api: DataApi,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// True if the listener has TLS.
    pub is_secure: bool,
}

/// The console and the admin API as one app.
pub struct Console {
    api: AdminApp,
    pub(crate) shared: Arc<ConsoleState>,
}

/// Longest form: a rules file of the editor.
const FORM_BYTES_MAX: usize = 256 << 10;
/// A page of the console sends the form token in this field when it calls the API itself, as the page about the API does.
const FORM_TOKEN_FIELD: &str = "x-tollgate-form";
const PREFIX: &str = "/console";

impl Console {
    /// The console over this API.
    pub fn new(api: AdminApp, config: ConsoleConfig) -> Console {
        let ConsoleConfig { secret, data_api, clock, is_secure } = config;
        let sessions = SessionSealer::new(&secret, is_secure);
        let shared = ConsoleState { admin: api.api().clone(), sessions, data_api, clock, live: LiveSlots::default() };
        Console { api, shared: Arc::new(shared) }
    }

    async fn page(&self, request: WebRequest) -> WebResponse {
        if let Err(problem) = self.shared.admin.check_host(&request.head()) {
            return response::of_problem(&problem);
        }
        if let Some(asset) = assets::find(request.parts.uri.path()) {
            return asset.response(&request);
        }
        match (request.parts.method.clone(), request.parts.uri.path()) {
            (Method::GET, live::PATH) => live::respond(self.shared.clone(), request),
            (Method::GET | Method::HEAD, _) => self.answer(request, &[]).await,
            (Method::POST, _) => self.change(request).await,
            _ => PageResponse::not_found().response(),
        }
    }

    /// A form: only from our own pages. `SameSite=Strict` keeps the cookie from requests of other sites; this check does
    /// not rely on it, and covers signing in, which has no session yet.
    async fn change(&self, request: WebRequest) -> WebResponse {
        let head = request.head();
        let is_form = head.content_type.is_some_and(|media| media.starts_with(b"application/x-www-form-urlencoded"));
        if let Err(problem) = tollgate_admin::check_origin(&head) {
            return response::of_problem(&problem);
        }
        if !is_form || head.repeated.is_some() {
            return PageResponse::bad_form().response();
        }
        let WebRequest { peer, parts, body, .. } = request;
        match body.collect(FORM_BYTES_MAX).await {
            Ok(body) => self.answer_parts(&peer, &parts, &body).await,
            Err(error) => self.reject(error),
        }
    }

    async fn answer(&self, request: WebRequest, body: &[u8]) -> WebResponse {
        let WebRequest { peer, parts, .. } = request;
        self.answer_parts(&peer, &parts, body).await
    }

    async fn answer_parts(&self, peer: &tollgate_net::Peer, parts: &http::request::Parts, body: &[u8]) -> WebResponse {
        let call = PageCall::new(&self.shared, peer, parts, body);
        pages::respond(&call).await.response()
    }

    /// A call of the API by a page of the console: the session stands for the token if the page shows its form token.
    fn authorize_page(&self, request: &mut WebRequest) {
        let head = request.head();
        let HeaderLookup::Once(form_token) = head.headers.find(FORM_TOKEN_FIELD) else { return };
        if head.authorization.is_some() || tollgate_admin::check_origin(&head).is_err() {
            return;
        }
        let Some(session) = self.shared.session(head.headers.find("cookie")) else { return };
        if !str::from_utf8(form_token).is_ok_and(|form_token| session.made(form_token)) {
            return;
        }
        if let Ok(value) = HeaderValue::from_str(&format!("Bearer {}", session.token)) {
            request.parts.headers.insert(header::AUTHORIZATION, value);
        }
    }
}

impl WebApp for Console {
    async fn respond(&self, mut request: WebRequest) -> WebResponse {
        let path = request.parts.uri.path();
        let is_page = path == "/" || path == "/favicon.ico" || path.strip_prefix(PREFIX).is_some_and(is_below);
        if is_page {
            let response = self.page(request).await;
            self.shared.admin.completed(None, response.status().as_u16());
            return response;
        }
        self.authorize_page(&mut request);
        self.api.respond(request).await
    }

    fn reject(&self, error: HttpError) -> WebResponse {
        self.api.reject(error)
    }
}

fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}
