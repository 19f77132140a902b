//! stub
use anyhow::Result;
use crate::{exit::Exit, output::Output};
/// stub
#[derive(Debug, clap::Args)]
pub struct Args {}
/// stub
pub fn run(_: &Args, _: &mut Output) -> Result<Exit> { Ok(Exit::Ok) }
