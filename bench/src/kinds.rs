//! The cost of matching by number of rules, for every kind of pattern.
//!
//! For each kind: ten rules and ten thousand, of which the same one matches. The others differ in the number that the
//! pattern holds, so each of them nearly matches.

use anyhow::anyhow;
use tollgate_core::{Attribute, Request, Time};
use tollgate_rules::RuleFile;
use tollgate_ruleset::{Charges, CompileOptions, RuleSet};

use crate::options::Options;
use crate::peers::KeyedLimiter;
use crate::race::{Course, LimiterSet, RacePlan, race};
use crate::report::{BenchReport, Bound};
use crate::resident::{measure_child, resident};

const FEW: &str = "10 rules";
const MANY: &str = "10,000 rules";
const MANY_RULES: usize = 10_000;
/// The largest resident set of 10,000 patterns, in MB.
const MEGABYTES_MAX: f64 = 50.0;

/// One kind of pattern.
struct Kind {
    name: &'static str,
    /// The condition of the rule with that number.
    condition: fn(usize) -> String,
    /// The attribute that decides, and the value that only rule 7 matches.
    sent: (&'static str, &'static str),
    /// All patterns stand in one rule.
    list: bool,
}

const fn kind(name: &'static str, condition: fn(usize) -> String, sent: (&'static str, &'static str)) -> Kind {
    Kind { name, condition, sent, list: false }
}

const fn list(name: &'static str, condition: fn(usize) -> String, sent: (&'static str, &'static str)) -> Kind {
    Kind { name, condition, sent, list: true }
}

const KINDS: [Kind; 18] = [
    kind("exact value", |n| format!("org: acme-{n}"), ("org", "acme-7")),
    kind("trailing star", |n| format!("org: 'acme-{n}-*'"), ("org", "acme-7-eu")),
    kind("leading star", |n| format!("org: '*-{n}'"), ("org", "acme-7")),
    kind("star in the middle", |n| format!("org: 'acme*-{n}'"), ("org", "acme-eu-7")),
    kind("stars on both sides", |n| format!("org: '*-{n}-*'"), ("org", "acme-7-eu")),
    kind("several stars", |n| format!("org: 'a*-{n}-*u'"), ("org", "acme-7-eu")),
    kind("host", |n| format!("host: '*.tenant{n}.example.com'"), ("host", "api.tenant7.example.com")),
    kind("path", |n| format!("endpoint: '/api/items{n}'"), ("endpoint", "GET /api/items7")),
    kind("path prefix", |n| format!("endpoint: '/api/items{n}/*'"), ("endpoint", "GET /api/items7/x")),
    kind("template", |n| format!("endpoint: '/users/{{id}}/items{n}'"), ("endpoint", "GET /users/42/items7")),
    kind("path with a leading star", |n| format!("endpoint: '/*/items{n}'"), ("endpoint", "GET /shop/items7")),
    kind("path with inner stars", |n| format!("endpoint: '/api/*/items{n}/*'"), ("endpoint", "GET /api/eu/items7/x")),
    kind("network", |n| format!("ip: '{}'", network(n)), ("ip", "10.0.7.9")),
    kind("negation beside a path", |n| format!("org: '!acme-{n}', endpoint: '/items{n}'"), ("endpoint", "GET /items7")),
    list("list of values", |n| format!("acme-{n}"), ("org", "acme-7")),
    list("list of leading stars", |n| format!("'*-{n}'"), ("org", "acme-7")),
    list("list of negations", |n| format!("'!acme-{n}'"), ("org", "other")),
    list("list of networks", |n| format!("'{}'", network(n)), ("ip", "10.0.7.9")),
];

/// Networks of different length: 10.0.0.0/24, then smaller ones beside it.
fn network(number: usize) -> String {
    match number % 3 {
        0 => format!("11.{}.{}.0/25", number / 256 % 256, number % 256),
        1 => format!("10.{}.{}.0/24", number / 256 % 256, number % 256),
        _ => format!("12.{}.{}.16/28", number / 256 % 256, number % 256),
    }
}

impl Kind {
    fn compile(&self, rules: usize) -> anyhow::Result<RuleSet> {
        RuleSet::compile(&[self.read(rules)?], &CompileOptions::reproducible())
            .map_err(|problems| anyhow!("{problems:?}"))
    }

    fn read(&self, rules: usize) -> anyhow::Result<RuleFile> {
        let limit = "key_by: global, limit: { requests: 1000000, window: 1s }";
        let conditions = (0..rules).map(self.condition);
        let text: String = match self.list {
            true => {
                let patterns: Vec<String> = conditions.collect();
                format!("  - {{ name: r, match: {{ {}: [{}] }}, {limit} }}\n", self.sent.0, patterns.join(", "))
            }
            false => conditions
                .enumerate()
                .map(|(number, condition)| format!("  - {{ name: r{number}, match: {{ {condition} }}, {limit} }}\n"))
                .collect(),
        };
        tollgate_rules::read("bench", &format!("rules:\n{text}")).map_err(|report| anyhow!("{report}"))
    }
}

/// One set of rules, always with the same request.
struct Asked {
    rules: RuleSet,
    sent: (&'static str, &'static str),
}

impl KeyedLimiter for Asked {
    type Hand = Charges;

    #[inline]
    fn check(&self, charges: &mut Charges, key: &str) -> bool {
        let custom = [self.sent];
        let request = Request::new().with(Attribute::UserId, key);
        let request = match Attribute::ALL.into_iter().find(|attribute| attribute.name() == self.sent.0) {
            Some(attribute) => request.with(attribute, self.sent.1),
            None => request.with_custom(&custom),
        };
        // Beside the path, another organisation, for the negation.
        let request = if self.sent.0 == "endpoint" { request.with(Attribute::Org, "other") } else { request };
        charges.clear();
        self.rules.charges(&request, Time::ZERO, charges).is_ok() && charges.charges.len() == 1
    }
}

/// Races ten rules against ten thousand, kind by kind.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "RuleSet::charges by kind of pattern, one thread",
        "One rule of 10 matches, and one of 10,000; of lists, one pattern of so many in a single rule. The resident set \
         is that of 10,000 compiled ones, in a process of its own.",
    );
    let plan = RacePlan { rounds: options.rounds, heats: options.heats, threads: &[1] };
    let checks = if options.quick { 100_000 } else { 300_000 };
    let course = Course::new(1_000, checks, 1);
    let mut rows = Vec::new();
    for kind in &KINDS {
        kind.compile(10)?;
        let build = || -> LimiterSet {
            let asked = |rules| Asked { rules: kind.compile(rules).expect("compiled before"), sent: kind.sent };
            vec![(FEW, Box::new(asked(10)) as _), (MANY, Box::new(asked(MANY_RULES)) as _)]
        };
        let standings = race(&build, &course, &plan);
        let (few, many) = (standings.of(FEW, 1).cpu, standings.of(MANY, 1).cpu);
        let ratios = many.over(&few);
        let megabytes: f64 = measure_child(&format!("kind:{}", kind.name))?.trim().parse()?;
        rows.push(vec![
            kind.name.to_owned(),
            format!("{:.0}", few.median()),
            format!("{:.0}", many.median()),
            format!("{:.2}", ratios.median()),
            format!("{megabytes:.1}"),
        ]);
        report.ratio(&format!("charges, 10,000 of 10, {}", kind.name), Bound::AtMost(2.0), &ratios);
        report.number(&format!("MB of 10,000, {}", kind.name), Bound::AtMost(MEGABYTES_MAX), megabytes);
    }
    report.table(&["kind of pattern", "ns, 10", "ns, 10,000", "ratio", "MB, 10,000"], &rows);
    Ok(())
}

/// In the child: compiles 10,000 rules of one kind and prints the growth of the resident set in MB, the file included.
pub fn fill(name: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| anyhow!("no kind {name:?}"))?;
    let before = resident()?;
    let rules = kind.compile(MANY_RULES)?;
    let growth = resident()?.saturating_sub(before);
    writeln!(std::io::stdout(), "{:.2}", growth as f64 / (1 << 20) as f64)?;
    drop(rules);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_of_every_kind_matches() {
        for kind in &KINDS {
            for rules in [10, 500] {
                let asked = Asked { rules: kind.compile(rules).unwrap(), sent: kind.sent };
                assert!(asked.check(&mut Charges::default(), "42"), "{} of {rules}", kind.name);
            }
        }
    }
}
