//! `tollgate envoy-compat`: a drop-in replacement of envoyproxy/ratelimit, with the same variables, ports and files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Error, Result, bail};
use tollgate_config::ratelimit_env::{TranslatedSettings, translate};

use super::serve;
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// Settings that win over the variables.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, help_template = TEMPLATE)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// The description of the variables comes before the settings, whose defaults are those of `serve`.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}";

/// Advice in the server's errors, and its equivalent in terms of the variables.
const ADVICE: [(&str, &str); 4] = [
    ("choose another address with --http HOST:PORT (port 0 picks a free one)", "choose another with HOST and PORT"),
    (
        "choose another address with --grpc HOST:PORT, or none with --grpc off",
        "choose another with GRPC_HOST and GRPC_PORT",
    ),
    (
        "choose another address with --metrics HOST:PORT, or none with --metrics off",
        "choose another with DEBUG_HOST and DEBUG_PORT",
    ),
    ("correct `store`", "correct REDIS_URL"),
];

const HELP: &str = r#"Reads the environment variables of envoyproxy/ratelimit: HOST, PORT, GRPC_HOST,
GRPC_PORT, GRPC_UDS, DEBUG_HOST, DEBUG_PORT, RUNTIME_ROOT, RUNTIME_SUBDIRECTORY,
RUNTIME_APPDIRECTORY, REDIS_TYPE, REDIS_URL, REDIS_AUTH, REDIS_TLS, LOG_LEVEL,
NEAR_LIMIT_RATIO, SHADOW_MODE, LIMIT_RESPONSE_HEADERS_ENABLED and more; unsupported
ones are reported at the start. Tollgate's own settings (flags, TOLLGATE_…) win over
them. The defaults below are those of `tollgate serve`; this command uses other
addresses, and has no admin API and no database.

Example:
  RUNTIME_ROOT=/srv/runtime_data/current RUNTIME_SUBDIRECTORY=ratelimit \
    REDIS_TYPE=SINGLE REDIS_SOCKET_TYPE=tcp REDIS_URL=10.0.0.1:6379 tollgate envoy-compat

gRPC is on 0.0.0.0:8081, POST /json and /healthcheck are on 0.0.0.0:8080, and /stats,
/rlconfig and /metrics on 0.0.0.0:6070, as in envoyproxy/ratelimit."#;

/// Runs the server until a signal stops it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let TranslatedSettings { settings, remarks, problems } = translate(&variables);
    remarks.iter().for_each(|remark| out.warning(remark));
    if let Some((last, others)) = problems.split_last() {
        others.iter().for_each(|problem| out.error(&anyhow::anyhow!("{problem}")));
        bail!("{last}");
    }
    let theirs = settings.get("envoy_config").map(PathBuf::from);
    let config = args.settings.resolve_over(settings, out)?.config;
    if let Some(path) = theirs.filter(|path| config.envoy.config.as_ref() == Some(path) && !path.is_dir()) {
        let path = path.display();
        bail!("there is no directory {path}: it is RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY; set them");
    }
    serve::serve(config, out).map_err(with_ratelimit_names)
}

fn with_ratelimit_names(error: Error) -> Error {
    let text = format!("{error:#}");
    let renamed = ADVICE.iter().fold(text.clone(), |text, (from_go, theirs)| text.replace(from_go, theirs));
    if renamed == text { error } else { Error::msg(renamed) }
}
