//! Deletion of a resource by its id.

use anyhow::Result;
use hyper::Method;

use super::admin_client::AdminClient;
use super::change::{DRY_RUN, show};
use crate::exit::Exit;
use crate::output::Output;

/// Flags of the delete commands.
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    /// Only if it still has this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Show what would be deleted, including dependent resources; delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: the changes of a dry run, otherwise nothing
    #[arg(long)]
    json: bool,
}

/// Deletes the resource at a path whose last segment is the id.
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
