//! Path patterns against paths.

use super::*;

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text, EscapedSlash::Reject, PathCase::Sensitive).unwrap()
}

#[test]
fn patterns_match_whole_paths() {
    let cases: [(&str, &[&str], &[&str]); 17] = [
        ("/login", &["/login"], &["/login/x", "/logi", "/", "/loginx", "/Login"]),
        ("/", &["/"], &["/a"]),
        ("*", &["/", "/a", "/a/b"], &[]),
        ("/*", &["/", "/a", "/a/b"], &[]),
        ("/api/*", &["/api/x", "/api/x/y", "/api"], &["/apix", "/", "/x/api/y"]),
        ("/api*", &["/api", "/apix", "/api/x/y"], &["/ap", "/x/api"]),
        ("/users/{id}", &["/users/42", "/users/a.b"], &["/users", "/users/42/x", "/user/42"]),
        ("/users/{id}/orders", &["/users/42/orders"], &["/users/orders", "/users/4/2/orders"]),
        ("/users/{id}/*", &["/users/42", "/users/42/x/y"], &["/users"]),
        ("/a/*/z", &["/a/b/z", "/a/b/c/z"], &["/a/z", "/a/b/zz", "/b/a/x/z"]),
        ("/a/*/{id}/z", &["/a/b/7/z", "/a/b/c/7/z"], &["/a/7/z", "/a/b/z"]),
        ("/a*/x/{id}", &["/a/x/7", "/abc/d/x/7"], &["/a/x", "/a/x/7/8"]),
        ("*/export", &["/export", "/a/b/export"], &["/exports", "/export/x"]),
        ("*.png", &["/a.png", "/a/b.png"], &["/a.png/b"]),
        ("/a*/b/*", &["/a/b", "/a/b/c", "/ax/y/b/c"], &["/a/bc"]),
        ("/*/{x}/*/{y}/end", &["/1/2/3/4/end", "/1/2/3/9/4/end"], &["/1/2/3/end", "/1/2/end"]),
        ("/a/**", &["/a", "/a/b"], &["/ab"]),
    ];
    for (text, matching, others) in cases {
        for path in matching {
            assert!(pattern(text).matches(path), "{text} should match {path}");
        }
        for path in others {
            assert!(!pattern(text).matches(path), "{text} should not match {path}");
        }
    }
}

#[test]
fn patterns_are_canonicalised() {
    for text in ["//login", "/login/", "/./login", "/%6Cogin", "/login"] {
        assert_eq!(pattern(text), pattern("/login"), "{text}");
    }
    assert!(pattern("/café").matches("/caf%C3%A9"));
    assert_eq!(pattern("//users//{id}/"), pattern("/users/{id}"));
}

#[test]
fn n05_case_is_ignored_on_request() {
    let fold = |text| PathPattern::parse(text, EscapedSlash::Reject, PathCase::Insensitive).unwrap();
    for path in ["/login", "/LOGIN", "/Login"] {
        assert!(fold("/Login").matches(path) && fold("*ogin").matches(path) && fold("/l*g*N").matches(path), "{path}");
    }
    assert!(!pattern("/Login").matches("/login"));
}

#[test]
fn n08_prefix_rules_still_cover_look_alikes() {
    for path in ["/login%20", "/login+", "/login.", "/login"] {
        assert!(pattern("/login*").matches(path), "{path}");
    }
}

#[test]
fn n11_templates_make_one_of_many() {
    let one = pattern("/users/{id}/orders");
    assert_eq!(one.template(), Some("/users/{id}/orders"));
    assert_eq!(one.template_of("/users/42/orders"), "/users/{id}/orders");
    assert_eq!(pattern("/users/{id}/*").template(), None);
    assert_eq!(pattern("/users/{id}/*").template_of("/users/42/orders/7"), "/users/{id}/orders/7");
    assert_eq!(pattern("/users/{id}/*").template_of("/users/42"), "/users/{id}");
    assert!(matches!(pattern("/api/*").template_of("/api/x"), Cow::Borrowed("/api/x")));
}

#[test]
fn shapes_suit_an_index() {
    let shape = pattern("/users/{id}/files/*");
    assert_eq!(
        shape.segments,
        [Segment::Literal("users".into()), Segment::Param("id".into()), Segment::Literal("files".into())]
    );
    assert_eq!(shape.tail, Tail::Rest);
    assert_eq!(pattern("/").segments, []);
    assert!(matches!(pattern("/a/b*c/d").tail, Tail::Glob(ref glob) if glob.as_str() == "/b*c/d"));
}

#[test]
fn broken_patterns_are_refused() {
    let long = format!("/{}", "a".repeat(2000));
    let cases = [
        "", "login", "/a?b", "/a#b", "/../a", "/a/..", "/a%zz", "/a%2Fb", "/a\\b", "/a\0", "/{", "/}", "/{}", "/a{id}",
        "/{id}x", "/{a b}", "/{a}{b}", "/x*/{id", "/%2e%2E", "*/.%2e", &long,
    ];
    for text in cases {
        assert!(PathPattern::parse(text, EscapedSlash::Reject, PathCase::Sensitive).is_err(), "{text}");
    }
}

#[test]
fn many_stars_do_not_explode() {
    let text = "/*/{x}".repeat(100);
    let path = "/a".repeat(4000);
    assert!(!pattern(&(text + "/*/end")).matches(&path));
}
