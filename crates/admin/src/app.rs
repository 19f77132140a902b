//! The admin API as an app: short responses by its handler, and events as a stream.

use std::sync::Arc;

use tollgate_service::Reply;
use tollgate_web::{Buffered, HttpError, WebApp, WebRequest, WebResponse, response_of};

use crate::admission::{RequestAdmission, bearer};
use crate::api::AdminApi;
use crate::operator_pages::OperatorPages;
use crate::problem::AdminProblem;
use crate::state::AdminConfig;
use crate::traffic::{EVENTS_PATH, EventSource};

/// The admin API with its streams.
pub struct AdminApp {
    api: Arc<AdminApi>,
    buffered: Buffered<AdminApi>,
}

impl AdminApp {
    /// The admin API, with the pages for operators.
    pub fn new(pages: OperatorPages, config: AdminConfig) -> AdminApp {
        let api = Arc::new(AdminApi::new(pages, config));
        AdminApp { buffered: Buffered::new(api.clone()), api }
    }

    /// The API itself, for pages that call it inside the process.
    pub fn api(&self) -> &Arc<AdminApi> {
        &self.api
    }

    async fn stream(&self, request: &WebRequest) -> Result<WebResponse, AdminProblem> {
        let state = self.api.state();
        let head = request.head();
        state.hosts.check(&head)?;
        let admitted = match state.admit(&request.peer, &head)? {
            RequestAdmission::Admitted(admitted) => *admitted,
            RequestAdmission::Pending(pending) => state.admit_pending(&pending).await?,
        };
        let token_id = admitted.request.identity.as_ref().map_or("", |identity| identity.token_id.as_str());
        let permit = state.streams.acquire(token_id)?;
        EventSource::new(state.clone(), &admitted.request, bearer(&head)).respond(permit)
    }
}

impl WebApp for AdminApp {
    async fn respond(&self, request: WebRequest) -> WebResponse {
        let is_stream = request.parts.uri.path() == EVENTS_PATH && request.parts.method == http::Method::GET;
        if !is_stream {
            return self.buffered.respond(request).await;
        }
        let response = self.stream(&request).await.unwrap_or_else(|problem| {
            let mut reply = Reply::default();
            AdminApi::refuse(&problem, &mut reply);
            response_of(reply)
        });
        self.api.responded(EVENTS_PATH, response.status().as_u16());
        response
    }

    fn reject(&self, error: HttpError) -> WebResponse {
        self.buffered.reject(error)
    }
}
