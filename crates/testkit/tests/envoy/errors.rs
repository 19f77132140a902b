//! Errors name the place in the file and the remedy.

use serde_json::Value;
use tollgate_rules::envoy::{self, Duplicates, EnvoyFile};

fn told(text: &str) -> String {
    envoy::read("edge.yaml", text).expect_err("a mistake").to_string()
}

#[test]
fn every_mistake_is_told_with_its_place_and_its_remedy() {
    let text = "domain: edge
descriptors:
- key: ''
- key: a
  value: x
  share_threshold: true
  rate_limit: { unit: minutes, requests_per_unit: 5000000000, burst: 1 }
- key: a
  value: x
- key: b
  rate_limit:
    unit: day
    unlimited: true
    name: own
    replaces: [{ name: own }, { name: '' }]
  metadata: { anything: [goes] }
";
    let shown = told(text);
    let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with("error") || line.contains("--> ")).collect();
    assert_eq!(
        heads,
        [
            "error[blank]: descriptors[0].key is empty",
            " --> edge.yaml:3:8",
            "error[misplaced-field]: descriptors[1].share_threshold needs a pattern: there is only one value to share by",
            " --> edge.yaml:6:20",
            "error[unknown-value]: descriptors[1].rate_limit.unit is `minutes`",
            " --> edge.yaml:7:23",
            "error[out-of-range]: descriptors[1].rate_limit.requests_per_unit is `5000000000`, which is out of range",
            " --> edge.yaml:7:51",
            "error[unknown-field]: unknown field `burst` in descriptors[1].rate_limit",
            " --> edge.yaml:7:63",
            "error[duplicate-descriptor]: the key `a` with the value `x` is there twice",
            " --> edge.yaml:8:3",
            "error[misplaced-field]: descriptors[3].rate_limit.unit together with `unlimited`",
            "  --> edge.yaml:12:11",
            "error[self-reference]: descriptors[3].rate_limit.replaces[0].name is this limit's own name",
            "  --> edge.yaml:15:24",
            "error[blank]: descriptors[3].rate_limit.replaces[1].name is empty",
            "  --> edge.yaml:15:39",
        ],
        "{shown}"
    );
    for help in ["did you mean `minute`?", "write a key", "the first one is on line 4", "allowed: 0 to 4294967295"] {
        assert!(shown.contains(help), "{help} in {shown}");
    }
}

#[test]
fn what_the_published_cases_refuse_is_refused() {
    for case in super::vectors::file()["config_errors"].as_array().expect("a list") {
        let mut config = serde_json::Map::new();
        config.insert("domain".to_owned(), Value::from("d"));
        config.insert("descriptors".to_owned(), case["descriptors"].clone());
        let text = Value::Object(config).to_string();
        assert!(envoy::read("d.yaml", &text).is_err(), "{} is not refused: {text}", case["error"]);
    }
}

#[test]
fn a_file_without_a_domain_or_of_another_kind_says_what_is_missing() {
    assert!(told("descriptors: []").contains("the file has no `domain`"));
    assert!(told("domain: ''").contains("domain is empty"));
    assert!(told("- a").contains("the file should be a map"));
    assert!(told("domain: d\nrules: []").contains("unknown field `rules`"));
    assert!(told("domain: d\ndescriptors: { key: a }").contains("descriptors should be a list of descriptors"));
    let long = format!("domain: d\ndescriptors: [{{ key: a, value: '{}*' }}]", "x".repeat(2000));
    assert!(told(&long).contains("the pattern is too long"), "{}", told(&long));
}

#[test]
fn two_files_of_one_domain_are_refused_or_merged() {
    let first = "domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1 } }]";
    let second = "domain: d\ndescriptors: [{ key: b }]";
    let (a, b) = (EnvoyFile { file: "a.yaml", text: first }, EnvoyFile { file: "b.yaml", text: second });
    let refused = envoy::load(&[a, b], Duplicates::Refuse).expect_err("a domain in two files");
    assert!(refused[0].to_string().starts_with("error[duplicate-domain]: the domain `d` is also in a.yaml"));
    let merged = envoy::load(&[a, b], Duplicates::Merge).expect("they have no key in common");
    let keys: Vec<&str> = merged[0].descriptors.iter().map(|node| node.key.as_str()).collect();
    assert_eq!((merged.len(), keys), (1, vec!["a", "b"]));
    let twice =
        envoy::load(&[a, b, EnvoyFile { file: "c.yaml", text: second }], Duplicates::Merge).expect_err("`b` twice");
    assert_eq!(twice[0].file, "c.yaml");
    assert!(twice[0].to_string().contains("the first one is on line 2 of b.yaml"), "{}", twice[0]);
}

#[test]
fn the_liberties_of_its_yaml_are_taken() {
    let text = "domain: 7
descriptors:
- key: 1
  value: true
  shadow_mode: Yes
  quota_mode: off
  detailed_metric: ~
  rate_limit: { unit: WEEK, requests_per_unit: 3, name: ~ }
- key: 1
  value:
  rate_limit:
  descriptors:
";
    let domain = envoy::read("edge.yaml", text).unwrap_or_else(|report| panic!("{report}"));
    let [first, second] = &domain.descriptors[..] else { panic!("two") };
    assert_eq!((domain.name.as_str(), first.key.as_str(), first.value.as_deref()), ("7", "1", Some("true")));
    assert_eq!((first.shadow_mode, first.quota_mode, first.detailed_metric), (true, false, false));
    assert_eq!((second.value.as_deref(), second.rate_limit.is_none()), (None, true));
}

#[test]
fn trees_may_be_deep() {
    let mut text = "domain: d\ndescriptors:\n".to_owned();
    for level in 0..25 {
        let indent = "  ".repeat(level);
        text += &format!("{indent}- key: k{level}\n{indent}  descriptors:\n");
    }
    assert!(envoy::read("deep.yaml", &text).is_ok());
    assert!(told(&format!("domain: d\ndescriptors: {}", "[".repeat(5000))).contains("nested more than"));
}
