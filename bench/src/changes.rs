//! The cost of one changed rule among many: CPU until it is in force, and memory of all rules.

use std::sync::Arc;

use anyhow::{anyhow, ensure};
use tollgate_rules::{RuleFile, RuleSpec};
use tollgate_ruleset::{CompileOptions, NamespaceRules, RuleSet};

use crate::report::{BenchReport, Bound};
use crate::resident::{measure_child, resident};
use crate::statistics::Sample;
use crate::stopwatch::Stopwatch;

const MANY: usize = 50_000;
const FEW: usize = 500;
/// Changes measured, one after the other.
const CHANGES: usize = 101;

/// Changes one rule at a time, among few and among many.
pub fn run(report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "One rule changed",
        "CPU time from the changed rule to the next `RuleSet`, which shares what did not change, beside compiling all \
         of them; the median of 101 changes, one of which may build the index anew. The resident set is that of 50,000 \
         compiled rules, in a process of its own.",
    );
    let mut rows = Vec::new();
    for rules in [FEW, MANY] {
        let (whole, change) = measure(rules)?;
        rows.push(vec![rules.to_string(), format!("{whole:.1}"), format!("{:.2}", change.median())]);
        if rules == MANY {
            report.number("ms of CPU, one rule changed among 50,000", Bound::AtMost(20.0), change.median());
        }
    }
    report.table(&["rules", "all, ms", "one changed, ms"], &rows);
    let megabytes: f64 = measure_child("rules:50000")?.trim().parse()?;
    report.number("MB of 50,000 rules", Bound::AtMost(200.0), megabytes);
    Ok(())
}

fn measure(count: usize) -> anyhow::Result<(f64, Sample)> {
    let (file, options) = (RuleFile::default(), CompileOptions::reproducible());
    let mut rules: Vec<Arc<RuleSpec>> = (0..count).map(|number| rule(number, 10)).collect::<Result<_, _>>()?;
    let watch = Stopwatch::start();
    let mut set = assemble(&RuleSet::empty(), &file, &rules, &options)?;
    let whole = watch.stop().cpu / 1e6;
    let mut times = Vec::new();
    for change in 0..CHANGES {
        let at = change * 7919 % count;
        let changed = rule(at, 11 + change as u64)?;
        rules.get_mut(at).into_iter().for_each(|rule| *rule = changed.clone());
        let watch = Stopwatch::start();
        let next = assemble(&set, &file, &rules, &options)?;
        drop(std::mem::replace(&mut set, next));
        times.push(watch.stop().cpu / 1e6);
    }
    ensure!(set.rules().len() == count);
    Ok((whole, times.into_iter().collect()))
}

fn assemble(
    before: &RuleSet,
    file: &RuleFile,
    rules: &[Arc<RuleSpec>],
    options: &CompileOptions,
) -> anyhow::Result<RuleSet> {
    before
        .compile_successor(&[NamespaceRules { file, rules, directories: &[] }], &[], options)
        .map_err(|problems| anyhow!("{problems:?}"))
}

/// One of the rules of a large installation: a tenant's limit on one of its endpoints.
fn rule(number: usize, requests: u64) -> anyhow::Result<Arc<RuleSpec>> {
    let text = format!(
        "rules: [{{ name: r{number:06}, match: {{ org: tenant-{number}, endpoint: 'POST /api/v{}/*' }}, \
         key_by: user_id, limit: {{ requests: {requests}, window: 1s }} }}]",
        number % 5
    );
    let mut file = tollgate_rules::read("bench", &text).map_err(|report| anyhow!("{report}"))?;
    file.rules.pop().map(Arc::new).ok_or_else(|| anyhow!("there is one rule"))
}

/// In the child: compiles so many rules and prints the growth of the resident set in MB.
pub fn fill(count: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let before = resident()?;
    let rules: Vec<Arc<RuleSpec>> = (0..count.parse()?).map(|number| rule(number, 10)).collect::<Result<_, _>>()?;
    let set = assemble(&RuleSet::empty(), &RuleFile::default(), &rules, &CompileOptions::reproducible())?;
    let growth = resident()?.saturating_sub(before);
    writeln!(std::io::stdout(), "{:.2}", growth as f64 / (1 << 20) as f64)?;
    drop((rules, set));
    Ok(())
}
