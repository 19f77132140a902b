//! Formatting: one layout, the same meaning, all comments kept.

use super::*;
use crate::position::SourcePosition;
use crate::samples::{DESIGN, FIRST, FULL};
use crate::spec::RuleFile;

fn formatted(text: &str) -> String {
    format("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"))
}

/// The file without positions.
fn meaning(text: &str) -> RuleFile {
    let mut file = crate::read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"));
    file.rules.iter_mut().for_each(|rule| rule.at = SourcePosition::default());
    file.clients.iter_mut().for_each(|client| client.at = SourcePosition::default());
    file.overrides.iter_mut().for_each(|change| change.at = SourcePosition::default());
    file.grants.iter_mut().for_each(|grant| grant.at = SourcePosition::default());
    file
}

#[test]
fn the_first_file_in_canonical_layout() {
    let expected = r#"key_by: api_key  # or user_id, ip, "user_id:endpoint"
on_fail: allow
rules:
  - match: { tier: free, endpoint: "POST /api/*" }
    limit: { requests: 10, window: 1s, algorithm: token_bucket, burst: 20 }
  - match: { tier: free, endpoint: "*" }
    limit: { requests: 1000, window: 1h, algorithm: sliding_window }
  - match: { tier: paid, endpoint: "*" }
    limit: { requests: 100, window: 1s, algorithm: token_bucket, burst: 200 }
"#;
    assert_eq!(formatted(FIRST), expected);
}

#[test]
fn comments_and_gaps_move_with_their_entries() {
    let messy = r#"# head of the file


# about the rules
rules:   # right of rules
    # above the first
    -   limit: {window: 1s,requests: 5}   # its limit
        # above the name
        name: 'one'

        description: "a b"
        # below the first
    # above the second

    - {name: two, limit: {requests: 1, window: 1s}} # right of two
# above on_fail
on_fail: deny

# the end
"#;
    let expected = r#"# head of the file

# above on_fail
on_fail: deny

# about the rules
rules:  # right of rules
  # above the first
  # above the name
  - name: "one"

    description: "a b"
    limit: { requests: 5, window: 1s }  # its limit
    # below the first
  # above the second

  - { name: two, limit: { requests: 1, window: 1s } }  # right of two

# the end
"#;
    assert_eq!(formatted(messy), expected);
    assert_eq!(formatted(expected), expected);
}

#[test]
fn long_and_commented_flows_become_blocks() {
    let text = r#"rules:
  - match: { endpoint: ["/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "/ccccccccccccccc"] }
    limit: {
      requests: 5, # five
      window: 1s
    } # done
"#;
    let expected = r#"rules:
  - match:
      endpoint:
        - "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        - "/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        - "/ccccccccccccccc"
    limit:
      requests: 5  # five
      window: 1s
      # done
"#;
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(expected), expected);
}

#[test]
fn the_full_file_keeps_its_layout() {
    let expected = FULL.replace("'eu'", "\"eu\"").replace("   # not this one", "  # not this one");
    assert_eq!(formatted(FULL), expected);
}

#[test]
fn formatting_keeps_the_meaning_and_is_idempotent() {
    for text in [FIRST, DESIGN, FULL] {
        let once = formatted(text);
        assert_eq!(meaning(&once), meaning(text));
        assert_eq!(formatted(&once), once);
        assert_eq!(formatted(&text.replace('\n', "\r\n")), once);
    }
}

#[test]
fn odd_texts_survive() {
    let cases = [
        "",
        "# only a comment\n",
        "a: |\n  x\n\n  y\n",
        "a: |+\n  x\n\n",
        "a: >\n  x\n  y\n",
        "a: \"x\\n y\\u0000\"\n",
        "a:\nb: ~\n",
        "- - 1\n  - 2\n- 3\n",
        "- # c\n  - # d\n    a: 1\n",
        "scalar\n",
        "scalar # c\n",
        "{a: {}, b: [], c: [~]}\n",
        "? a\n: b\n",
        "a: # c\n  # d\n  1\n",
        "a: [1, # c\n 2]\n",
        "\"a b\": 1\n",
        "a: x\n  y\n",
        "---\na: 1\n...\n",
        "a: 'it''s'\n",
        "a:\n- 1\n# c\nb: 2\n",
        "a: |  # c\n  text\nb: 1\n",
        "# a\n\n# b\n\n\na: 1\n\n# c\n",
    ];
    for text in cases {
        let once = formatted(text);
        assert_eq!(formatted(&once), once, "{text:?}");
        let count = |text: &str| yaml::parse_with_comments(text).unwrap().comments.len();
        assert_eq!(count(&once), count(text), "{text:?} {once:?}");
    }
    assert!(format("rules.yaml", "a: [").is_err());
}

#[test]
fn damaged_texts_stay_stable() {
    let mut seed: u64 = 5;
    let mut next = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    let junk =
        ["#", " # x", "\n", "\n\n", "  ", "- ", "{", "}", "[", "]", ",", ":", "\"", "'", "|", "a: 1\n", "# own\n"];
    let mut checked = 0;
    for round in 0..4_000 {
        let sample = [FIRST, DESIGN, FULL][round % 3];
        let mut text = sample.to_owned();
        for _ in 0..=next(3) {
            let at = next(text.len());
            if text.is_char_boundary(at) {
                text.insert_str(at, junk[next(junk.len())]);
            }
        }
        let Ok(once) = format("rules.yaml", &text) else { continue };
        checked += 1;
        assert_eq!(formatted(&once), once, "{text}");
        if crate::read("rules.yaml", &text).is_ok() {
            assert_eq!(meaning(&once), meaning(&text), "{text}");
        }
    }
    assert!(checked > 500, "{checked}");
}
