//! `tollgate bench`: load for a server, and what became of it.

mod figures;
mod plot;
mod requests;
mod summary;

use std::time::Duration;

use anyhow::Result;
use tollgate_load::{LoadPace, LoadPlan, LoadRequest, Popularity, Second, Target, TargetProtocol, WaitMode};
use tollgate_rules::duration;

use self::figures::{grouped, short_time};
use crate::exit::Exit;
use crate::output::Output;

/// Where to, how hard and for how long.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// What to ask: http://HOST:PORT/PATH, redis://HOST:PORT or grpc://HOST:PORT/SERVICE/METHOD; for a socket in the file
    /// system, unix:/SOCKET: in place of host and port
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080/v1/check")]
    url: String,
    /// Print one JSON document at the end instead
    #[arg(long)]
    json: bool,

    /// Connections kept open
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Load")]
    connections: usize,
    /// Requests under way at once on each connection
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pipeline: usize,
    /// How long to measure
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = time, help_heading = "Load")]
    duration: Duration,
    /// Load before that, which does not count
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = time, help_heading = "Load")]
    warmup: Duration,
    /// Open loop: so many requests a second, whatever the server does; without it, a reply brings the next request
    #[arg(long, value_name = "PER_SECOND", help_heading = "Load")]
    rate: Option<f64>,
    /// How long a connection or a reply may take
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = time, help_heading = "Load")]
    timeout: Duration,
    /// Never sleep: costs a core, and spares the server the work of waking this one
    #[arg(long, help_heading = "Load")]
    spin: bool,

    /// How many different keys
    #[arg(long, value_name = "N", default_value_t = 100_000, help_heading = "Request")]
    keys: u64,
    /// Some keys come more often: the n-th in proportion to n to the power of -S
    #[arg(long, value_name = "S", help_heading = "Request")]
    zipf: Option<f64>,
    /// The body, the command of RESP, or name=value words for gRPC; {key} is a key, the same in the whole request, {keys}
    /// another one at every place
    #[arg(long, value_name = "TEXT", help_heading = "Request")]
    body: Option<String>,
    /// POST, GET ... (GET has no body unless one is given)
    #[arg(long, value_name = "METHOD", default_value = "POST", help_heading = "Request")]
    method: String,
    /// One more header; {key} works here and in the URL too
    #[arg(long, value_name = "NAME:VALUE", value_parser = header, help_heading = "Request")]
    header: Vec<(String, String)>,
    /// Present this token (Authorization: Bearer), but not to redis://
    #[arg(long, value_name = "TOKEN", env = "TOLLGATE_TOKEN", hide_env_values = true, help_heading = "Request")]
    token: Option<String>,
}

const HELP: &str = r#"Keys are key:000000000000 and so on: sixteen bytes, so that requests keep their
length. A reply counts as denied if its status is 429, or if its body says
"allowed":false; any other 2xx is allowed, and everything else an error. RESP
and gRPC say by their first number, or by allowed, whether a request may pass.

Closed loop (without --rate): every connection waits for its reply before it
asks again, so the server sets the pace. It finds the peak, and flatters the
latency: a server that stalls is asked less. Open loop (--rate): requests are due
at fixed times, and latency counts from then. What could not be sent within a
second of that is given up and counted as unsent.

Examples:
  What can it do?
    tollgate bench --url http://127.0.0.1:8080/v1/check
  How fast does it answer at 20,000 a second?
    tollgate bench --rate 20000 --duration 30s
  Few hot keys, pipelined, for a script:
    tollgate bench --keys 1000 --zipf 1.1 --pipeline 16 --json | jq .latency_us
  Another body, and a header:
    tollgate bench --body '{"client_key":"{key}","endpoint":"GET /x","cost":3}' \
      --header 'X-Trace: bench'
  Any other HTTP server:
    tollgate bench --url http://127.0.0.1:8000/ --method GET
  RESP, sixteen commands at once on each connection:
    tollgate bench --url redis://127.0.0.1:6379 --pipeline 16 \
      --body 'CL.THROTTLE {key} 15 30 60'
  gRPC on four connections of 25 streams: a check, and what Envoy asks:
    tollgate bench --url grpc://127.0.0.1:50051 --connections 4 --pipeline 25
    tollgate bench --body 'domain=shop user_id={key}' --url \
      grpc://127.0.0.1:50051/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit

Exit codes:
  0  every request that was sent was answered, allowed or denied
  1  errors happened
  2  wrong usage, or nobody answers there"#;

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map(Duration::from_nanos).map_err(|fault| fault.to_string())
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write NAME:VALUE, such as X-Trace:bench".to_owned()),
    }
}

/// Sends the load and prints.
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

/// One line for whoever waits.
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

/// The address of a server alone means its checks, as it does for `check` and `explain`.
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
    fn a_server_alone_means_its_checks() {
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
