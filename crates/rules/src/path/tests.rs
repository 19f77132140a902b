//! Rows N01 to N08 of the hostile paths; canonical paths stay canonical.

use super::*;

fn canonical(raw: &str) -> Result<String, PathError> {
    canonical_path(raw, EscapedSlash::Reject).map(Cow::into_owned)
}

#[test]
fn n01_one_spelling_of_slashes_and_dots() {
    let spellings = [
        "/login",
        "/login/",
        "//login",
        "/./login",
        "/x/../login",
        "/login/.",
        "///login///",
        "/login/x/..",
        "/%2e/login",
        "/x/%2E%2e/login",
        "/login?next=/",
        "/login#top",
        "/login/?a=b/../c",
        "/a/b/../../login",
    ];
    for raw in spellings {
        assert_eq!(canonical(raw).as_deref(), Ok("/login"), "{raw}");
    }
    for raw in ["/", "//", "/.", "/x/..", "/?a", "/./", "/#"] {
        assert_eq!(canonical(raw).as_deref(), Ok("/"), "{raw}");
    }
}

#[test]
fn n02_unreserved_is_decoded_once() {
    let cases = [
        ("/%6Cogin", "/login"),
        ("/%6cogin", "/login"),
        ("/%256Cogin", "/%256Cogin"),
        ("/%7euser", "/~user"),
        ("/a%3bb", "/a%3Bb"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/café", "/caf%C3%A9"),
        ("/a b", "/a%20b"),
        ("/{id}", "/%7Bid%7D"),
        ("/a\"<>^`|", "/a%22%3C%3E%5E%60%7C"),
    ];
    for (raw, expected) in cases {
        assert_eq!(canonical(raw).as_deref(), Ok(expected), "{raw}");
    }
}

#[test]
fn every_character_of_a_segment_has_one_spelling() {
    for (plain, escaped) in "!$&'()+,=:@".chars().map(|letter| (letter, format!("%{:02x}", u32::from(letter)))) {
        let expected = format!("/users/{plain}me");
        for raw in [expected.clone(), format!("/users/{escaped}me"), format!("/users/{}me", escaped.to_uppercase())] {
            assert_eq!(canonical(&raw).as_deref(), Ok(&*expected), "{raw}");
        }
    }
    // A star is a wildcard of patterns.
    for (raw, expected) in [("/logs-*", "/logs-%2A"), ("/%2a", "/%2A")] {
        assert_eq!(canonical(raw).as_deref(), Ok(expected), "{raw}");
    }
    // A semicolon begins a parameter, its escape is a letter.
    assert_eq!(canonical("/a;v=1").as_deref(), Ok("/a;v=1"));
    assert_eq!(canonical("/a%3bv%3d1").as_deref(), Ok("/a%3Bv=1"));
}

#[test]
fn a_star_of_a_pattern_stays_and_an_escaped_one_is_a_letter() {
    let pattern = |text| canonical_pattern(text, EscapedSlash::Reject).map(Cow::into_owned);
    assert_eq!(pattern("//a*/%2a/%40*").as_deref(), Ok("/a*/%2A/@*"));
    assert_eq!(pattern("/c%2b+/*").as_deref(), Ok("/c++/*"));
}

/// A server may take `+` for a space, so it is not undone for it.
#[test]
fn a_server_gets_plus_and_star_as_they_were_written() {
    for (raw, expected) in
        [("/c%2b%2B", "/c%2B%2B"), ("/a+b", "/a+b"), ("//a+b/*/%2a/%40", "/a+b/*/%2A/@"), ("/x/../%61+", "/a+")]
    {
        let forwarded = forwarded_path(raw, EscapedSlash::Reject);
        assert_eq!(forwarded.as_deref(), Ok(expected), "{raw}");
        assert_eq!(canonical(&forwarded.unwrap()), canonical(raw), "{raw}");
    }
}

#[test]
fn n03_escaped_slashes_are_refused_or_kept() {
    let cases = [
        ("/login%2F", "/login%2F"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%5Cb", "/a%5Cb"),
        ("/a\\b", "/a%5Cb"),
        ("/a%2F..%2Fb", "/a%2F..%2Fb"),
    ];
    for (raw, kept) in cases {
        assert_eq!(canonical(raw), Err(PathError::EscapedSlash), "{raw}");
        assert_eq!(canonical_path(raw, EscapedSlash::Keep).as_deref(), Ok(kept), "{raw}");
    }
}

#[test]
fn n05_case_is_kept() {
    assert_eq!(canonical("/LOGIN").as_deref(), Ok("/LOGIN"));
}

#[test]
fn n07_what_is_not_text_is_refused() {
    let cases = [
        ("/login%00", PathError::Control),
        ("/login\0", PathError::Control),
        ("/a%0d%0ab", PathError::Control),
        ("/a\nb", PathError::Control),
        ("/a%7F", PathError::Control),
        ("/%C2%85", PathError::Control),
        ("/%ff", PathError::NotUtf8),
        ("/%c0%ae", PathError::NotUtf8),
        ("/%ed%a0%80", PathError::NotUtf8),
        ("/%c3é", PathError::NotUtf8),
        ("/%zz", PathError::BadEscape),
        ("/%u006c", PathError::BadEscape),
        ("/%", PathError::BadEscape),
        ("/%4", PathError::BadEscape),
        ("/%+1", PathError::BadEscape),
        ("/..", PathError::AboveRoot),
        ("/a/../../b", PathError::AboveRoot),
        ("/%2e%2e/etc", PathError::AboveRoot),
        ("", PathError::NotAbsolute),
        ("login", PathError::NotAbsolute),
        ("?a", PathError::NotAbsolute),
    ];
    for (raw, error) in cases {
        assert_eq!(canonical(raw), Err(error), "{raw:?}");
    }
}

#[test]
fn n08_look_alikes_stay_distinct() {
    for (raw, expected) in
        [("/login%20", "/login%20"), ("/login+", "/login+"), ("/login.", "/login."), ("/...", "/...")]
    {
        assert_eq!(canonical(raw).as_deref(), Ok(expected), "{raw}");
    }
}

#[test]
fn n14_absolute_form_is_refused() {
    assert_eq!(canonical("http://other/login"), Err(PathError::NotAbsolute));
    assert_eq!(Endpoint::parse("GET http://other/login", EscapedSlash::Reject), Err(PathError::NotAbsolute));
}

#[test]
fn canonical_paths_are_borrowed() {
    for raw in
        ["/", "/login", "/a/b.c/~d", "/a%20b", "/x/.hidden/..a/...", "/login?next=%2F", "/a+b,c;d=e:f@g!$&'()%2A"]
    {
        assert!(matches!(canonical_path(raw, EscapedSlash::Reject), Ok(Cow::Borrowed(_))), "{raw}");
    }
}

#[test]
fn length_is_capped_on_both_sides() {
    let longest = format!("/{}", "a".repeat(PATH_BYTES_MAX - 1));
    assert!(canonical(&longest).is_ok());
    assert!(canonical(&format!("{longest}?{longest}")).is_ok());
    assert_eq!(canonical(&format!("{longest}a")), Err(PathError::TooLong));
    assert_eq!(canonical(&format!("/{}", "é".repeat(4000))), Err(PathError::TooLong));
}

#[test]
fn normalising_twice_changes_nothing() {
    let alphabet = [
        "/", ".", "..", "%2e", "%2F", "%5c", "a", "%41", "%25", "%c3", "%a9", "é", "\\", " ", "*", "{", "?", "%0",
        "%40", "@", "%3B", "+",
    ];
    let mut seed: u64 = 7;
    let mut accepted = 0;
    for _ in 0..50_000 {
        let mut raw = String::from("/");
        for _ in 0..(seed >> 60) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            raw.push_str(alphabet[(seed >> 33) as usize % alphabet.len()]);
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for mode in [EscapedSlash::Keep, EscapedSlash::Reject] {
            if let Ok(once) = canonical_path(&raw, mode) {
                accepted += 1;
                assert_eq!(canonical_path(&once, mode).as_deref(), Ok(&*once), "{raw}");
                assert!(!once.contains("//") && once.starts_with('/'), "{raw} {once}");
                let dotted = once.split('/').any(|segment| segment == "." || segment == "..");
                assert!(!dotted, "{raw} {once}");
            }
        }
    }
    assert!(accepted > 10_000);
}

#[test]
fn endpoints_have_an_optional_method() {
    let parse = |text| Endpoint::parse(text, EscapedSlash::Reject);
    let plain = |method, path: &'static str| Ok(Endpoint { method, path: Cow::Borrowed(path) });
    assert_eq!(parse("POST /api/x"), plain(Some("POST"), "/api/x"));
    assert_eq!(parse("/api/x"), plain(None, "/api/x"));
    assert_eq!(parse("GET //api/x/?q"), plain(Some("GET"), "/api/x"));
    assert_eq!(parse("/a b"), plain(None, "/a%20b"));
    assert_eq!(parse("M-SEARCH /x"), plain(Some("M-SEARCH"), "/x"));
    let long = format!("{} /x", "A".repeat(33));
    for text in ["get /x", " /x", "G3T /x", "GET\t/x /y", &long] {
        assert_eq!(parse(text), Err(PathError::BadMethod), "{text}");
    }
    for text in ["", "GET", "GET ", "GET x", "*", "OPTIONS *"] {
        assert_eq!(parse(text), Err(PathError::NotAbsolute), "{text}");
    }
}
