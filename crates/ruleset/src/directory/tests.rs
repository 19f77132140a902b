//! Directories, tested through rules that use them.

use tollgate_core::{Attribute, Request, Secret, Time};
use tollgate_rules::RuleFile;

use super::*;
use crate::{Charges, CompileOptions, NamespaceRules, RuleSet};

const RULES: &str = "ipv6_prefix: 48
rules:
  - { name: plain, key_by: client_key, limit: { requests: 10, window: 1s } }
  - { name: user, key_by: user_id, limit: { requests: 20, window: 1m, algorithm: fixed_window } }
  - { name: tier, match: { tier: [gold, silver] }, key_by: global, limit: { requests: 30, window: 1h, burst: 40 } }
  - { name: org, key_by: org, limit: { algorithm: concurrency, slots: 5 } }
  - { name: region, match: { region: eu }, key_by: [region, ip], missing: share, limit: { requests: 5, window: 1s, algorithm: sliding_window_log } }
  - { name: credit, key_by: [client_key, org], missing: share, quota: { amount: 7, every: never } }
";

fn file() -> RuleFile {
    tollgate_rules::read("rules.yaml", RULES).unwrap_or_else(|report| panic!("{report}"))
}

fn secret() -> Secret {
    CompileOptions::reproducible().secret
}

fn builder() -> DirectoryBuilder {
    Directory::builder(secret(), 48)
}

fn assemble(directories: &[Directory]) -> RuleSet {
    let file = file();
    let part = NamespaceRules { file: &file, rules: &[], directories };
    RuleSet::assemble(&[part], &CompileOptions::reproducible()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn client(client_key: &str, tier: Option<&str>) -> ClientSpec {
    ClientSpec { client_key: client_key.to_owned(), tier: tier.map(str::to_owned), ..ClientSpec::default() }
}

fn change(client_key: &str, rule: &str, requests: u64) -> OverrideSpec {
    OverrideSpec {
        client_key: client_key.to_owned(),
        rule: rule.to_owned(),
        requests: Some(requests),
        ..OverrideSpec::default()
    }
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

/// Units per window of the rule that counts by user.
fn units(set: &RuleSet, id: &str, wall: u64) -> Option<u64> {
    let mut charges = Charges::default();
    set.charges(&user(id), Time::from_nanos(wall), &mut charges).unwrap();
    let place = charges.applied.iter().find(|applied| set.rule(applied.rule).unwrap().name == "user").unwrap().charge;
    place.map(|place| charges.charges[usize::from(place)].limit.requests())
}

/// A deterministic generator, so that failures are reproducible.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const KEYS: [&str; 14] = [
    "user:1",
    "user:2",
    "user:3",
    "key:a",
    "key:b",
    "raw",
    "raw2",
    "ip:192.0.2.1",
    "ip:2001:db8:1::1",
    "org:acme",
    "org:corp",
    "user:",
    "key:user:1",
    "org:eu",
];

fn random_known(draw: &mut Draw, client_key: &str) -> DirectoryRecord {
    let known = draw.below(3) > 0;
    let client = known.then(|| {
        let mut client = client(client_key, None);
        client.tier = (draw.below(2) > 0).then(|| draw.one(&["gold", "silver", "tin"]).to_owned());
        client.org = (draw.below(2) > 0).then(|| draw.one(&["acme", "corp", "eu"]).to_owned());
        for name in ["region", "colour", "size"] {
            if draw.below(3) == 0 {
                client.attributes.push((name.to_owned(), draw.one(&["eu", "us", ""]).to_owned()));
            }
        }
        client
    });
    let overrides = (0..draw.below(4)).map(|_| {
        let rules = ["plain", "user", "tier", "org", "region", "gone"];
        let mut change = change(client_key, draw.one(&rules), draw.below(50) as u64);
        change.burst = (draw.below(3) == 0).then(|| draw.below(90) as u64);
        change.unlimited = draw.below(6) == 0;
        if draw.below(8) == 0 {
            change.requests = Some(u64::MAX);
        }
        change.valid_from_ns = (draw.below(2) == 0).then(|| draw.below(4) as u64);
        change.valid_until_ns = (draw.below(2) == 0).then(|| 3 + draw.below(4) as u64);
        change
    });
    let overrides = overrides.collect();
    let grants = (0..draw.below(3)).map(|_| GrantSpec {
        client_key: client_key.to_owned(),
        rule: draw.one(&["credit", "credit", "user", "gone"]).to_owned(),
        amount: 1 << draw.below(60),
        valid_from_ns: draw.below(6) as u64,
        valid_until_ns: (draw.below(2) == 0).then(|| 3 + draw.below(4) as u64),
        ..GrantSpec::default()
    });
    DirectoryRecord { client_key: client_key.to_owned(), overrides, client, grants: grants.collect() }
}

fn at_once(all: &[DirectoryRecord], draw: &mut Draw) -> Directory {
    let mut builder = builder();
    let turn = draw.below(all.len());
    for known in all[turn..].iter().chain(&all[..turn]) {
        known.overrides.iter().for_each(|change| builder.override_of(change));
        known.grants.iter().for_each(|grant| builder.grant(grant));
    }
    for known in all {
        known.client.iter().for_each(|client| builder.client(client));
    }
    builder.finish()
}

/// Asserts that rules decide the same with two directories.
fn agree(one: &Directory, other: &Directory) {
    let counts = |of: &Directory| (of.clients(), of.overrides(), of.grants());
    assert_eq!(counts(one), counts(other));
    let sets = [one, other].map(|directory| assemble(std::slice::from_ref(directory)));
    for wall in (0..8).map(Time::from_nanos) {
        for first in KEYS {
            for second in ["", "key:b", "ip:2001:db8:1:2::7", "user:2"] {
                let mut request = Request::new().with(Attribute::ClientKey, first);
                match second.split_once(':') {
                    Some(("key", value)) => request.set(Attribute::ApiKey, value),
                    Some(("ip", value)) => request.set(Attribute::Ip, value),
                    Some((_, value)) => request.set(Attribute::UserId, value),
                    None => {}
                }
                let said = sets.each_ref().map(|set| {
                    let mut charges = Charges::default();
                    let read = set.charges(&request, wall, &mut charges);
                    let explained = set.explain(&request, wall).unwrap_or_default();
                    let counts: Vec<usize> = explained.iter().map(|explanation| explanation.overrides).collect();
                    let mut grants: Vec<_> = explained.iter().flat_map(|explanation| &explanation.grants).collect();
                    grants.sort_by_key(|grant| (grant.from, grant.until, grant.units));
                    format!("{read:?} {charges:?} {counts:?} {grants:?} {:?}", set.tier_of(&request))
                });
                assert_eq!(said[0], said[1], "{request:?} at {wall:?}");
            }
        }
    }
}

#[test]
fn incremental_changes_equal_a_full_build() {
    for seed in 1..=60 {
        let mut draw = Draw(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut all: Vec<DirectoryRecord> = KEYS.map(|key| random_known(&mut draw, key)).to_vec();
        let some = draw.below(KEYS.len());
        let mut stepwise = at_once(&all[..=some], &mut draw).with(&all[some + 1..]);
        for _ in 0..draw.below(12) {
            let changed: Vec<usize> = (0..draw.below(4)).map(|_| draw.below(KEYS.len())).collect();
            for place in &changed {
                all[*place] = match draw.below(4) {
                    0 => DirectoryRecord { client_key: KEYS[*place].to_owned(), ..DirectoryRecord::default() },
                    _ => random_known(&mut draw, KEYS[*place]),
                };
            }
            let known: Vec<DirectoryRecord> = changed.iter().map(|place| all[*place].clone()).collect();
            stepwise = stepwise.with(&known);
            if draw.below(5) == 0 {
                stepwise = stepwise.compact();
                assert_eq!(stepwise.delta_len(), 0);
            }
        }
        let whole = at_once(&all, &mut draw);
        agree(&stepwise, &whole);
        agree(&stepwise.compact(), &whole);
    }
}

#[test]
fn a_change_does_not_modify_the_original_directory() {
    let mut builder = builder();
    builder.override_of(&change("user:1", "user", 50));
    let before = builder.finish();
    let known = DirectoryRecord {
        client_key: "user:1".into(),
        overrides: vec![change("user:1", "user", 60)],
        ..DirectoryRecord::default()
    };
    let after = before.with(&[known]);
    let forgotten = after.with(&[DirectoryRecord { client_key: "user:1".into(), ..DirectoryRecord::default() }]);
    let said = [before, after, forgotten].map(|directory| units(&assemble(&[directory]), "1", 0));
    assert_eq!(said, [Some(50), Some(60), Some(20)]);
}

#[test]
fn a_packed_override_is_small() {
    assert_eq!(size_of::<PackedOverride>(), 32);
}

#[test]
fn an_identity_added_and_removed_leaves_the_delta_empty() {
    let base = builder().finish();
    let known = DirectoryRecord {
        client_key: "user:1".into(),
        client: Some(client("user:1", Some("gold"))),
        ..DirectoryRecord::default()
    };
    let there = base.with(&[known]);
    let gone = there.with(&[DirectoryRecord { client_key: "user:1".into(), ..DirectoryRecord::default() }]);
    assert_eq!([&base, &there, &gone].map(Directory::delta_len), [0, 1, 0]);
    assert_eq!((gone.clients(), gone.overrides()), (0, 0));
}

#[test]
fn an_override_begins_and_ends_at_its_instant() {
    let second = 1_000_000_000;
    let dated = OverrideSpec {
        valid_from_ns: Some(5 * second),
        valid_until_ns: Some(9 * second),
        ..change("user:1", "user", 50)
    };
    let mut builder = builder();
    builder.override_of(&dated);
    let packed = builder.finish();
    let known = DirectoryRecord { client_key: "user:1".into(), overrides: vec![dated], ..DirectoryRecord::default() };
    let loose = self::builder().finish().with(&[known]);
    for directory in [packed, loose] {
        let set = assemble(&[directory]);
        assert!(set.has_dated_overrides());
        let at = [5 * second - 1, 5 * second, 9 * second - 1, 9 * second].map(|wall| units(&set, "1", wall));
        assert_eq!(at, [Some(20), Some(50), Some(50), Some(20)]);
    }
    assert!(!assemble(&[self::builder().finish()]).has_dated_overrides());
}

#[test]
fn the_override_that_started_last_wins_then_the_one_added_first() {
    let from = |at: u64, requests| OverrideSpec { valid_from_ns: Some(at), ..change("user:1", "user", requests) };
    let overrides = vec![change("user:1", "user", 11), from(3, 13), from(5, 15), from(5, 16), from(2, 12)];
    let mut builder = builder();
    overrides.iter().for_each(|change| builder.override_of(change));
    let packed = builder.finish();
    let loose = self::builder().finish().with(&[DirectoryRecord {
        client_key: "user:1".into(),
        overrides,
        ..DirectoryRecord::default()
    }]);
    for directory in [packed, loose] {
        let set = assemble(&[directory]);
        let at = [0, 2, 3, 4, 5, 9].map(|wall| units(&set, "1", wall));
        assert_eq!(at, [11, 12, 13, 13, 15, 15].map(Some));
    }
}

#[test]
fn invalid_numbers_leave_the_limit_of_the_rule() {
    let huge = OverrideSpec { burst: Some(u64::MAX), ..change("user:1", "user", 5) };
    for change in [change("user:1", "user", u64::MAX), huge, change("user:1", "user", (1 << 53) + 1)] {
        let mut builder = builder();
        builder.override_of(&change);
        assert_eq!(units(&assemble(&[builder.finish()]), "1", 0), Some(20), "{change:?}");
    }
    let mut builder = builder();
    builder.override_of(&change("user:1", "region", 1 << 53)); // a log cannot be that long
    builder.client(&ClientSpec { attributes: vec![("region".into(), "eu".into())], ..client("user:1", None) });
    let mut charges = Charges::default();
    assemble(&[builder.finish()]).charges(&user("1"), Time::ZERO, &mut charges).unwrap();
    assert!(charges.charges.iter().any(|charge| charge.limit.requests() == 5));
}

#[test]
fn overrides_of_unknown_rules_apply_once_the_rule_exists() {
    let mut builder = builder();
    builder.override_of(&change("user:1", "later", 50));
    let directory = builder.finish();
    assert_eq!(units(&assemble(std::slice::from_ref(&directory)), "1", 0), Some(20));
    let mut renamed = file();
    renamed.rules[1].name = Some("later".to_owned());
    let part = NamespaceRules { file: &renamed, rules: &[], directories: &[directory] };
    let set = RuleSet::assemble(&[part], &CompileOptions::reproducible()).unwrap();
    let mut charges = Charges::default();
    set.charges(&user("1"), Time::ZERO, &mut charges).unwrap();
    assert!(charges.charges.iter().any(|charge| charge.limit.requests() == 50));
}

#[test]
fn specific_identities_win_then_the_file_then_directories_in_order() {
    let mut file = file();
    file.overrides = vec![change("user:1", "user", 31), change("org:acme", "user", 32)];
    file.clients = vec![client("user:2", Some("gold"))];
    let mut first = builder();
    first.override_of(&change("user:1", "user", 41));
    first.override_of(&change("user:3", "user", 43));
    first.client(&client("user:2", Some("silver")));
    first.client(&client("user:4", Some("silver")));
    let mut second = builder();
    second.override_of(&change("user:3", "user", 53));
    second.override_of(&change("user:5", "user", 55));
    let directories = [first.finish(), second.finish()];
    let part = NamespaceRules { file: &file, rules: &[], directories: &directories };
    let set = RuleSet::assemble(&[part], &CompileOptions::reproducible()).unwrap();
    assert_eq!(["1", "3", "5", "6"].map(|id| units(&set, id, 0)), [31, 43, 55, 20].map(Some));
    assert_eq!(["2", "4"].map(|id| set.tier_of(&user(id))), [Some("gold"), Some("silver")]);
    let mut charges = Charges::default();
    set.charges(&user("3").with(Attribute::Org, "acme"), Time::ZERO, &mut charges).unwrap();
    assert!(charges.charges.iter().any(|charge| charge.limit.requests() == 43), "the user before the organisation");
    assert_eq!(set.tiers(), ["gold", "silver"]);
    let told = set.explain(&user("9"), Time::ZERO).unwrap();
    assert_eq!(told.iter().map(|told| told.overrides).collect::<Vec<_>>(), [0, 6, 0, 0, 0, 0]);
}

#[test]
fn attributes_of_an_organisation_apply_to_its_members() {
    let mut builder = builder();
    builder.client(&ClientSpec { org: Some("acme".into()), ..client("user:1", None) });
    builder.client(&ClientSpec { org: Some("acme".into()), ..client("user:2", Some("tin")) });
    builder.client(&client("org:acme", Some("gold")));
    let set = assemble(&[builder.finish()]);
    assert_eq!(["1", "2", "3"].map(|id| set.tier_of(&user(id))), [Some("gold"), Some("tin"), None]);
    assert_eq!(set.tier_of(&user("3").with(Attribute::Org, "acme")), Some("gold"));
}

#[test]
fn a_directory_of_other_rules_is_refused() {
    let file = file();
    for other in [Directory::builder(secret(), 64), Directory::builder(Secret::new([9; 16]), 48)] {
        let mut other = other;
        other.client(&client("user:1", Some("gold")));
        let part = NamespaceRules { file: &file, rules: &[], directories: &[other.finish()] };
        let problems = RuleSet::assemble(&[part], &CompileOptions::reproducible()).unwrap_err();
        assert_eq!(problems.into_parts().0[0].code, "bad-directory");
    }
}

#[test]
fn known_identities_are_found_and_others_are_not() {
    let mut builder = builder();
    for number in 0..20_000 {
        builder.override_of(&change(&format!("user:{number}"), "user", number % 1000 + 100));
    }
    let directory = builder.finish();
    assert_eq!((directory.overrides(), directory.clients()), (20_000, 0));
    assert!(directory.bytes() < 20_000 * 60, "{}", directory.bytes());
    let set = assemble(&[directory]);
    for number in 0..20_000_u64 {
        assert_eq!(units(&set, &number.to_string(), 0), Some(number % 1000 + 100));
        assert_eq!(units(&set, &format!("x{number}"), 0), Some(20));
    }
}

#[test]
fn client_keys_of_one_identity_have_one_spelling() {
    let keys = [
        "ip:192.0.2.1",
        "ip:::ffff:192.0.2.1",
        "ip:192.0.2.2",
        "ip:2001:db8:1::1",
        "ip:2001:DB8:1:ffff::7",
        "ip:2001:db8:1::",
        "ip:2001:db8:2::1",
        "ip:nonsense",
        "user:1",
        "key:1",
        "1",
    ];
    let digest = |key: &str| Identity::of(key).digest(secret(), 48);
    for one in keys {
        let spelled = canonical_client_key(one, 48);
        assert_eq!(digest(&spelled), digest(one), "{one}");
        assert_eq!(canonical_client_key(&spelled, 48), spelled);
        for other in keys {
            assert_eq!(spelled == canonical_client_key(other, 48), digest(one) == digest(other), "{one} {other}");
        }
    }
    assert_eq!(canonical_client_key("ip:2001:DB8:1:ffff::7", 48), "ip:2001:db8:1::");
}
