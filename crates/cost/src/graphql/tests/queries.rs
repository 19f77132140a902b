//! What queries cost.

use super::*;

#[test]
fn fields_count_as_often_as_lists_have_items() {
    let cases = [
        ("{ me }", 1),
        ("{ me { name email } }", 3),
        ("query Q { a: me b: me c: me }", 3),
        ("{ users(first: 10) { name } }", 11),
        ("{ users(first: 10) { posts(last: 5) { title } } }", 1 + 10 * (1 + 5)),
        ("{ users(first: 10, last: 50) { name } }", 51),
        // Servers with `first || 10` return data.
        ("{ users(limit: 0) { name } }", 2),
        ("{ users(first: 0) { posts(first: 5000) { title } } }", 1 + 1 + 5000),
        ("query($n: Int = 0) { users(first: $n) { name } }", 2),
        ("{ users(first: -1) { name } }", 101),
        ("{ users(first: null) { name } }", 101),
        ("{ users(first: $unknown) { name } }", 101),
        ("{ users(first: 99999999999999999999999) { name } }", u64::MAX),
        ("{ users(page: { first: 20, filter: { name: \"x\" } }) { name } }", 21),
        ("{ users(pages: [{ first: 5 }, { first: 20 }]) { name } }", 21),
        ("{ users(name: \"first: 100\") { name } }", 2),
        ("{ __typename }", 1),
        ("{ __schema { types { name } } }", 103),
        ("{ __type(name: \"User\") { name } }", 102),
        ("mutation { like(id: 1) { id } }", 2),
        ("subscription { ticks { price } }", 2),
        ("{ me { ... on User { name } ... { email } ... @include(if: false) { phone } } }", 4),
        ("{ me { ...f } } fragment f on User { name friends(first: 3) { name } }", 1 + 1 + 1 + 3),
    ];
    for (query, wanted) in cases {
        assert_eq!(cost(query, "null"), Ok(wanted), "{query}");
    }
}

#[test]
fn variables_say_how_long_lists_are() {
    let query =
        "query Q($n: Int = 7, $page: Page = { first: 9 }) { users(first: $n) { name } more(page: $page) { id } }";
    for (variables, wanted) in [
        ("null", 1 + 7 + 1 + 9),
        ("{}", 1 + 7 + 1 + 9),
        (r#"{"n":20}"#, 1 + 20 + 1 + 9),
        (r#"{"n":"20"}"#, 1 + 20 + 1 + 9),
        (r#"{"n":null}"#, 1 + 100 + 1 + 9),
        (r#"{"n":2e1}"#, 1 + 20 + 1 + 9),
        (r#"{"page":{"after":"x","inner":[{"first":30}]}}"#, 1 + 7 + 1 + 30),
        (r#"{"page":{"first":[]}}"#, 1 + 7 + 1 + 100),
        (r#"{"page":3}"#, 1 + 7 + 1 + 1),
        (r#"{"n":0,"page":{"first":0}}"#, 1 + 1 + 1 + 1),
    ] {
        assert_eq!(cost(query, variables), Ok(wanted), "{variables}");
    }
}

#[test]
fn depth_and_fields_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "{ a ".repeat(depth), "}".repeat(depth));
    assert_eq!(cost(&nested(10), "null"), Ok(10));
    assert_eq!(cost(&nested(11), "null"), Err(CostErrorKind::GraphqlTooDeep));
    assert_eq!(cost(&nested(100_000 / 5), "null"), Err(CostErrorKind::GraphqlTooDeep));
    let wide = |fields: usize| format!("{{ {} }}", "a ".repeat(fields));
    assert_eq!(cost(&wide(1_000), "null"), Ok(1_000));
    assert_eq!(cost(&wide(1_001), "null"), Err(CostErrorKind::GraphqlTooManyFields));
    assert_eq!(cost(&wide(60_000), "null"), Err(CostErrorKind::GraphqlTooManyFields));
    let inline = format!("{{ {}a{} }}", "... { ".repeat(63), "}".repeat(63));
    assert_eq!(cost(&inline, "null"), Ok(1), "inline fragments are no fields");
    let inline = format!("{{ {}a{} }}", "... { ".repeat(64), "}".repeat(64));
    assert_eq!(cost(&inline, "null"), Err(CostErrorKind::GraphqlTooDeep));
}

#[test]
fn fragments_do_not_explode() {
    // Each spreads the next one twice: 2^20 fields if they were expanded one by one.
    let fragment = |index: usize| format!("fragment f{index} on T {{ ...f{0} ...f{0} }} ", index + 1);
    let chain = |length: usize| {
        let fragments: String = (0..length).map(fragment).collect();
        format!("{{ ...f0 }} {fragments} fragment f{length} on T {{ a }}")
    };
    assert_eq!(cost(&chain(9), "null"), Ok(512));
    assert_eq!(cost(&chain(10), "null"), Err(CostErrorKind::GraphqlTooManyFields));
    assert_eq!(cost(&chain(60), "null"), Err(CostErrorKind::GraphqlTooManyFields));
    // Longer chains would need a deeper stack.
    assert_eq!(cost(&chain(2_000), "null"), Err(CostErrorKind::GraphqlTooDeep));
}

#[test]
fn what_servers_would_refuse_is_refused() {
    for query in [
        "",
        "{",
        "{ }",
        "}",
        "{ a(first: ) }",
        "{ ...f }",
        "{ ...f } fragment f on T { ...f }",
        "{ ...f } fragment f on T { ...g } fragment g on T { a { ...f } }",
        "{ ...f } fragment f on T { a } fragment f on T { b }",
        "fragment f on T { a }",
        "query A { a } query B { b }",
        "type T { a: Int }",
        "{ a } type T { a: Int }",
        "\u{0}",
        "{ a(x: \"unterminated) }",
        "{ a ... on }",
    ] {
        assert_eq!(cost(query, "null"), Err(CostErrorKind::BadGraphql), "{query}");
    }
}

#[test]
fn deep_values_do_not_deepen_the_stack() {
    let deep = format!("{{ a(x: {}1{}) }}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(cost(&deep, "null").is_err());
    let deep = format!("{{ a(x: {}1{}) }}", "{a: ".repeat(10_000), "}".repeat(10_000));
    assert_eq!(cost(&deep, "null"), Err(CostErrorKind::GraphqlTooDeep));
}
