//! `tollgate config`: the effective settings and their sources.

use anyhow::Result;
use tollgate_config::{Resolved, reference, template};

use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// Output flags, and the settings of `tollgate serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print JSON: an object per setting with value, source and location
    #[arg(long, conflicts_with = "reference")]
    json: bool,
    /// Print all settings with their default values: a starting point for a file
    #[arg(long)]
    default: bool,
    /// Print the reference of all settings, in Markdown
    #[arg(long, conflicts_with = "default")]
    reference: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

const HELP: &str = r#"Takes the flags, environment and file of `tollgate serve`, and prints the settings it
would use: a configuration file, with the source of each value as a comment.

Examples:
  The effective settings and their sources:
    tollgate config --config /etc/tollgate/tollgate.yaml
  Check a file without starting the server:
    TOLLGATE_CONFIG=tollgate.yaml tollgate config > /dev/null
  A new file with all defaults:
    tollgate config --default > tollgate.yaml
  One value, for a script:
    tollgate config --json | jq -r .http.value[0]

Exit codes:
  0  the settings are valid
  1  `tollgate serve` would reject the settings; they are printed anyway
  2  wrong usage, or unreadable settings"#;

/// Prints the settings, the defaults or the reference.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match (args.reference, args.default, args.json) {
        (true, _, _) => out.text(&reference())?,
        (_, true, true) => out.json(&Resolved::default().to_json())?,
        (_, true, false) => out.text(&template())?,
        _ => return effective(args, out),
    }
    Ok(Exit::Ok)
}

fn effective(args: &Args, out: &mut Output) -> Result<Exit> {
    let resolved = args.settings.resolve(out)?;
    match args.json {
        true => out.json(&resolved.to_json())?,
        false => out.text(&resolved.to_yaml())?,
    }
    match resolved.config.check_exposure() {
        Ok(()) => Ok(Exit::Ok),
        Err(mistake) => {
            out.error(&mistake.into());
            Ok(Exit::No)
        }
    }
}
