//! Reads a rules file from text into a [`RuleFile`], and reports every mistake at once.
//!
//! Three steps: [`crate::yaml`] builds the tree, the modules below read its fields strictly into specs, and
//! [`crate::check`] checks the specs. A rule with a mistake skips the third step, so that the mistake is reported once.

mod client;
mod field;
mod fields;
mod grant;
mod limit;
mod matching;
mod meter;
mod penalty;
mod plan;
mod quota;
mod rule;
mod variables;

pub(crate) use client::{CLIENT_FIELDS, OVERRIDE_FIELDS};
pub(crate) use client::{read_client, read_override};
pub use field::{FieldPath, FieldValue};
pub use fields::MapFields;
pub(crate) use grant::{GRANT_FIELDS, read_grant};
pub use limit::LIMIT_FIELDS;
pub(crate) use matching::Spelling;
pub(crate) use penalty::PENALTY_FIELDS;
pub use plan::PLAN_FIELDS;
pub(crate) use plan::{STEP_FIELDS, read_plan};
pub use rule::RULE_FIELDS;
pub(crate) use rule::{COST_FIELDS, read_rule};

use crate::check;
use crate::normalize::Normalize;
use crate::path::EscapedSlash;
use crate::position::SourcePosition;
use crate::problem::{Problem, Problems};
use crate::report::Report;
use crate::spec::RuleFile;
use crate::yaml::{self, YamlKind, YamlNode};

/// Largest number of rules in one file.
pub const RULES_MAX: usize = 100_000;

/// Fields of a file, in the order in which the formatter writes them.
pub(crate) const FILE_FIELDS: &[&str] = &[
    "version",
    "namespace",
    "key_by",
    "on_fail",
    "allow_block_all",
    "allow_shrink",
    "ipv6_prefix",
    "escaped_slash",
    "case",
    "normalize",
    "rules",
    "plans",
    "clients",
    "overrides",
    "grants",
];

/// Reads a rules file.
///
/// ```
/// let file = tollgate_rules::read("rules.yaml", "rules:\n  - limit: { requests: 10, window: 1s }\n").unwrap();
/// assert_eq!(file.rules[0].limit.as_ref().unwrap().capacity(), 10);
///
/// let report = tollgate_rules::read("rules.yaml", "rules:\n  - limit: { requests: 10, window: 60 }\n").unwrap_err();
/// assert!(report.to_string().starts_with("error[bad-duration]: rules[0].limit.window: `60` has no unit"));
/// ```
pub fn read(file_name: &str, text: &str) -> Result<RuleFile, Report> {
    read_with_tree(file_name, text).map(|(file, _)| file)
}

/// Reads a rules file and keeps its tree; [`document`](crate::document) extracts single rules from it.
pub fn read_with_tree(file_name: &str, text: &str) -> Result<(RuleFile, YamlNode), Report> {
    let mut problems = Problems::default();
    match yaml::parse(text) {
        Ok(root) => {
            let file = read_root(&root, &mut problems);
            if problems.is_empty() {
                return Ok((file, root));
            }
        }
        Err(found) => problems.extend(found),
    }
    Err(Report::new(file_name, text, problems))
}

/// Reads a rules file from bytes that may not be text.
pub fn read_bytes(file_name: &str, bytes: &[u8]) -> Result<RuleFile, Report> {
    read(file_name, decode(file_name, bytes)?)
}

/// The text of a file, or a report why the bytes are not text.
pub fn decode<'a>(file_name: &str, bytes: &'a [u8]) -> Result<&'a str, Report> {
    let refuse = |text: &str, code, at, message: &str, help: &str| {
        let mut problems = Problems::default();
        problems.push(Problem::error(code, at, "", message).help(help));
        Err(Report::new(file_name, text, problems))
    };
    let start = SourcePosition { line: 1, column: 1 };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse("", "not-utf8", start, "the file is UTF-16", "save it as UTF-8 without a byte order mark");
    }
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        return refuse(
            "",
            "byte-order-mark",
            start,
            "the file starts with a byte order mark",
            "save it as UTF-8 without one",
        );
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let good = std::str::from_utf8(good).unwrap_or("");
            let line = crate::report::lines(good).count().max(1);
            let column = crate::report::lines(good).last().map_or(0, |line| line.chars().count()) + 1;
            let at = SourcePosition {
                line: u32::try_from(line).unwrap_or(u32::MAX),
                column: u32::try_from(column).unwrap_or(u32::MAX),
            };
            refuse(good, "not-utf8", at, "the file is not UTF-8 from here on", "save it as UTF-8")
        }
    }
}

pub(crate) fn read_root(root: &YamlNode, problems: &mut Problems) -> RuleFile {
    let fields =
        FieldValue { node: root, path: FieldPath::Root("file") }.fields(FILE_FIELDS, "rules: [ ... ]", problems);
    let mut file = RuleFile::default();
    read_settings(&fields, &mut file, problems);
    let mut faults = read_rules(&fields, &mut file, problems);
    faults.extend(read_plans(&fields, &mut file, problems));
    faults.extend(read_clients(&fields, &mut file, problems));
    faults.extend(check::across(&file));
    faults.extend(check::case_duplicates(&file));
    let mut variables = Vec::new();
    variables::problems(root, &mut variables);
    problems.extend(variables);
    problems.extend(faults.into_iter().map(|fault| located(root, fault)));
    file
}

fn read_settings(fields: &MapFields<'_>, file: &mut RuleFile, problems: &mut Problems) {
    const SLASHES: [(&str, EscapedSlash); 2] = [("reject", EscapedSlash::Reject), ("keep", EscapedSlash::Keep)];
    if let Some(version) = fields.get("version") {
        version.integer(1..=1, problems);
    }
    if let Some(name) = fields.get("namespace").and_then(|value| value.text(problems)) {
        file.namespace = name.to_owned();
    }
    file.key_by = fields.get("key_by").and_then(|value| matching::read_key_by(&value, problems));
    file.on_fail = fields.get("on_fail").and_then(|value| value.choice(&rule::ON_FAIL, problems));
    file.allow_block_all = rule::flag(fields, "allow_block_all", problems);
    file.allow_shrink = rule::flag(fields, "allow_shrink", problems);
    if let Some(bits) = fields.get("ipv6_prefix").and_then(|value| value.integer(check::IPV6_PREFIX, problems)) {
        file.ipv6_prefix = u8::try_from(bits).unwrap_or(file.ipv6_prefix);
    }
    if let Some(choice) = fields.get("escaped_slash").and_then(|value| value.choice(&SLASHES, problems)) {
        file.escaped_slash = choice;
    }
    if let Some(choice) = fields.get("case").and_then(|value| value.choice(&rule::CASES, problems)) {
        file.case = choice;
    }
    let forms = Normalize::ALL.map(|form| (form.name(), form));
    if let Some(choice) = fields.get("normalize").and_then(|value| value.choice(&forms, problems)) {
        file.normalize = choice;
    }
}

/// Reads all rules. Returns what [`check`] finds in those that could be read, without positions.
fn read_rules(fields: &MapFields<'_>, file: &mut RuleFile, problems: &mut Problems) -> Vec<Problem> {
    let mut faults = Vec::new();
    // A file may have plans only, or clients only, with rules in a database.
    let may_be_empty =
        fields.get("clients").is_some_and(|clients| !clients.node.items().is_empty()) || fields.get("plans").is_some();
    if may_be_empty && fields.get("rules").is_none() {
        return faults;
    }
    let Some(rules) = fields.required("rules", NO_RULES, problems) else { return faults };
    match &rules.node.kind {
        YamlKind::List(items) if items.is_empty() && (may_be_empty || file.allow_shrink) => {}
        YamlKind::List(items) if items.is_empty() => {
            let help = format!("{NO_RULES}; if no rule at all is meant, write `allow_shrink: true` beside it");
            problems.push(rules.problem("missing-field", "the list of rules is empty").help(help));
        }
        YamlKind::List(items) if items.len() > RULES_MAX => {
            let message = format!("the file has {} rules", items.len());
            problems.push(rules.problem("too-large", message).help(format!("at most {RULES_MAX} rules are read")));
            return faults;
        }
        _ => {}
    }
    let spelling = Spelling { escaped_slash: file.escaped_slash, case: file.case };
    for (index, item) in rules.items("rules", problems).collect::<Vec<_>>().into_iter().enumerate() {
        let before = problems.len();
        let rule = read_rule(item, spelling, problems);
        if problems.len() == before {
            faults.extend(check::rule(&rule, format!("rules[{index}]"), file.allow_block_all));
        }
        file.rules.push(rule);
    }
    faults
}

/// Reads the plans, and adds their rules to those of the file.
fn read_plans(fields: &MapFields<'_>, file: &mut RuleFile, problems: &mut Problems) -> Vec<Problem> {
    let Some(value) = fields.get("plans") else { return Vec::new() };
    let before = problems.len();
    let spelling = Spelling { escaped_slash: file.escaped_slash, case: file.case };
    file.plans = plan::read_plans(&value, spelling, problems);
    file.rules.extend(crate::plan::expand(&file.plans));
    // Only if all were read: one mistake is reported once.
    if problems.len() == before { check::plans(&file.plans) } else { Vec::new() }
}

const NO_RULES: &str = "a file needs at least one rule: `rules:` and below it `- limit: { requests: 10, window: 1s }`";

fn read_clients(fields: &MapFields<'_>, file: &mut RuleFile, problems: &mut Problems) -> Vec<Problem> {
    let mut faults = Vec::new();
    if let Some(clients) = fields.get("clients") {
        for (index, item) in clients.items("clients", problems).collect::<Vec<_>>().into_iter().enumerate() {
            let before = problems.len();
            let client = read_client(item, problems);
            if problems.len() == before {
                faults.extend(check::client(&client, format!("clients[{index}]")));
            }
            file.clients.push(client);
        }
    }
    if let Some(overrides) = fields.get("overrides") {
        for (index, item) in overrides.items("overrides", problems).collect::<Vec<_>>().into_iter().enumerate() {
            let before = problems.len();
            let change = read_override(item, problems);
            if problems.len() == before {
                faults.extend(check::change(&change, format!("overrides[{index}]")));
            }
            file.overrides.push(change);
        }
    }
    if let Some(grants) = fields.get("grants") {
        for (index, item) in grants.items("grants", problems).collect::<Vec<_>>().into_iter().enumerate() {
            let before = problems.len();
            let grant = read_grant(item, problems);
            if problems.len() == before {
                faults.extend(check::grant(&grant, format!("grants[{index}]")));
            }
            file.grants.push(grant);
        }
    }
    faults
}

/// Sets the position of a problem to that of the deepest node on its path.
fn located(root: &YamlNode, mut problem: Problem) -> Problem {
    let mut node = root;
    for step in problem.field.split(['.', '[']) {
        let next = match (step.strip_suffix(']'), &node.kind) {
            (Some(index), YamlKind::List(items)) => index.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(step),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    SourcePosition { line: problem.line, column: problem.column } = node.position();
    problem
}

#[cfg(test)]
mod tests;
