//! `tollgate envoy-compat`: in the place of envoyproxy/ratelimit, started as that is: by the same variables, on the same
//! ports, over the same files.

mod address;
mod translate;
mod variables;

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use self::translate::{Translated, translate};
use super::serve;
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// What to serve instead of what the variables say.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

const HELP: &str = r#"Reads the environment variables of envoyproxy/ratelimit: HOST, PORT, GRPC_HOST,
GRPC_PORT, GRPC_UDS, DEBUG_HOST, DEBUG_PORT, RUNTIME_ROOT, RUNTIME_SUBDIRECTORY,
RUNTIME_APPDIRECTORY, REDIS_TYPE, REDIS_URL, REDIS_AUTH, REDIS_TLS, LOG_LEVEL,
NEAR_LIMIT_RATIO, SHADOW_MODE, LIMIT_RESPONSE_HEADERS_ENABLED and more; those that mean
nothing here are named at the start. Tollgate's own settings (flags, TOLLGATE_…) beat
them.

Example:
  RUNTIME_ROOT=/srv/runtime_data/current RUNTIME_SUBDIRECTORY=ratelimit \
    REDIS_TYPE=SINGLE REDIS_SOCKET_TYPE=tcp REDIS_URL=10.0.0.1:6379 tollgate envoy-compat

Then gRPC is on 0.0.0.0:8081, POST /json and /healthcheck on 0.0.0.0:8080, and /stats,
/rlconfig and /metrics on 0.0.0.0:6070, as there."#;

/// Serves until a signal ends it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let Translated { settings, remarks, problems } = translate(&variables);
    remarks.iter().for_each(|remark| out.warning(remark));
    if let Some((last, others)) = problems.split_last() {
        others.iter().for_each(|problem| out.error(&anyhow::anyhow!("{problem}")));
        bail!("{last}");
    }
    serve::serve(args.settings.resolve_over(settings, out)?.config, out)
}
