//! Commands that change something: dry runs, idempotency keys, and printing the changes.

use anyhow::{Context, Result};
use rustls::crypto::aws_lc_rs;
use serde_json::{Value, json};

use crate::client::{ApiCall, ApiResponse};
use crate::output::Output;
use tollgate_terminal::{ChangeCounts, Palette, changes_text, member};

/// Flags of commands that change something.
#[derive(Clone, Debug, clap::Args)]
pub struct ChangeArgs {
    /// Validate and show what would change; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the API's JSON
    #[arg(long)]
    pub json: bool,
}

impl ChangeArgs {
    /// The call, as a dry run if the flag is set.
    pub fn call(&self, call: ApiCall) -> ApiCall {
        if self.dry_run { call.query("dry_run", "true") } else { call }
    }

    /// Prints the response: the changes of a dry run, the API's JSON, or else a summary.
    pub fn print(
        &self,
        response: &ApiResponse,
        out: &mut Output,
        summary: impl FnOnce(&ApiResponse, Palette) -> Result<String>,
    ) -> Result<()> {
        // A deletion has no body.
        if let (false, Ok(body)) = (self.json, response.json()) {
            print_warnings(&body, out);
        }
        if self.dry_run {
            show(response, self.json, DRY_RUN, out)?;
        } else if self.json {
            out.line(&response.text())?;
        } else {
            let summary = summary(response, out.palette())?;
            out.line(&summary)?;
        }
        Ok(())
    }

    /// Prints the response to an update of one record, summarised by the fields that differ.
    pub fn print_update(
        &self,
        (kind, id): (&str, &str),
        before: &Value,
        response: &ApiResponse,
        out: &mut Output,
    ) -> Result<()> {
        self.print(response, out, |response, palette| {
            let after = response.json()?;
            let is_changed = before.get("version") != after.get("version");
            let changes: Vec<Value> = is_changed.then(|| change(kind, id, before, &after)).into_iter().collect();
            let (text, counts) = (changes_text(&changes, palette), ChangeCounts::of(&changes));
            Ok(format!("{text}{counts} (version {})", member(&after, "version")))
        })
    }
}

/// Prints the warnings of a response to standard error.
pub fn print_warnings(body: &Value, out: &mut Output) {
    warning_lines(body).iter().for_each(|line| out.warning(line));
}

/// The warnings of a response, as text.
pub fn warning_lines(body: &Value) -> Vec<String> {
    let warnings = body.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let text = |warning: &Value, name: &str| warning.get(name).and_then(Value::as_str).map(str::to_owned);
    let line = |warning: &Value| {
        let rule = text(warning, "rule_id").map(|id| format!("{id}: ")).unwrap_or_default();
        let line = warning.get("line").map(|line| format!("line {line}: ")).unwrap_or_default();
        let help = text(warning, "help").map(|help| format!(" ({help})")).unwrap_or_default();
        let [field, message] = ["field", "message"].map(|name| text(warning, name).unwrap_or_default());
        format!("{line}{rule}{field}: {message}{help}")
    };
    warnings.map(line).collect()
}

/// The changes in a response.
pub fn changes(response: &Value) -> &[Value] {
    response.get("changes").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Prints the changes of a response, their numbers, and `last`.
pub fn show(response: &ApiResponse, json: bool, last: &str, out: &mut Output) -> Result<ChangeCounts> {
    let body = response.json()?;
    let changes = changes(&body);
    let counts = ChangeCounts::of(changes);
    match json {
        true => out.line(&response.text())?,
        false => {
            out.text(&changes_text(changes, out.palette()))?;
            out.line(&format!("{counts}{last}"))?;
        }
    }
    Ok(counts)
}

/// Appended to the numbers of a dry run.
pub const DRY_RUN: &str = " (dry run: nothing was written)";

/// A change in the format of responses, from a resource before and after.
fn change(kind: &str, id: &str, before: &Value, after: &Value) -> Value {
    json!({ "kind": kind, "namespace": after.get("namespace"), "id": id, "before": before, "after": after })
}

/// A random idempotency key.
pub fn idempotency_key() -> Result<String> {
    let mut bytes = [0; 16];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.ok().context("the system has no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
