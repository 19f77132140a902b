//! Long lists, page by page: as a table for people, as one JSON document for programs.

use anyhow::Result;
use serde_json::Value;

use super::admin_client::AdminClient;
use crate::client::ApiCall;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{TextTable, cell};

/// Most entries of a page.
const PAGE: u64 = 1000;

/// How much of a list, and for whom.
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Print at most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Print all of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print JSON: an entry per line, and `next_cursor` if there are more
    #[arg(long)]
    json: bool,
}

/// What a list looks like.
pub struct Look<'a, const N: usize> {
    /// The member of the answer that holds the entries.
    pub member: &'a str,
    /// The headings of the table.
    pub heading: [&'a str; N],
    /// The cells of an entry.
    pub row: &'a dyn Fn(&Value) -> [String; N],
    /// What to say if there is nothing.
    pub empty: &'a str,
}

/// Prints the list that `call` asks for.
pub fn list<const N: usize>(
    admin: &mut AdminClient,
    call: &ApiCall,
    args: &ListArgs,
    look: &Look<'_, N>,
    out: &mut Output,
) -> Result<Exit> {
    let palette = out.palette();
    let mut table = TextTable::new(look.heading, |text| palette.faint(text));
    let (mut shown, mut cursor): (u64, Option<String>) = (0, None);
    loop {
        let wanted = if args.all { PAGE } else { (args.limit - shown).min(PAGE) };
        let page = call.clone().query("limit", &wanted.to_string()).query_some("cursor", cursor.as_deref());
        let response = admin.send(&page)?.json()?;
        if args.json && cursor.is_none() {
            out.text(&format!("{{\"{}\":[", look.member))?; // not before there is an answer
        }
        for entry in response.get(look.member).and_then(Value::as_array).into_iter().flatten() {
            match args.json {
                true => out.text(&format!("{}\n{entry}", if shown == 0 { "" } else { "," }))?,
                false => table.row((look.row)(entry).map(cell)),
            }
            shown += 1;
        }
        cursor = response.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || out.is_closed() || (!args.all && shown >= args.limit) {
            break;
        }
    }
    match (args.json, shown) {
        (true, _) => out.line(&format!("\n],\"next_cursor\":{}}}", Value::from(cursor)))?,
        (false, 0) => out.line(look.empty)?,
        (false, _) => {
            out.text(&table.to_string())?;
            if cursor.is_some() {
                out.line(&palette.faint("there are more: --limit N or --all"))?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// Who did something: the name of a token and its id, or whoever else it was.
pub fn author(entry: &Value) -> String {
    let word = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    match (word("author_name"), word("author")) {
        ("", id) => id.to_owned(),
        (name, id) if name == id => id.to_owned(),
        (name, id) => format!("{name} ({id})"),
    }
}

/// Prints a list that comes whole, as a table.
pub fn table<const N: usize>(
    response: &Value,
    member: &str,
    heading: [&str; N],
    row: impl Fn(&Value) -> [String; N],
    out: &mut Output,
) -> Result<()> {
    let palette = out.palette();
    let entries = response.get(member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut table = TextTable::new(heading, |text| palette.faint(text));
    entries.iter().for_each(|entry| table.row(row(entry).map(cell)));
    match entries.is_empty() {
        true => out.line("none")?,
        false => out.text(&table.to_string())?,
    }
    Ok(())
}
