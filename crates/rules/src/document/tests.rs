//! Trees without a text, and trees of texts.

use super::*;
use crate::position::SourcePosition;
use crate::samples::{DESIGN, FIRST, FULL};
use crate::yaml;

fn read(text: &str) -> (RuleFile, YamlNode) {
    crate::read_with_tree("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"))
}

/// The file without positions.
fn meaning(mut file: RuleFile) -> RuleFile {
    file.rules.iter_mut().for_each(|rule| rule.at = SourcePosition::default());
    file.clients.iter_mut().for_each(|client| client.at = SourcePosition::default());
    file.overrides.iter_mut().for_each(|change| change.at = SourcePosition::default());
    file
}

/// The tree as converted from JSON: only digits, `true` and `false` are plain, and there are no positions.
fn from_json(node: &YamlNode) -> YamlNode {
    match &node.kind {
        YamlKind::Scalar { text, quoted: false }
            if text.parse::<u64>().is_ok() || text == "true" || text == "false" =>
        {
            YamlNode::plain(text)
        }
        YamlKind::Scalar { text, quoted: false } if yaml::is_blank(text) => YamlNode::blank(),
        YamlKind::Scalar { text, .. } => YamlNode::text(text.clone()),
        YamlKind::List(items) => YamlNode::list(items.iter().map(from_json)),
        YamlKind::Map(entries) => {
            YamlNode::map(entries.iter().map(|(key, value)| (key.text.clone(), from_json(value))))
        }
    }
}

fn codes(problems: Vec<Problem>) -> Vec<(&'static str, String)> {
    problems.into_iter().map(|problem| (problem.code, problem.field)).collect()
}

#[test]
fn entries_of_a_file_mean_the_same_alone() {
    for text in [FIRST, DESIGN, FULL] {
        let (file, root) = read(text);
        let settings = NamespaceSettings::from(&file);
        let rules: Vec<_> = rules_of(&root).iter().map(|node| rule(node, &settings).unwrap()).collect();
        let clients: Vec<_> = clients_of(&root).iter().map(|node| client(node).unwrap()).collect();
        let overrides: Vec<_> = overrides_of(&root).iter().map(|node| override_of(node).unwrap()).collect();
        assert_eq!((rules, clients, overrides), (file.rules, file.clients, file.overrides));
    }
}

#[test]
fn a_printed_tree_reads_back_as_the_same_file_in_the_layout_of_fmt() {
    for text in [FIRST, DESIGN, FULL] {
        let (file, root) = read(text);
        let file = meaning(file);
        for tree in [root.clone(), from_json(&root)] {
            let printed = print(&tree);
            assert_eq!(meaning(read(&printed).0), file, "{printed}");
            assert_eq!(crate::format("rules.yaml", &printed).unwrap(), printed);
            assert_eq!(meaning(super::file(&tree).unwrap()), file);
        }
    }
}

#[test]
fn a_tree_in_canonical_layout() {
    let expected = r#"key_by: api_key
on_fail: allow
rules:
  - match: { tier: free, endpoint: "POST /api/*" }
    limit: { requests: 10, window: 1s, algorithm: token_bucket, burst: 20 }
  - match: { tier: free, endpoint: "*" }
    limit: { requests: 1000, window: 1h, algorithm: sliding_window }
  - match: { tier: paid, endpoint: "*" }
    limit: { requests: 100, window: 1s, algorithm: token_bucket, burst: 200 }
"#;
    assert_eq!(print(&from_json(&read(FIRST).1)), expected);
}

/// Any text, as a value and as a key.
#[test]
fn odd_texts_survive_printing() {
    let mut seed = 7_u64;
    let mut draw = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let pieces = [
        "a", "7", "-", ":", ": ", " #", "#", ",", "{", "}", "[", "]", "'", "\"", "\\", "\n", "\r", "\t", " ", "%", "*",
        "&", "!", "|", ">", "?", "@", "`", "~", "null", "true", "1s", "1e3", "0x1", ".", "\u{0}", "\u{85}", "\u{2028}",
        "\u{feff}", "\u{fffe}", "\u{ffff}", "\u{7f}", "é", "🦀", "=", "<<", "---", "...",
    ];
    for _ in 0..5_000 {
        let mut text = || (0..draw(5)).map(|_| pieces[draw(pieces.len())]).collect::<String>();
        let (a, b, c) = (text(), text(), text());
        if b == "<<" {
            continue; // no key, in quotes or without
        }
        let rule = YamlNode::map([
            ("description", YamlNode::text(a.as_str())),
            (
                "match",
                YamlNode::map([("tier", YamlNode::list([YamlNode::text(b.as_str()), YamlNode::plain(c.as_str())]))]),
            ),
        ]);
        let client =
            YamlNode::map([("client_key", YamlNode::text(c.as_str())), (b.as_str(), YamlNode::text(a.as_str()))]);
        let root = YamlNode::map([("rules", YamlNode::list([rule])), ("clients", YamlNode::list([client]))]);
        let printed = print(&root);
        let again = yaml::parse(&printed).unwrap_or_else(|problems| panic!("{problems:?}\n{printed}"));
        let text = |node: Option<&YamlNode>| match node.map(|node| &node.kind) {
            Some(YamlKind::Scalar { text, .. }) => text.clone(),
            other => panic!("{other:?}"),
        };
        let rule = &rules_of(&again)[0];
        let tiers = rule.get("match").unwrap().get("tier").unwrap().items();
        assert_eq!(text(rule.get("description")), a, "{printed}");
        assert_eq!(text(tiers.first()), b, "{printed}");
        assert!(text(tiers.get(1)) == c || yaml::is_blank(&c), "{printed}");
        let client = &clients_of(&again)[0];
        assert_eq!(text(client.get("client_key")), c, "{printed}");
        assert_eq!(text(client.get(&b)), a, "{printed}");
    }
}

#[test]
fn problems_have_paths_of_their_own_and_come_all_at_once() {
    let limit = YamlNode::map([
        ("requests", YamlNode::text("10")),
        ("window", YamlNode::plain(60)),
        ("brust", YamlNode::plain(3)),
    ]);
    let rule_node = YamlNode::map([("name", YamlNode::text("a")), ("limit", limit), ("mode", YamlNode::text("of"))]);
    let problems = rule(&rule_node, &NamespaceSettings::default()).unwrap_err();
    assert!(problems.iter().all(|problem| problem.line == 0));
    assert_eq!(
        codes(problems),
        [
            ("unknown-field", "limit.brust".to_owned()),
            ("wrong-type", "limit.requests".to_owned()),
            ("bad-duration", "limit.window".to_owned()),
            ("unknown-value", "mode".to_owned()),
        ]
    );
}

#[test]
fn single_entries_are_checked_like_files() {
    let zero =
        YamlNode::map([("limit", YamlNode::map([("requests", YamlNode::plain(0)), ("window", YamlNode::text("1s"))]))]);
    let problem = rule(&zero, &NamespaceSettings::default()).unwrap_err().remove(0);
    assert_eq!((problem.code, problem.field.as_str()), ("block-all", "limit"));
    assert_eq!(problem.message, "limit: the rule refuses every request");
    assert!(rule(&zero, &NamespaceSettings { allow_block_all: true, ..NamespaceSettings::default() }).is_ok());

    let problem =
        rule(&YamlNode::map([("name", YamlNode::text("a"))]), &NamespaceSettings::default()).unwrap_err().remove(0);
    assert_eq!((problem.code, problem.message.as_str()), ("missing-field", "the rule has no `limit`"));
    let problem = rule(&YamlNode::list([]), &NamespaceSettings::default()).unwrap_err().remove(0);
    assert_eq!((problem.field.as_str(), problem.message.as_str()), ("", "the rule should be a map, found a list"));
    let problem = client(&YamlNode::map([("client_key", YamlNode::text("a\u{7}"))])).unwrap_err().remove(0);
    assert_eq!((problem.code, problem.field.as_str()), ("bad-name", "client_key"));
    let change = YamlNode::map([("client_key", YamlNode::text("user:1")), ("rule", YamlNode::text("a"))]);
    let problem = override_of(&change).unwrap_err().remove(0);
    assert_eq!((problem.field.as_str(), problem.message.as_str()), ("", "the override changes nothing"));
}

#[test]
fn an_explicit_rule_means_the_same_alone() {
    for text in [FIRST, DESIGN, FULL] {
        let (file, root) = read(text);
        let alone = NamespaceSettings { case: PathCase::default(), ..NamespaceSettings::from(&file) };
        for (node, expected) in rules_of(&root).iter().zip(&file.rules) {
            let read = rule(&explicit(node, &file), &alone).unwrap();
            assert_eq!(read.matches, expected.matches);
            assert_eq!(read.key_by, expected.key_by.clone().or_else(|| file.key_by.clone()));
            assert_eq!(read.on_fail, expected.on_fail.or(file.on_fail));
            let rest = RuleSpec { key_by: None, on_fail: None, case: None, ..read };
            assert_eq!(rest, RuleSpec { key_by: None, on_fail: None, case: None, ..expected.clone() });
        }
    }
}
