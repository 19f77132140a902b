//! A successor equals the set compiled without its predecessor.

use std::sync::Arc;

use tollgate_rules::{Enforcement, RuleSpec};

use super::*;
use crate::Directory;

fn spec(name: &str, number: usize) -> Arc<RuleSpec> {
    let condition = match number % 6 {
        0 => format!("tier: t{}", number % 17),
        1 => format!("org: '*-{}'", number % 13),
        2 => format!("endpoint: '/*/items{}'", number % 11),
        3 => format!("a{}: '*x*'", number % 9),
        4 => format!("ip: '10.{}.0.0/16'", number % 7),
        _ => "tier: '!t3'".to_owned(),
    };
    let mode = if number % 10 == 9 { "off" } else { "enforce" };
    let yaml = format!(
        "rules: [{{ name: {name}, match: {{ {condition} }}, mode: {mode}, key_by: [org, tier], missing: share, \
         limit: {{ requests: {}, window: 1s }} }}]",
        1 + number
    );
    Arc::new(tollgate_rules::read("rules.yaml", &yaml).unwrap().rules.remove(0))
}

fn requests() -> Vec<Request<'static>> {
    let custom: [&'static [(&'static str, &'static str)]; 3] = [&[("a3", "1x2")], &[("a7", "x")], &[]];
    let mut all = Vec::new();
    for number in 0..15_usize {
        let text = |text: String| -> &'static str { text.leak() };
        all.push(
            Request::new()
                .with(Attribute::Tier, text(format!("t{}", number % 17)))
                .with(Attribute::Org, text(format!("acme-{}", number % 13)))
                .with(Attribute::Endpoint, text(format!("GET /shop/items{}", number % 11)))
                .with(Attribute::Ip, text(format!("10.{}.1.1", number % 7)))
                .with_custom(custom[number % 3]),
        );
    }
    all
}

/// Names, buckets and limits: all that a decision depends on.
fn meaning(set: &RuleSet, request: &Request<'_>) -> Vec<(String, Digest, Limit)> {
    let all = charges(set, request);
    let of = |applied: &AppliedRule| {
        let charge = all.charges[usize::from(applied.charge.unwrap())];
        (set.rule(applied.rule).unwrap().name.clone(), charge.bucket, charge.limit)
    };
    all.applied.iter().map(of).collect()
}

#[test]
fn a_set_after_many_changes_is_the_set_compiled_afresh() {
    let file = tollgate_rules::read(
        "rules.yaml",
        "rules: [{ name: own, key_by: global, limit: { requests: 9, window: 1s } }]",
    );
    let mut file = file.unwrap();
    file.file_name = Some("rules.yaml".into());
    let other = RuleFile { namespace: "other".to_owned(), ..file.clone() };
    let options = CompileOptions::reproducible();
    let name = |number: usize| format!("r{number:04}");
    let mut rules: Vec<Arc<RuleSpec>> = (0..400).step_by(2).map(|number| spec(&name(number), number)).collect();
    let (mut set, mut shared) = (RuleSet::empty(), 0);
    for step in 0..160_usize {
        // Changes, removes or adds one rule, or none.
        let at = step * 7919 % rules.len();
        match step % 4 {
            0 => rules[at] = spec(rules[at].name.as_deref().unwrap(), step),
            1 => drop(rules.remove(at)),
            2 => {
                let new = name(step * 31 % 400 / 2 * 2 + 1);
                match rules.binary_search_by(|rule| rule.name.as_deref().cmp(&Some(&new))) {
                    Ok(place) => rules[place] = spec(&new, step),
                    Err(place) => rules.insert(place, spec(&new, step)),
                }
            }
            _ => {}
        }
        // An operator sets, changes and removes modes, for rules of both sources and for unknown ones.
        let mode = [Enforcement::Off, Enforcement::Shadow, Enforcement::Enforce][step / 5 % 3];
        match step % 5 {
            0 => drop(file.modes.insert(name(step * 37 % 400), mode)),
            1 => drop(file.modes.insert("own".to_owned(), mode)),
            2 => drop(file.modes.remove("own")),
            3 => drop(file.modes.pop_first()),
            _ => {}
        }
        let none: &[Directory] = &[];
        let parts = [
            NamespaceRules { file: &other, rules: &[], directories: none },
            NamespaceRules { file: &file, rules: &rules, directories: none },
        ];
        let next = set.compile_successor(&parts, &[], &options).unwrap();
        let before: Vec<_> = set.rules().iter().map(|rule| Arc::as_ptr(&rule.body)).collect();
        shared += next.rules().iter().filter(|rule| before.contains(&Arc::as_ptr(&rule.body))).count();
        let fresh = RuleSet::assemble(&parts, &options).unwrap();
        assert_eq!(next.rules().len(), fresh.rules().len());
        let shown = |set: &RuleSet| -> Vec<_> {
            let of = |rule: &Rule| (rule.name.clone(), rule.spec.clone(), rule.replaced_mode, rule.file_name.clone());
            set.rules().iter().map(of).collect()
        };
        assert_eq!(shown(&next), shown(&fresh), "step {step}");
        for request in requests() {
            assert_eq!(meaning(&next, &request), meaning(&fresh, &request), "step {step}: {request:?}");
        }
        set = next;
    }
    assert!(shared > 150 * 150, "nearly all rules are shared at nearly every step: {shared}");
}
