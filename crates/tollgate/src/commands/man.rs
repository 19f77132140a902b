//! `tollgate man [--dir DIR]`

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;

use crate::exit::Exit;
use crate::output::Output;

/// Where to write.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const HELP: &str = r#"Examples:
  Read the main page:
    tollgate man | man -l -
  Install all pages, then read one:
    tollgate man --dir ~/.local/share/man/man1
    man tollgate-rules-test"#;

/// Prints the main page, or writes all pages.
pub fn run(args: &Args, command: Command, out: &mut Output) -> Result<Exit> {
    let command = command.disable_help_subcommand(true); // `help` needs no page
    match &args.dir {
        Some(dir) => {
            let name = dir.display();
            std::fs::create_dir_all(dir).with_context(|| format!("cannot create {name}"))?;
            clap_mangen::generate_to(command, dir).with_context(|| format!("cannot write into {name}"))?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            out.bytes(&page)?;
        }
    }
    Ok(Exit::Ok)
}
