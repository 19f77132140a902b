//! Asking a server that runs elsewhere: one connection, one call at a time, a deadline on each.
//!
//! HTTP/1.1 is all a command line needs, so this is hyper's connection without a pool. Redirects are not followed: they
//! would carry the token to somebody who was never named.

mod answer;
mod connect;
mod target;
mod token;

pub use answer::Answer;
pub use target::Target;
pub use token::Token;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, Response};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use self::connect::Connector;

/// How long a call may take, from looking up the name to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read. The largest of ours, a batch of a thousand, is far shorter.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A connection to a server, made when it is first needed and again when it was closed.
pub struct Client {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    connector: Connector,
    token: Option<Token>,
    open: Option<Sender>,
}

type Sender = SendRequest<Full<Bytes>>;

impl Client {
    /// A client of `target`, which trusts the authority in the file `ca`, or those that this machine trusts.
    pub fn new(target: Target, token: Option<Token>, ca: Option<&Path>) -> Result<Client> {
        let runtime = Builder::new_current_thread().enable_all().build().context("cannot start the client")?;
        Ok(Client { runtime: Some(runtime), connector: Connector::new(target, ca)?, token, open: None })
    }

    /// Sends JSON to a path of the API. An error says that there was no answer; any status is one.
    pub fn post(&mut self, path: &str, json: String) -> Result<Answer> {
        let Client { runtime, connector, token, open } = self;
        let runtime = runtime.as_ref().context("the client has ended")?;
        let call = call(connector, token.as_ref(), open, path, json);
        let answer = runtime.block_on(async { timeout(PATIENCE, call).await });
        let answer = answer
            .unwrap_or_else(|_| Err(anyhow!("{} did not answer within {} s", connector.target(), PATIENCE.as_secs())));
        if answer.is_err() {
            *open = None; // half an exchange is left on it
        }
        answer
    }

    /// Lets time pass.
    pub fn wait(&self, time: Duration) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async { sleep(time).await });
        }
    }
}

impl Drop for Client {
    /// A name that is still being looked up holds a thread; nobody waits for that any more.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn call(
    connector: &Connector,
    token: Option<&Token>,
    open: &mut Option<Sender>,
    path: &str,
    json: String,
) -> Result<Answer> {
    let target = connector.target();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{path}", target.prefix()))
        .header(HOST, target.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, application/problem+json")
        .header(USER_AGENT, concat!("tollgate/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.header());
    }
    let request = request.body(Full::new(Bytes::from(json))).context("the request cannot be sent")?;
    let response = exchange(connector, open, request).await?;
    let (head, body) = response.into_parts();
    let media = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok(Answer { from: target.to_string(), status: head.status, media, body: body.to_bytes().into() }),
        Err(error) => bail!("the answer of {target} cannot be read: {error}"),
    }
}

/// Sends on the open connection, or on a new one. A server may close an idle connection at any time, so what never left
/// is sent again; a check that may have arrived is not, because it would be charged twice.
async fn exchange(
    connector: &Connector,
    open: &mut Option<Sender>,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>> {
    if let Some(sender) = open.as_mut().filter(|sender| !sender.is_closed()) {
        match sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(broken(connector.target(), error.error())),
            },
        }
    }
    let sender = open.insert(connector.connect().await?);
    sender.send_request(request).await.map_err(|error| broken(connector.target(), &error))
}

fn broken(target: &Target, error: &hyper::Error) -> anyhow::Error {
    match error.is_parse() && !target.is_tls() {
        true => anyhow!("{target} does not answer in HTTP; does it speak TLS? then write https://"),
        false => anyhow!("{target} closed the connection without an answer: {error}"),
    }
}
