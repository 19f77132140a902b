//! `tollgate completions SHELL`

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::Output;

/// The shell.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The shell
    shell: Shell,
}

const HELP: &str = r#"Examples:
  bash:
    dir=~/.local/share/bash-completion/completions
    mkdir -p $dir && tollgate completions bash > $dir/tollgate
  zsh:
    tollgate completions zsh > "${fpath[1]}/_tollgate"
  fish:
    tollgate completions fish > ~/.config/fish/completions/tollgate.fish"#;

/// Prints the script.
pub fn run(args: &Args, mut command: Command, out: &mut Output) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tollgate", &mut script);
    out.bytes(&script)?;
    Ok(Exit::Ok)
}
