//! A call of the client, beside a bare call of hyper over one connection that is kept alive; and units taken in advance.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tollgate_tower::client::{Attribute, Client, ClientConfig, Prefetch, PrefetchConfig, Request as Question, Span};

use crate::{AnyError, cpu, median};

const ROUNDS: usize = 9;
const BODY: &str = r#"{"api_key":"abc","endpoint":"GET /api/orders/7"}"#;

/// Prints a row for each candidate; for units in advance also decisions per call of the server.
pub async fn compare(url: &str, metrics: &str, calls: u32) -> Result<(), AnyError> {
    let authority = url.strip_prefix("http://").ok_or("the URL is like http://127.0.0.1:8080")?;
    let mut bare = Bare::connect(authority).await?;
    let client = Client::new(ClientConfig::new(url).timeout(Span::from_secs(10)))?;
    let prefetch = Prefetch::new(client.clone(), PrefetchConfig { units: 100, ..PrefetchConfig::default() });
    let mut times: [Vec<f64>; 3] = Default::default();
    let mut asked = 0;
    for _ in 0..ROUNDS {
        let start = cpu();
        for _ in 0..calls {
            bare.check().await?;
        }
        let after_bare = cpu();
        for _ in 0..calls {
            passed(client.check(&question()).await?.allowed)?;
        }
        let after_client = cpu();
        let before = answered(metrics).await?;
        let start_prefetch = cpu();
        for _ in 0..calls {
            passed(prefetch.check(&question()).await?.allowed)?;
        }
        let end = cpu();
        asked += answered(metrics).await? - before;
        let spent = [after_bare - start, after_client - after_bare, end - start_prefetch];
        times.iter_mut().zip(spent).for_each(|(times, spent)| times.push(spent / f64::from(calls)));
    }
    let [bare, client, prefetched] = times.map(median);
    println!("rust hyper\t{bare:.0}\nrust client\t{client:.0}\nrust prefetch of 100\t{prefetched:.0}");
    println!("decisions per call\t{:.1}", f64::from(calls) * ROUNDS as f64 / asked as f64);
    prefetch.close().await;
    Ok(())
}

fn question() -> Question<'static> {
    Question::new().with(Attribute::ApiKey, "abc").with(Attribute::Endpoint, "GET /api/orders/7")
}

fn passed(allowed: bool) -> Result<(), AnyError> {
    if allowed { Ok(()) } else { Err("a request was refused that the limit has room for".into()) }
}

/// A connection that is kept alive.
struct Bare {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
}

impl Bare {
    async fn connect(authority: &str) -> Result<Bare, AnyError> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Bare { sender, authority: authority.to_owned() })
    }

    async fn send(&mut self, request: http::request::Builder, body: &'static str) -> Result<Bytes, AnyError> {
        let request = request.header("host", &self.authority).body(Full::new(Bytes::from_static(body.as_bytes())))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }

    async fn check(&mut self) -> Result<(), AnyError> {
        let request = Request::post("/v1/check").header("content-type", "application/json");
        let answer = self.send(request, BODY).await?;
        passed(answer.starts_with(br#"{"allowed":true"#))
    }
}

/// Calls of the data API that the server has answered, by its metrics.
async fn answered(metrics: &str) -> Result<u64, AnyError> {
    let authority = metrics.strip_prefix("http://").ok_or("the URL is like http://127.0.0.1:9090")?;
    let page = Bare::connect(authority).await?.send(Request::get("/metrics"), "").await?;
    let page = String::from_utf8(page.to_vec())?;
    let lines = page.lines().filter(|line| line.starts_with("tollgate_http_requests_total{path=\"/v1/"));
    lines.map(|line| Ok(line.rsplit(' ').next().unwrap_or_default().parse::<u64>()?)).sum()
}
