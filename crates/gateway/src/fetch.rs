//! One GET of a short document: the keys of tokens, from where their issuer publishes them.

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};

use crate::spec::UpstreamSpec;
use crate::upstream::{ConnectionPool, SentRequestBody, client_config};

/// The body behind a URL, of at most `max_bytes`; anything but 200 is an error. The caller bounds the time. Redirects are not
/// followed: who may publish keys is said by the configuration.
pub async fn fetch(url: String, max_bytes: usize) -> Result<Bytes> {
    let uri: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let server = match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
        _ => bail!("{url} names no server"),
    };
    let server = server.parse().map_err(|error: tollgate_rules::problem::ParseError| anyhow!("{}", error.message))?;
    let spec = UpstreamSpec { servers: vec![server], ..UpstreamSpec::named("keys") };
    let url = spec.servers.first().context("one server")?;
    let pool = ConnectionPool::new(url.clone(), client_config(&spec)?, spec.timeouts.connect, 0);
    let mut request = Request::new(SentRequestBody::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path.parse()?;
    request.headers_mut().insert(header::HOST, url.authority().parse()?);
    let opened = pool.open_unshared().await.map_err(|error| anyhow!("{error}"))?;
    let (response, _connection) = opened.send(request, url).await.map_err(|(error, _)| error)?;
    if response.status() != StatusCode::OK {
        bail!("it answered {}", response.status());
    }
    let body = Limited::new(response.into_body(), max_bytes).collect().await;
    Ok(body.map_err(|error| anyhow!("{error}"))?.to_bytes())
}
