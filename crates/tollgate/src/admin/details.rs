//! One resource as text: a field per line.

use anyhow::Result;
use serde_json::Value;

use super::admin_client::AdminClient;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, timestamp, visible};

/// Fetches one record and prints it: the API's JSON, or else by `print`.
pub fn print_record(
    admin: &mut AdminClient,
    segments: &[&str],
    json: bool,
    out: &mut Output,
    print: impl FnOnce(Value, &mut Output) -> Result<()>,
) -> Result<Exit> {
    let call = admin.get(segments);
    let response = admin.send(&call)?;
    match json {
        true => out.line(&response.text())?,
        false => print(response.json()?, out)?,
    }
    Ok(Exit::Ok)
}

/// Prints the members of an object: first those of `order`, then the others by name; without empty ones.
pub fn details(thing: &Value, order: &[&str], out: &mut Output) -> Result<()> {
    let (palette, now) = (out.palette(), when::now());
    let fields = thing.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut names: Vec<&str> = fields.filter(|name| !is_empty_value(thing.get(*name))).collect();
    names.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(order.len()));
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    for name in names {
        let text = timestamp(&member(thing, name), now);
        out.line(&format!("{}  {}", palette.faint(&format!("{name:<width$}")), visible(&text)))?;
    }
    Ok(())
}

fn is_empty_value(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Object(entries)) => entries.is_empty(),
        Some(Value::Array(values)) => values.is_empty(),
        Some(_) => false,
    }
}
