//! Trees of valid texts, and rejected texts.

use super::*;

fn scalar(text: &str) -> YamlKind {
    parse(text).unwrap().get("a").unwrap().kind.clone()
}

fn code(text: &str) -> (&'static str, u32, u32) {
    let problems = parse(text).expect_err(text);
    (problems[0].code, problems[0].line, problems[0].column)
}

#[test]
fn the_tree_has_positions() {
    let root = parse("a: 1\nlist:\n  - x: {é: \"q\", b: 2}\n").unwrap();
    let item = match &root.get("list").unwrap().kind {
        YamlKind::List(items) => &items[0],
        other => panic!("{other:?}"),
    };
    assert_eq!((item.span.line, item.span.column, item.span.flow), (3, 5, false));
    let flow = item.get("x").unwrap();
    assert_eq!((flow.span.line, flow.span.column, flow.span.flow), (3, 8, true));
    let b = flow.get("b").unwrap();
    assert_eq!(b.position(), SourcePosition { line: 3, column: 20 }, "columns count characters");
    assert_eq!(flow.get("é").unwrap().kind, YamlKind::Scalar { text: "q".into(), quoted: true });
}

#[test]
fn scalars_stay_text() {
    for (written, text, quoted) in [
        ("a: 010", "010", false),
        ("a: yes", "yes", false),
        ("a: ~", "~", false),
        ("a:", "~", false),
        ("a: '10'", "10", true),
        ("a: \"\\u00e9\\n\"", "é\n", true),
        ("a: |\n  x\n  y\n", "x\ny\n", true),
        ("a: x\n  y", "x y", false),
    ] {
        assert_eq!(scalar(written), YamlKind::Scalar { text: text.into(), quoted }, "{written}");
    }
}

#[test]
fn an_empty_text_is_an_empty_map() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "---\n...\n"] {
        assert_eq!(parse(text).unwrap().kind, YamlKind::Map(Vec::new()), "{text:?}");
    }
}

#[test]
fn anchors_aliases_merges_and_tags_are_rejected_at_their_position() {
    let cases = [
        ("a: &x 1\n", ("yaml-anchor", 1, 4)),
        ("a: 1\nb: *x\n", ("yaml-alias", 2, 4)),
        ("a:\n  <<: {}\n", ("yaml-merge", 2, 3)),
        ("a: !!int 1\n", ("yaml-tag", 1, 4)),
        ("a: !x\n  b: 1\n", ("yaml-tag", 1, 4)),
        ("a: 1\nb: 2\na: 3\n", ("duplicate-key", 3, 1)),
        ("{a: 1, 'a': 2}", ("duplicate-key", 1, 8)),
        ("a: 1\n---\nb: 2\n", ("several-documents", 2, 1)),
        ("[a]: 1\n", ("bad-key", 1, 1)),
        ("{a: 1}: 1\n", ("bad-key", 1, 1)),
        ("~: 1\n", ("bad-key", 1, 1)),
        ("a: [1, 2\n", ("yaml-syntax", 1, 4)),
        ("a: 'x\n", ("yaml-syntax", 2, 1)),
        ("a: b: c\n", ("yaml-syntax", 1, 5)),
    ];
    for (text, expected) in cases {
        assert_eq!(code(text), expected, "{text:?}");
    }
}

#[test]
fn large_maps_take_linear_time() {
    let text: String = (0..200_000).map(|number| format!("k{number}: 1\n")).collect();
    assert!(parse(&text).is_ok());
    assert_eq!(code(&format!("{text}k7: 1\n")), ("duplicate-key", 200_001, 1));
}

#[test]
fn comments_have_positions() {
    let document = parse_with_comments("# one\na: 1 # two\n  # three\n").unwrap();
    let seen: Vec<_> = document.comments.iter().map(|note| (note.text.as_str(), note.own_line, note.at.line)).collect();
    assert_eq!(seen, [(" one", true, 1), (" two", false, 2), (" three", true, 3)]);
}
