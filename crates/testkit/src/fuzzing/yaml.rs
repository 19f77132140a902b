//! Rules files: any bytes become rules or a report, and both keep their promises.

use tollgate_core::{Attribute, Request, SlotId, Time};
use tollgate_rules::lint::lint_text;
use tollgate_rules::report::Report;
use tollgate_rules::{Pattern, Problem, RuleFile, RuleSpec, Severity, Tail, format, lint, read, read_bytes};
use tollgate_ruleset::{Applicability, Charges, CompileOptions, Explanation, RuleSet};

/// Longest message, help or line of a report, in characters.
const SHOWN_MAX: usize = 2_000;

/// The bytes of a rules file.
pub fn yaml_rules(data: &[u8]) {
    let name = "rules.yaml";
    let text = std::str::from_utf8(data).ok();
    if let Some(text) = text {
        check_layout(name, text);
    }
    let widths = widths(data);
    match read_bytes(name, data) {
        Err(report) => check_report(&report, &widths),
        Ok(file) => {
            check_lints(&file, text.unwrap_or_default(), &widths);
            check_set(&file, &widths);
        }
    }
}

/// The length of each line in characters. Lines end as in YAML: with `\n`, `\r\n` or `\r`.
fn widths(data: &[u8]) -> Vec<usize> {
    let text = String::from_utf8_lossy(data).replace("\r\n", "\n");
    text.split(['\n', '\r']).map(|line| line.chars().count()).collect()
}

/// Formatting is idempotent, and changes nothing but places.
fn check_layout(name: &str, text: &str) {
    let Ok(once) = format(name, text) else {
        return assert!(read(name, text).is_err(), "what cannot be formatted cannot be read");
    };
    assert_eq!(format(name, &once).as_ref(), Ok(&once), "formatted twice");
    match (read(name, text), read(name, &once)) {
        (Ok(before), Ok(after)) => assert_eq!(without_places(before), without_places(after), "{once}"),
        (Err(before), Err(after)) => assert_eq!(codes(&before), codes(&after), "{once}"),
        (before, after) => panic!("{before:?}\n{after:?}\n{once}"),
    }
}

fn without_places(mut file: RuleFile) -> RuleFile {
    let nowhere = Default::default();
    file.rules.iter_mut().for_each(|rule| rule.at = nowhere);
    for plan in &mut file.plans {
        plan.at = nowhere;
        plan.limits.iter_mut().for_each(|rule| rule.at = nowhere);
    }
    file.clients.iter_mut().for_each(|client| client.at = nowhere);
    file.overrides.iter_mut().for_each(|change| change.at = nowhere);
    file.grants.iter_mut().for_each(|grant| grant.at = nowhere);
    file
}

/// The kinds of mistakes; none where there are more than a report shows.
fn codes(report: &Report) -> Vec<&'static str> {
    let mut codes: Vec<&str> = report.problems.iter().map(|problem| problem.code).collect();
    codes.sort_unstable();
    codes.truncate(if report.more > 0 { 0 } else { codes.len() });
    codes
}

fn check_report(report: &Report, widths: &[usize]) {
    assert!((1..=Report::SHOWN).contains(&report.problems.len()), "{} problems", report.problems.len());
    let letters = widths.iter().map(|width| width + 1).sum::<usize>();
    assert!(report.more < letters + 10, "more problems than letters");
    assert!(report.is_fatal());
    for problem in &report.problems {
        assert!(problem.help.as_ref().is_some_and(|help| !help.is_empty()), "no help: {problem:?}");
    }
    report.problems.iter().for_each(|problem| check_problem(problem, widths));
    let shown = report.to_string();
    for line in shown.lines() {
        assert!(line.chars().count() <= SHOWN_MAX, "a line of {} characters: {line:.300}", line.chars().count());
    }
    assert!(!shown.contains(is_unprintable), "{shown:?}");
}

/// Control characters would let a file write to the terminal that shows the report.
fn is_unprintable(letter: char) -> bool {
    (letter.is_control() && letter != '\n') || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn check_problem(problem: &Problem, widths: &[usize]) {
    let Problem { line, column, .. } = *problem;
    assert!(!problem.code.is_empty() && !problem.message.is_empty(), "{problem:?}");
    assert!(problem.message.chars().count() <= SHOWN_MAX, "{} characters", problem.message.chars().count());
    let width = widths.get((line as usize).wrapping_sub(1)).copied();
    let width = width.unwrap_or_else(|| panic!("line {line} is not in the text: {problem:?}"));
    assert!(line >= 1 && column >= 1, "{problem:?}");
    assert!(column as usize <= width + 1, "column {column} of {width} in {problem:?}");
}

fn check_lints(file: &RuleFile, text: &str, widths: &[usize]) {
    let (warnings, _) = lint(file).into_parts();
    let (placed, _) = lint_text(file, text).into_parts();
    assert_eq!(warnings.len(), placed.len());
    for warning in warnings.iter().chain(&placed) {
        assert_eq!(warning.severity, Severity::Warning);
        check_problem(warning, widths);
    }
}

/// A file that was read compiles, except for duplicate rules and numbers that overflow only in sum.
fn check_set(file: &RuleFile, widths: &[usize]) {
    match RuleSet::compile(std::slice::from_ref(file), &CompileOptions::reproducible()) {
        Ok(set) => check_requests(file, &set),
        Err(problems) => {
            for problem in problems.into_parts().0 {
                assert!(["duplicate-rule", "bad-limit"].contains(&problem.code), "{problem:?}");
                check_problem(&problem, widths);
            }
        }
    }
}

/// Evaluates requests that match the first rules, and some that match none, with and without the index.
fn check_requests(file: &RuleFile, set: &RuleSet) {
    let nobody = Request::new().in_namespace(&file.namespace);
    check_request(set, &nobody);
    check_request(set, &nobody.with(Attribute::Ip, "192.0.2.1").with(Attribute::Endpoint, "GET /a/b").peek());
    for rule in file.rules.iter().take(8) {
        let wanted = wanted(rule);
        let custom: Vec<(&str, &str)> = wanted.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = nobody.with_custom(&custom).holding(SlotId(1)).cost(u64::MAX);
        let request = request.with(Attribute::ClientKey, file.clients.first().map_or("x", |client| &client.client_key));
        check_request(set, &request);
        check_request(set, &request.with(Attribute::ApiKey, "k").with(Attribute::Ip, "2001:db8::1").report());
    }
}

/// A value for each condition of a rule, likely one that matches.
fn wanted(rule: &RuleSpec) -> Vec<(String, String)> {
    let value = |pattern: &Pattern| match pattern {
        Pattern::Cidr(cidr) => cidr.to_string().split('/').next().unwrap_or_default().to_owned(),
        other => other.to_string().replace('*', "s"),
    };
    let first = |(name, matcher): &(String, tollgate_rules::Matcher)| {
        Some((name.clone(), value(matcher.any.first()?))).filter(|(name, _)| name != "endpoint")
    };
    let mut wanted: Vec<(String, String)> = rule.matches.attributes.iter().filter_map(first).take(60).collect();
    if let Some(pattern) = rule.matches.endpoint.as_ref().and_then(|endpoint| endpoint.any.first()) {
        let method = pattern.methods.first().map_or("GET", String::as_str);
        let path = pattern.path.as_str().replace(['{', '}'], "p");
        let rest = if pattern.path.tail == Tail::Rest { "/s" } else { "" };
        wanted.push(("endpoint".to_owned(), format!("{method} /{}{rest}", path.replace('*', "s"))));
    }
    wanted
}

/// The index finds exactly the rules that a scan of all rules finds, and the charges are the same.
fn check_request(set: &RuleSet, request: &Request<'_>) {
    let wall = Time::from_secs(1_800_000_000);
    let mut charges = Charges::default();
    let found = set.charges(request, wall, &mut charges);
    let explained = set.explain(request, wall);
    if found.as_ref().is_err_and(|error| error.code == "missing_meter") {
        let unmetered =
            |explanation: &Explanation<'_>| matches!(explanation.applicability, Applicability::Unmetered { .. });
        return assert!(explained.is_ok_and(|explained| explained.iter().any(unmetered)), "{request:?}");
    }
    assert_eq!(found.as_ref().err(), explained.as_ref().err());
    let Ok(explained) = explained else { return assert!(charges.charges.is_empty(), "charged for an error") };
    let mut applied = charges.applied.iter();
    for explanation in &explained {
        let charge = match &explanation.applicability {
            Applicability::Applies { charge, .. } => Some(charge),
            Applicability::Unlimited => None,
            _ => continue,
        };
        let own = applied.next().unwrap_or_else(|| panic!("the index forgot {}", explanation.rule.name));
        assert_eq!(own.rule, explanation.rule.id, "{request:?}");
        let bucket = own.charge.map(|place| charges.charges[usize::from(place)].bucket);
        assert_eq!(bucket, charge.map(|charge| charge.bucket), "{request:?}");
    }
    assert_eq!(applied.next(), None, "the index invented a rule");
    let buckets: Vec<_> = charges.charges.iter().map(|charge| charge.bucket).collect();
    assert!((1..buckets.len()).all(|at| !buckets[..at].contains(&buckets[at])), "a bucket is charged twice");
}
