//! Clients and overrides of the rules file: listed before those of the database, and read-only here.
//!
//! They are read where they are, in the file that is in force: a million overrides have no second form in memory.

use serde_json::{Value, json};
use tollgate_control::record::{ClientDraft, ClientRecord, OverrideRecord};
use tollgate_control::{ClientFilter, Instant, OverrideFilter, Page};
use tollgate_rules::{ClientSpec, OverrideSpec, RuleFile, SourcePosition};

use crate::call::AdminCall;
use crate::import_export::override_draft;
use crate::plan_exchange;
use crate::problem::AdminProblem;

/// The beginning of the ids of overrides in a file: `file-LINE-COLUMN`, because they have no other name there.
const ID_PREFIX: &str = "file-";

/// The client of the file with this key.
pub(super) fn client(call: &AdminCall<'_>, client_key: &str) -> Option<Value> {
    let file = (call.state.node.rules_file)().filter(|file| file.namespace == call.namespace())?;
    let spec = file.clients.iter().find(|spec| spec.client_key == client_key)?;
    Some(show_client(&file, spec))
}

/// The override of the file with this id.
pub(super) fn overriding(call: &AdminCall<'_>, id: &str) -> Option<Value> {
    id.strip_prefix(ID_PREFIX)?;
    let file = (call.state.node.rules_file)().filter(|file| file.namespace == call.namespace())?;
    let spec = file.overrides.iter().find(|spec| override_id(spec.at) == id)?;
    Some(show_override(&file, spec))
}

/// Refuses to change what comes from a file.
pub(super) fn refuse(what: &str, code: &'static str, entry: &Value) -> AdminProblem {
    let location = entry.get("location").and_then(Value::as_str).unwrap_or("a file");
    let detail = format!("{what} comes from {location}: change it there; the file is read again when it changes.");
    AdminProblem::new(409, code, detail)
}

/// A page that begins with entries of the file and goes on with those of the database.
pub(super) struct MixedPage {
    entries: Vec<Value>,
    limit: usize,
    position: PagePosition,
}

/// Where a page begins, and then where it ends.
enum PagePosition {
    /// After so many entries of the file.
    File(usize),
    /// Likewise, and the page is full.
    MoreInFile(usize),
    /// At a cursor of the database.
    Database(Option<String>),
}

impl MixedPage {
    /// The page that a call asks for.
    pub(super) fn of(page: &Page) -> MixedPage {
        let position = match page.after.as_deref().map(|after| after.split_at_checked(1)) {
            None => PagePosition::File(0),
            Some(Some(("f", count))) => PagePosition::File(count.parse().unwrap_or(0)),
            Some(Some((_, next))) if !next.is_empty() => PagePosition::Database(Some(next.to_owned())),
            Some(_) => PagePosition::Database(None),
        };
        MixedPage { entries: Vec::new(), limit: usize::try_from(page.limit).unwrap_or(usize::MAX), position }
    }

    /// Adds the clients of the file.
    pub(super) fn add_clients(&mut self, file: &RuleFile, filter: &ClientFilter) {
        let is_wanted = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
        let fits = |spec: &&ClientSpec| {
            is_wanted(&filter.tier, &spec.tier)
                && is_wanted(&filter.organisation, &spec.org)
                && filter.prefix.as_ref().is_none_or(|prefix| spec.client_key.starts_with(prefix))
        };
        if is_of(file, filter.namespaces.as_deref()) {
            self.add(file.clients.iter().filter(fits).map(|spec| show_client(file, spec)));
        }
    }

    /// Adds the overrides of the file.
    pub(super) fn add_overrides(&mut self, file: &RuleFile, filter: &OverrideFilter) {
        let holds = |spec: &OverrideSpec, at: Instant| {
            let draft = override_draft(spec);
            draft.valid_from.is_none_or(|from| from <= at) && draft.valid_until > at
        };
        let fits = |spec: &&OverrideSpec| {
            filter.client_key.as_ref().is_none_or(|key| spec.client_key == *key)
                && filter.rule_id.as_ref().is_none_or(|rule| spec.rule == *rule)
                && filter.holds_at.is_none_or(|at| holds(spec, at))
        };
        if is_of(file, filter.namespaces.as_deref()) {
            self.add(file.overrides.iter().filter(fits).map(|spec| show_override(file, spec)));
        }
    }

    fn add(&mut self, entries: impl Iterator<Item = Value>) {
        let PagePosition::File(seen) = self.position else { return };
        let mut entries = entries.skip(seen);
        self.entries.extend(entries.by_ref().take(self.limit));
        if entries.next().is_some() {
            self.position = PagePosition::MoreInFile(seen + self.entries.len());
        } else {
            self.position = PagePosition::Database(None);
        }
    }

    /// What to ask the database for; `None` if the page is full.
    pub(super) fn rest(&self) -> Option<Page> {
        let after = match &self.position {
            PagePosition::File(_) => None, // there is no file, or it is of another namespace
            PagePosition::MoreInFile(_) => return None,
            PagePosition::Database(after) => after.clone(),
        };
        let room = u32::try_from(self.limit.saturating_sub(self.entries.len())).ok().filter(|room| *room > 0)?;
        Some(Page { limit: room, after })
    }

    /// The entries, and the cursor of the next page. `rest` is what the database has: its entries, and where it goes on.
    pub(super) fn end(mut self, rest: Option<(Vec<Value>, Option<String>)>) -> (Vec<Value>, Option<String>) {
        let next = match rest {
            Some((entries, next)) => {
                self.entries.extend(entries);
                next.map(|next| format!("d{next}"))
            }
            None => Some(match self.position {
                PagePosition::MoreInFile(count) => format!("f{count}"),
                _ => "d".to_owned(), // the page is full with the last entry of the file
            }),
        };
        (self.entries, next)
    }
}

fn is_of(file: &RuleFile, namespaces: Option<&[String]>) -> bool {
    namespaces.is_none_or(|names| names.contains(&file.namespace))
}

fn override_id(at: SourcePosition) -> String {
    format!("{ID_PREFIX}{}-{}", at.line, at.column)
}

fn show_client(file: &RuleFile, spec: &ClientSpec) -> Value {
    let ClientSpec { client_key, at, tier, org, plan, attributes } = spec.clone();
    let plan = plan.as_ref().map(plan_exchange::steps);
    let draft = ClientDraft { tier, organisation: org, plan, attributes: attributes.into_iter().collect() };
    let (namespace, created_at, updated_at) = (file.namespace.clone(), Instant(0), Instant(0));
    in_file(ClientRecord { namespace, client_key, draft, created_at, updated_at, version: 0 }.json(), file, at)
}

fn show_override(file: &RuleFile, spec: &OverrideSpec) -> Value {
    let (namespace, override_id, draft) = (file.namespace.clone(), override_id(spec.at), override_draft(spec));
    let (created_at, updated_at) = (Instant(0), Instant(0));
    let record = OverrideRecord { namespace, override_id, draft, created_at, updated_at, version: 0 };
    let mut entry = in_file(record.json(), file, spec.at);
    if let (Value::Object(members), None) = (&mut entry, spec.valid_until_ns) {
        members.insert("valid_until".to_owned(), Value::Null);
    }
    entry
}

/// The record with its place instead of times and version.
fn in_file(mut record: Value, file: &RuleFile, at: SourcePosition) -> Value {
    let location = format!("{}:{}", file.file_name.as_deref().unwrap_or_default(), at.line);
    let rest =
        json!({ "source": "file", "location": location, "created_at": null, "updated_at": null, "version": null });
    if let (Value::Object(members), Value::Object(rest)) = (&mut record, rest) {
        members.extend(rest);
    }
    record
}
