//! Lists of the admin API: fetched page by page, printed as a table or as one JSON document.

use anyhow::Result;
use serde_json::Value;
use tollgate_core::Time;

use super::admin_client::AdminClient;
use crate::client::ApiCall;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{TextTable, cell, member, timestamp};

/// Maximum number of entries per page.
const PAGE: u64 = 1000;

/// How much of a list to print, and in which format.
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Print at most N entries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Print all entries
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print JSON: one entry per line, and `next_cursor` if there are more
    #[arg(long)]
    json: bool,
}

/// A list: the response member that holds its entries, and the columns of its table.
pub struct ListTable<'a> {
    member: &'static str,
    empty: &'static str,
    columns: Vec<Column<'a>>,
    now: Time,
}

struct Column<'a> {
    heading: String,
    cell: Box<dyn Fn(&Value) -> String + 'a>,
}

impl<'a> ListTable<'a> {
    /// A list of the entries in `member`, without columns so far; `empty` is printed if there are no entries.
    pub fn new(member: &'static str, empty: &'static str) -> ListTable<'a> {
        ListTable { member, empty, columns: Vec::new(), now: when::now() }
    }

    /// Adds a column with computed cells.
    pub fn column(mut self, heading: &str, cell: impl Fn(&Value) -> String + 'a) -> ListTable<'a> {
        self.columns.push(Column { heading: heading.to_owned(), cell: Box::new(cell) });
        self
    }

    /// Adds a column with one field of the entry.
    pub fn field(self, heading: &str, name: &'static str) -> ListTable<'a> {
        self.column(heading, move |entry| member(entry, name))
    }

    /// Adds a column with a point in time, and `absent` where the entry has none.
    pub fn time(self, heading: &str, name: &'static str, absent: &'static str) -> ListTable<'a> {
        let now = self.now;
        let cell = move |entry: &Value| match entry.get(name).and_then(Value::as_str) {
            Some(text) => timestamp(text, now),
            None => absent.to_owned(),
        };
        self.column(heading, cell)
    }

    /// Adds the namespace of the entry, if the list covers several.
    pub fn namespace_if(self, several: bool) -> ListTable<'a> {
        if several { self.field("NAMESPACE", "namespace") } else { self }
    }

    /// Fetches as many pages as `args` ask for, and prints their entries.
    pub fn print_pages(
        &self,
        admin: &mut AdminClient,
        call: &ApiCall,
        args: &ListArgs,
        out: &mut Output,
    ) -> Result<Exit> {
        let mut table = self.text_table(out);
        let (mut printed, mut cursor): (u64, Option<String>) = (0, None);
        loop {
            let wanted = if args.all { PAGE } else { (args.limit - printed).min(PAGE) };
            let page = call.clone().query("limit", &wanted.to_string()).query_some("cursor", cursor.as_deref());
            let body = admin.send(&page)?.json()?;
            if args.json && cursor.is_none() {
                out.text(&format!("{{\"{}\":[", self.member))?; // not before the first response
            }
            for entry in self.entries(&body) {
                match args.json {
                    true => out.text(&format!("{}\n{entry}", if printed == 0 { "" } else { "," }))?,
                    false => self.add_row(&mut table, entry),
                }
                printed += 1;
            }
            cursor = body.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || out.is_closed() || (!args.all && printed >= args.limit) {
                break;
            }
        }
        match (args.json, printed) {
            (true, _) => out.line(&format!("\n],\"next_cursor\":{}}}", Value::from(cursor)))?,
            (false, 0) => out.line(self.empty)?,
            (false, _) => {
                out.text(&table.to_string())?;
                if cursor.is_some() {
                    out.line(&out.palette().faint("there are more: --limit N or --all"))?;
                }
            }
        }
        Ok(Exit::Ok)
    }

    /// Fetches a list that has no pages, and prints its entries, or the response as it is.
    pub fn print_whole(&self, admin: &mut AdminClient, call: &ApiCall, json: bool, out: &mut Output) -> Result<Exit> {
        let response = admin.send(call)?;
        if json {
            out.line(&response.text())?;
            return Ok(Exit::Ok);
        }
        self.print_entries(self.entries(&response.json()?), out)
    }

    /// Prints entries that are there already.
    pub fn print_entries(&self, entries: &[Value], out: &mut Output) -> Result<Exit> {
        let mut table = self.text_table(out);
        entries.iter().for_each(|entry| self.add_row(&mut table, entry));
        match entries.is_empty() {
            true => out.line(self.empty)?,
            false => out.text(&table.to_string())?,
        }
        Ok(Exit::Ok)
    }

    fn text_table(&self, out: &Output) -> TextTable {
        let palette = out.palette();
        TextTable::new(self.columns.iter().map(|column| column.heading.as_str()), |text| palette.faint(text))
    }

    fn add_row(&self, table: &mut TextTable, entry: &Value) {
        table.row(self.columns.iter().map(|column| cell((column.cell)(entry))));
    }

    fn entries<'v>(&self, body: &'v Value) -> &'v [Value] {
        body.get(self.member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// Who made a change: the name of the token and its id, or only an id.
pub fn author(entry: &Value) -> String {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("author_name"), text("author")) {
        ("", id) => id.to_owned(),
        (name, id) if name == id => id.to_owned(),
        (name, id) => format!("{name} ({id})"),
    }
}
