//! `tollgate gateway explain --routes FILE [METHOD] URL`

use std::path::PathBuf;

use anyhow::{Context, Error, Result, bail};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde_json::json;
use tollgate_gateway::{RouteMatch, spec};

use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::visible;

/// A request, and the routes.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The routes file
    #[arg(long, value_name = "FILE")]
    routes: PathBuf,
    /// The method, GET by default, and the URL
    #[arg(required = true, num_args = 1..=2, value_names = ["METHOD", "URL"])]
    request: Vec<String>,
    /// A header field of the request, as curl takes it; several may be given
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Print an object
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Says which route a request takes and why the ones before it are passed over, what the
rules see of it, and what its server gets. Nothing is sent. To see what the rules make of
it, hand the endpoint to `tollgate explain`.

Example:
  tollgate gateway explain --routes routes.yaml POST https://api.example.com/v1/orders \
    -H "X-Version: beta"

Exit codes:
  0  a route is found
  1  no route, or a path with two readings
  2  wrong usage, or an unusable file"#;

/// Explains.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let name = args.routes.display().to_string();
    let bytes = std::fs::read(&args.routes).with_context(|| format!("cannot read {name}"))?;
    let spec = spec::read_bytes(&name, &bytes).map_err(Error::new)?;
    let (method, url) = match args.request.as_slice() {
        [method, url] => (method.as_str(), url),
        [url] => ("GET", url),
        _ => bail!("name a URL"),
    };
    let method = Method::from_bytes(method.as_bytes()).with_context(|| format!("{method} is not a method"))?;
    let uri: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let routed = match spec.route_of(&method, &uri, &headers(&args.headers)?) {
        Ok(routed) => routed,
        Err(error) => {
            match args.json {
                true => out.json(&json!({ "status": 400, "code": error.code(), "detail": error.to_string() }))?,
                false => out.line(&format!("400 {}: {error}", error.code()))?,
            }
            return Ok(Exit::No);
        }
    };
    if args.json {
        let passed: Vec<_> =
            routed.passed_over.iter().map(|(route, why)| json!({ "route": route, "mismatch": why })).collect();
        let route = routed.route.as_ref().map(|route| {
            let RouteMatch { name, upstream, namespace, endpoint, target } = route;
            json!({ "name": name, "upstream": upstream, "namespace": namespace, "endpoint": endpoint, "target": target })
        });
        out.json(&json!({ "passed_over": passed, "route": route }))?;
        return Ok(Exit::from_success(routed.route.is_some()));
    }
    for (route, why) in &routed.passed_over {
        out.line(&format!("   {route}: another {why}"))?;
    }
    match &routed.route {
        None => out.line("404 no_route: no route has these conditions")?,
        Some(route) => {
            let servers = spec.upstreams.iter().find(|upstream| upstream.name == route.upstream);
            let servers: Vec<String> =
                servers.iter().flat_map(|upstream| &upstream.servers).map(ToString::to_string).collect();
            out.line(&format!(">  {}: to {} ({})", route.name, route.upstream, servers.join(", ")))?;
            out.line(&format!("   rules of the namespace {} see  {}", route.namespace, visible(&route.endpoint)))?;
            out.line(&format!("   the server gets  {method} {}", visible(&route.target)))?;
        }
    }
    Ok(Exit::from_success(routed.route.is_some()))
}

fn headers(fields: &[String]) -> Result<HeaderMap> {
    let field = |text: &String| {
        let (name, value) = text.split_once(':').with_context(|| format!("{text}: write NAME: VALUE"))?;
        let name: HeaderName = name.trim().parse().with_context(|| format!("{name} is not the name of a header"))?;
        let value = HeaderValue::from_str(value.trim()).with_context(|| format!("{text} has no usable value"))?;
        Ok((name, value))
    };
    fields.iter().map(field).collect()
}
