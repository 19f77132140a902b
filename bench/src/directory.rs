//! The cost of a million clients and a million overrides: memory, start, and the change of one.
//!
//! Every stock is entered in a process of its own, which reports its resident set afterwards and its peak meanwhile.
//! Records are made one at a time, as rows of a database come in, so that nothing but the directory is measured.

use anyhow::{bail, ensure};
use tollgate_core::Secret;
use tollgate_rules::{ClientSpec, OverrideSpec};
use tollgate_ruleset::{CompileOptions, NamespaceRules, RuleSet};
use tollgate_ruleset::{Directory, DirectoryRecord};

use crate::keys;
use crate::report::{BenchReport, progress, short};
use crate::resident::{measure_child, peak, resident};
use crate::stopwatch::Stopwatch;

const ENTRIES: usize = 1_000_000;
/// Identities that changed since the base was built.
const CHANGED: usize = 1_000;

/// Name on the command line, and what is entered.
const STOCKS: [(&str, &str); 4] = [
    ("clients", "clients, tier and one of 10,000 organisations"),
    ("own-orgs", "clients, tier and an organisation of their own"),
    ("overrides", "overrides, one per client, with an end"),
    ("both", "clients and as many overrides of them"),
];

/// Enters every stock in a process of its own.
pub fn run(report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        &format!("Directories of {} entries", short(ENTRIES)),
        "Bytes per entry: what the directory itself counts, the resident set once it is built, and its peak while it \
         is. Times are CPU time: to build it, to change one identity on top of 1,000 changed ones, to fold those into a \
         new base, and to assemble 100 rules with it.",
    );
    let heads = ["entries", "bytes", "resident", "peak", "build, s", "change one, µs", "fold in, s", "assemble, ms"];
    let rows: Vec<Vec<String>> = STOCKS.iter().map(|(name, title)| row(name, title)).collect::<Result<_, _>>()?;
    report.table(&heads, &rows);
    Ok(())
}

fn row(name: &str, title: &str) -> anyhow::Result<Vec<String>> {
    progress(&format!("  entering {name}"));
    let text = measure_child(name)?;
    let figures: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    ensure!(figures.len() == 7, "not a reading: {text:?}");
    Ok(std::iter::once(title.to_owned()).chain(figures).collect())
}

/// In the child: enters one stock and prints its figures. `start` is the peak before.
pub fn fill(name: &str, start: usize) -> anyhow::Result<()> {
    use std::io::Write as _;
    let (clients, overrides, orgs) = match name {
        "clients" => (true, false, 10_000),
        "own-orgs" => (true, false, ENTRIES),
        "overrides" => (false, true, 1),
        "both" => (true, true, 10_000),
        _ => bail!("no candidate {name:?}"),
    };
    let watch = Stopwatch::start();
    let directory = build(clients, overrides, orgs);
    let built = watch.stop().cpu / 1e9;
    let (most, after) = (peak()?.saturating_sub(start), resident()?.saturating_sub(start));
    ensure!(directory.clients() + directory.overrides() == ENTRIES * (usize::from(clients) + usize::from(overrides)));

    let changed: Vec<DirectoryRecord> = (0..CHANGED).map(|number| known(number * 7)).collect();
    let changed = directory.with(&changed);
    let watch = Stopwatch::start();
    let once_more = changed.with(&[known(3)]);
    let change = watch.stop().cpu / 1e3;
    let watch = Stopwatch::start();
    let folded = once_more.compact();
    let fold = watch.stop().cpu / 1e9;
    ensure!(folded.delta_len() == 0 && folded.overrides() == once_more.overrides());

    let rules: String = (0..100)
        .map(|number| {
            format!("  - {{ name: r{number}, match: {{ tier: t{number} }}, limit: {{ requests: 1, window: 1s }} }}\n")
        })
        .collect();
    let file =
        tollgate_rules::read("bench", &format!("rules:\n{rules}")).map_err(|report| anyhow::anyhow!("{report}"))?;
    let watch = Stopwatch::start();
    let part = NamespaceRules { file: &file, rules: &[], directories: std::slice::from_ref(&once_more) };
    let set = RuleSet::assemble(&[part], &CompileOptions { secret: secret(), seed: 0 });
    let assemble = watch.stop().cpu / 1e6;
    ensure!(set.is_ok(), "the rules compile");

    let per = |bytes: usize| bytes as f64 / ENTRIES as f64;
    let (bytes, after, most) = (per(directory.bytes()), per(after), per(most));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{bytes:.1} {after:.1} {most:.1} {built:.2} {change:.0} {fold:.2} {assemble:.2}")?;
    Ok(())
}

fn build(clients: bool, overrides: bool, orgs: usize) -> Directory {
    let mut builder = Directory::builder(secret(), 64);
    for number in 0..ENTRIES {
        if clients {
            builder.client(&client(number, orgs));
        }
        if overrides {
            builder.override_of(&change(number));
        }
    }
    builder.finish()
}

fn client(number: usize, orgs: usize) -> ClientSpec {
    ClientSpec {
        client_key: keys::key(number),
        tier: Some(["free", "paid", "gold"].get(number % 3).copied().unwrap_or("free").to_owned()),
        org: Some(format!("org-{:06}", number % orgs)),
        ..ClientSpec::default()
    }
}

fn change(number: usize) -> OverrideSpec {
    OverrideSpec {
        client_key: keys::key(number),
        rule: format!("r{}", number % 100),
        requests: Some(100 + number as u64 % 1000),
        valid_until_ns: Some(1_900_000_000_000_000_000 + number as u64),
        ..OverrideSpec::default()
    }
}

fn known(number: usize) -> DirectoryRecord {
    DirectoryRecord {
        client_key: keys::key(number),
        client: Some(client(number, 10_000)),
        overrides: vec![change(number)],
        ..DirectoryRecord::default()
    }
}

fn secret() -> Secret {
    CompileOptions::reproducible().secret
}
