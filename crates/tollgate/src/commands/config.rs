//! `tollgate config`: what is in effect, and where it comes from.

use anyhow::Result;
use tollgate_config::{Resolved, reference, template};

use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// What to print, and the settings as `tollgate serve` takes them.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print JSON: an object per setting with value, source and place
    #[arg(long, conflicts_with = "reference")]
    json: bool,
    /// Print all settings with their defaults, whatever is set: a file to begin with
    #[arg(long)]
    default: bool,
    /// Print the reference page of all settings, in Markdown
    #[arg(long, conflicts_with = "default")]
    reference: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

const HELP: &str = r#"Takes the flags, environment and file of `tollgate serve`, and prints what it would
run with: a configuration file, with the source of each value as a comment.

Examples:
  What is in effect here, and why?
    tollgate config --config /etc/tollgate/tollgate.yaml
  Would the server start with this file?
    TOLLGATE_CONFIG=tollgate.yaml tollgate config > /dev/null
  A file to begin with:
    tollgate config --default > tollgate.yaml
  One value, for a script:
    tollgate config --json | jq -r .http.value[0]

Exit codes:
  0  these settings can be used
  1  `tollgate serve` would refuse them; they are printed all the same
  2  wrong usage, or settings that cannot be read"#;

/// Prints one of the three.
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
