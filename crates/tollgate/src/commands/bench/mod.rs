//! `tollgate bench`: sends load to a server, and measures rate and latency.

mod plot;
mod requests;
mod summary;

use std::time::Duration;

use anyhow::Result;
use tollgate_load::{LoadPace, LoadPlan, LoadRequest, Popularity, Second, Target, TargetProtocol, WaitMode};
use tollgate_rules::duration;

use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{grouped, short_time};

/// The target, the load and the request.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The target: http://HOST:PORT/PATH, redis://HOST:PORT or grpc://HOST:PORT/SERVICE/METHOD; for a Unix domain
    /// socket, unix:/SOCKET: in place of host and port
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1/check")]
    url: String,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,

    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Load")]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pipeline: usize,
    /// Measured time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = time, help_heading = "Load")]
    duration: Duration,
    /// Load before the measured time, not counted
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = time, help_heading = "Load")]
    warmup: Duration,
    /// Open loop: requests per second, independent of the server; without it (closed loop), a reply triggers the next
    /// request
    #[arg(long, value_name = "PER_SECOND", help_heading = "Load")]
    rate: Option<f64>,
    /// Timeout of a connection or a reply
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = time, help_heading = "Load")]
    timeout: Duration,
    /// Never sleep: uses a whole core, and spares the server the cost of waking this process
    #[arg(long, help_heading = "Load")]
    spin: bool,

    /// Number of different keys
    #[arg(long, value_name = "N", default_value_t = 100_000, help_heading = "Request")]
    keys: u64,
    /// Zipf distribution of keys: the n-th key has the weight n to the power of -S
    #[arg(long, value_name = "S", help_heading = "Request")]
    zipf: Option<f64>,
    /// The body, the RESP command, or name=value words for gRPC; {key} is a key, the same in the whole request, {keys}
    /// a new one at every occurrence
    #[arg(long, value_name = "TEXT", help_heading = "Request")]
    body: Option<String>,
    /// POST, GET ... (GET has no body unless one is given)
    #[arg(long, value_name = "METHOD", default_value = "POST", help_heading = "Request")]
    method: String,
    /// Additional header; may contain {key}, as may the URL
    #[arg(long, value_name = "NAME:VALUE", value_parser = header, help_heading = "Request")]
    header: Vec<(String, String)>,
    /// Send this token (Authorization: Bearer), except to redis://
    #[arg(long, value_name = "TOKEN", env = "TOLLGATE_TOKEN", hide_env_values = true, help_heading = "Request")]
    token: Option<String>,
}

const HELP: &str = r#"Keys are key:000000000000 and so on: sixteen bytes, so that all requests have the same
length. A reply counts as denied if its status is 429, or if its body contains
"allowed":false; any other 2xx is allowed, and everything else an error. For RESP
and gRPC, the first number or the field allowed decides.

Closed loop (without --rate): every connection waits for its reply before it sends
the next request, so the server sets the rate. This finds the peak, but understates
the latency: a stalling server receives fewer requests. Open loop (--rate): requests
are due at fixed times, from which latency counts. Requests that could not be sent
within a second are dropped and counted as unsent.

Examples:
  The peak rate:
    tollgate bench --url http://127.0.0.1:8080/v1/check
  The latency at 20,000 requests per second:
    tollgate bench --rate 20000 --duration 30s
  Few hot keys, pipelined, for a script:
    tollgate bench --keys 1000 --zipf 1.1 --pipeline 16 --json | jq .latency_us
  With a body and a header:
    tollgate bench --body '{"client_key":"{key}","endpoint":"GET /x","cost":3}' \
      --header 'X-Trace: bench'
  Any other HTTP server:
    tollgate bench --url http://127.0.0.1:8000/ --method GET
  RESP, sixteen commands at once on each connection:
    tollgate bench --url redis://127.0.0.1:6379 --pipeline 16 \
      --body 'CL.THROTTLE {key} 15 30 60'
  gRPC on four connections of 25 streams: a check, and Envoy's call:
    tollgate bench --url grpc://127.0.0.1:50051 --connections 4 --pipeline 25
    tollgate bench --body 'domain=shop user_id={key}' --url \
      grpc://127.0.0.1:50051/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit

Exit codes:
  0  every request was answered with allowed or denied
  1  errors occurred
  2  wrong usage, or the target does not accept connections"#;

/// Parses a duration.
pub fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map(Duration::from_nanos).map_err(|fault| fault.to_string())
}

/// Parses `NAME:VALUE`.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write NAME:VALUE, such as X-Trace:bench".to_owned()),
    }
}

/// Sends the load and prints the report.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let target = Target::parse(&with_path(&args.url))?;
    let plan = args.plan();
    let tells = out.is_terminal() && !args.json;
    if tells {
        out.line(&summary::heading(&args.url, &plan))?;
    }
    let outcome = tollgate_load::run(&target, &args.request(&target)?, &plan, &mut |second| {
        if tells {
            let _ = out.line(&progress(second)); // lost output is reported when the command ends
        }
    })?;
    match args.json {
        true => out.json(&summary::json(&args.url, &plan, &outcome))?,
        false => {
            let heading = if tells { String::new() } else { format!("{}\n", summary::heading(&args.url, &plan)) };
            out.text(&format!("{heading}\n{}", summary::text(&outcome, out.palette())))?;
        }
    }
    Ok(Exit::from_success(outcome.errors.total() == 0 && outcome.answered > 0))
}

/// One line of progress per second.
fn progress(second: &Second) -> String {
    let errors = if second.errors == 0 { String::new() } else { format!("  errors {}", grouped(second.errors)) };
    format!(
        "{:>4.0}s  {:>9}/s  p50 {:>7}  p99 {:>7}  denied {}{errors}",
        second.at,
        grouped(second.rate.round() as u64),
        short_time(second.p50),
        short_time(second.p99),
        grouped(second.denied),
    )
}

impl Args {
    fn plan(&self) -> LoadPlan {
        LoadPlan {
            connections: self.connections,
            pipeline: self.pipeline,
            warm_up: self.warmup,
            duration: self.duration,
            pace: self.rate.map_or(LoadPace::Closed, |per_second| LoadPace::Open { per_second }),
            keys: self.keys,
            popularity: self.zipf.map_or(Popularity::Uniform, Popularity::Zipf),
            wait: if self.spin { WaitMode::Spin } else { WaitMode::Sleep },
            timeout: self.timeout,
            ..LoadPlan::default()
        }
    }

    fn request(&self, target: &Target) -> Result<LoadRequest> {
        let body = self.body.as_deref();
        let request = match target.protocol() {
            TargetProtocol::Resp => return Ok(LoadRequest::command(body.unwrap_or(requests::COMMAND))),
            TargetProtocol::Grpc => LoadRequest::post(target.path())
                .body(requests::message(target.path(), body.unwrap_or(requests::WORDS))?),
            TargetProtocol::Http => {
                let given = if self.method == "GET" { "" } else { requests::JSON };
                LoadRequest::new(&self.method, target.path()).body(body.unwrap_or(given))
            }
        };
        let request = self.header.iter().fold(request, |request, (name, value)| request.header(name, value));
        Ok(match &self.token {
            Some(token) => request.header("authorization", &format!("Bearer {token}")),
            None => request,
        })
    }
}

/// Appends the default path of a check to a URL without a path.
fn with_path(url: &str) -> String {
    let checks = [("http://", "/v1/check"), ("grpc://", requests::CHECK)];
    let alone = checks.iter().find(|(scheme, _)| {
        url.strip_prefix(scheme).is_some_and(|authority| !authority.is_empty() && !authority.contains('/'))
    });
    match alone {
        Some((_, path)) => format!("{url}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_the_path_of_checks() {
        for (url, whole) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/check"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
            ("http://unix:/run/x.sock:/v1/check", "http://unix:/run/x.sock:/v1/check"),
            ("https://x", "https://x"),
            ("grpc://127.0.0.1:1", "grpc://127.0.0.1:1/tollgate.v1.Tollgate/Check"),
            ("grpc://127.0.0.1:1/a.B/C", "grpc://127.0.0.1:1/a.B/C"),
            ("redis://127.0.0.1:1", "redis://127.0.0.1:1"),
        ] {
            assert_eq!(with_path(url), whole);
        }
    }
}
