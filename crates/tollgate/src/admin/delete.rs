//! Deleting, which is alike for everything that has an id.

use anyhow::Result;
use hyper::Method;

use super::admin_client::AdminClient;
use super::change::{DRY_RUN, show};
use crate::exit::Exit;
use crate::output::Output;

/// Whether to delete, and only what.
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    /// Only if it is still this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Show what would be deleted, with everything that goes along; delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: what would be deleted, or nothing
    #[arg(long)]
    json: bool,
}

/// Deletes the thing at a path, of which the last segment is the id.
pub fn delete(
    admin: &mut AdminClient,
    (kind, segments): (&str, &[&str]),
    args: &DeleteArgs,
    out: &mut Output,
) -> Result<Exit> {
    let mut call = admin.call(Method::DELETE, segments);
    if let Some(version) = args.version {
        call = call.if_match(&format!("\"{version}\""));
    }
    if args.dry_run {
        let response = admin.send(&call.query("dry_run", "true"))?;
        show(&response, args.json, DRY_RUN, out)?;
        return Ok(Exit::Ok);
    }
    admin.send(&call)?;
    if !args.json {
        let id = out.palette().strong(segments.last().copied().unwrap_or_default());
        out.line(&format!("deleted {kind} {id}"))?;
    }
    Ok(Exit::Ok)
}
