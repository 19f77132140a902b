//! Parses test tables: the rules, defaults and steps.

use std::path::Path;

use anyhow::Result;
use tollgate_core::Time;
use tollgate_rules::problem::Problems;
use tollgate_rules::yaml::{self, YamlKind, YamlNode};
use tollgate_rules::{Problem, Report};

use super::field::{SuiteField, unknown_field};
use super::step::{REQUEST_FIELDS, StepReader, TestStep, read_request_field};
use super::table::TestTable;
use crate::input::SourceText;
use crate::load::{self, LoadedRules};
use crate::request::OwnedRequest;

/// Default start of a table: 2026-01-01T00:00:00Z, where windows of up to a day start.
const START: Time = Time::from_secs(1_767_225_600);

/// Fields of a table. Other fields belong to the rules, if the table contains them.
const TABLE_FIELDS: [&str; 4] = ["rules", "start", "defaults", "steps"];

/// True for a test table, which has steps, unlike a rules file.
pub fn is_table(text: &str) -> bool {
    yaml::parse(text).is_ok_and(|root| root.get("steps").is_some())
}

/// Reads a table and its rules. An error of type [`Report`] lists all its problems.
pub fn read(path: &Path, source: &SourceText) -> Result<TestTable> {
    let report = |problems| Report::new(&source.name, &source.text, problems);
    let root = yaml::parse(&source.text).map_err(|found| {
        let mut problems = Problems::default();
        problems.extend(found);
        report(problems)
    })?;
    let mut problems = Problems::default();
    let table = read_root(path, source, &root, &mut problems)?;
    match problems.is_empty() {
        true => Ok(table),
        false => Err(report(problems).into()),
    }
}

fn read_root(path: &Path, source: &SourceText, root: &YamlNode, problems: &mut Problems) -> Result<TestTable> {
    let top = SuiteField { node: root, path: String::new() };
    let field = |name: &str| root.get(name).map(|node| SuiteField { node, path: name.to_owned() });
    let loaded = read_rules(path, source, &top, problems)?;
    let mut defaults = OwnedRequest::default();
    for (key, value) in field("defaults").iter().flat_map(|value| value.entries(problems)).collect::<Vec<_>>() {
        if read_request_field(&mut defaults, &key.text, &value, problems).is_none() {
            problems.push(unknown_field(key, &value.path, &REQUEST_FIELDS));
        }
    }
    let start = field("start").and_then(|value| value.time(problems)).unwrap_or(START);
    let namespace = loaded.file.namespace.clone();
    let mut reader =
        StepReader { rules: &loaded.set, namespace: &namespace, defaults, start, time: start, slots: Vec::new() };
    let steps = read_steps(field("steps"), &top, &mut reader, problems);
    Ok(TestTable { rules: loaded.set, namespace, start, steps })
}

fn read_steps(
    steps: Option<SuiteField<'_>>,
    top: &SuiteField<'_>,
    reader: &mut StepReader<'_>,
    problems: &mut Problems,
) -> Vec<TestStep> {
    let items = steps.map(|steps| steps.items(problems)).unwrap_or_default();
    if items.is_empty() && problems.is_empty() {
        let help = "a table needs at least one step: `steps:` and below it `- { at: 0s, expect: allow }`";
        problems.push(top.problem("missing-field", "the table has no steps").help(help));
    }
    items.iter().filter_map(|item| reader.step(item, problems)).collect()
}

/// The rules: a separate file, or the table without its own fields.
fn read_rules(path: &Path, source: &SourceText, top: &SuiteField<'_>, problems: &mut Problems) -> Result<LoadedRules> {
    let entries = top.entries(problems);
    let others = entries.iter().filter(|(key, _)| !TABLE_FIELDS.contains(&key.text.as_str()));
    match top.node.get("rules").map(|node| &node.kind) {
        Some(YamlKind::Scalar { text, .. }) if !yaml::is_blank(text) => {
            others.for_each(|(key, value)| problems.push(unknown_field(key, &value.path, &TABLE_FIELDS)));
            load::rules(&path.parent().unwrap_or(Path::new("")).join(text))
        }
        _ if top.node.span.flow => {
            let help = "write one field per line, without braces around the whole table";
            let mut problems = Problems::default();
            problems.push(
                Problem::error("wrong-layout", top.node.position(), "", "the table is one map in braces").help(help),
            );
            Err(Report::new(&source.name, &source.text, problems).into())
        }
        _ => {
            let own = |name: &str| matches!(name, "start" | "defaults" | "steps");
            let text = without(&source.text, top.node, own);
            let rules = SourceText { name: source.name.clone(), text };
            load::from_source(&rules).map_err(|report| shown_in(source, report).into())
        }
    }
}

/// The text with the lines of some top-level fields blanked: the rest is a rules file whose problems keep their line
/// numbers.
fn without(text: &str, root: &YamlNode, drop: impl Fn(&str) -> bool) -> String {
    let YamlKind::Map(entries) = &root.kind else { return text.to_owned() };
    let starts: Vec<(u32, bool)> = entries.iter().map(|(key, _)| (key.span.line, drop(&key.text))).collect();
    let dropped = |line: u32| starts.iter().rev().find(|(start, _)| *start <= line).is_some_and(|(_, drop)| *drop);
    let text = text.replace("\r\n", "\n").replace('\r', "\n"); // as YAML counts lines
    let lines = text.lines().zip(1..).map(|(line, number)| if dropped(number) { "" } else { line });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The report, with the text of the whole table.
fn shown_in(source: &SourceText, report: Report) -> Report {
    let mut problems = Problems::default();
    problems.extend(report.problems);
    Report::new(&source.name, &source.text, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_fields_and_keeps_lines() {
        let text = "key_by: ip\nsteps:\n  - a\n\nrules:\n  - b # c\nstart: x";
        let root = yaml::parse(text).unwrap();
        let left = without(text, &root, |name| matches!(name, "steps" | "start"));
        assert_eq!(left, "key_by: ip\n\n\n\nrules:\n  - b # c\n\n");
        let text = text.replace('\n', "\r");
        let root = yaml::parse(&text).unwrap();
        assert_eq!(without(&text, &root, |name| matches!(name, "steps" | "start")), left);
    }
}
