//! What an answer must have. A difference is a line of text.

use serde_json::Value;

/// Bounds of what stands for numbers in texts: an hour and a bit.
const SECONDS_MAX: u64 = 3_700;

/// Whether a text is as expected; `{seconds}`, `{milliseconds}` and `{epoch}` stand for numbers in range.
pub fn text_matches(expected: &str, found: &str, now: u64) -> bool {
    let Some((before, rest)) = expected.split_once('{').filter(|(_, rest)| placeholder(rest).is_some()) else {
        return match expected.split_once('{') {
            Some((before, rest)) => found
                .strip_prefix(before)
                .and_then(|found| found.strip_prefix('{'))
                .is_some_and(|found| text_matches(rest, found, now)),
            None => expected == found,
        };
    };
    let (name, after) = placeholder(rest).expect("looked at above");
    let Some(found) = found.strip_prefix(before) else { return false };
    let digits = found.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(found.len());
    let range = match name {
        "seconds" => 0..=SECONDS_MAX,
        "milliseconds" => 0..=SECONDS_MAX * 1000,
        _ => now - 60..=now + SECONDS_MAX,
    };
    found[..digits].parse().is_ok_and(|number: u64| range.contains(&number))
        && text_matches(after, &found[digits..], now)
}

fn placeholder(rest: &str) -> Option<(&str, &str)> {
    let (name, after) = rest.split_once('}')?;
    ["seconds", "milliseconds", "epoch"].contains(&name).then_some((name, after))
}

/// What differs between an answer and what it must have at least: objects may have more members.
pub fn differences(expected: &Value, found: &Value, at: &str) -> Vec<String> {
    let differs = || vec![format!("{}: expected {expected}, found {found}", if at.is_empty() { "answer" } else { at })];
    match (expected, found) {
        (Value::String(kind), found) if kind.starts_with('{') => match (kind.as_str(), found) {
            ("{number}", Value::Number(_)) | ("{text}", Value::String(_)) | ("{object}", Value::Object(_)) => {
                Vec::new()
            }
            _ => differs(),
        },
        (Value::Object(expected), Value::Object(found)) => {
            let members = expected.iter();
            members
                .flat_map(|(name, value)| {
                    differences(value, found.get(name).unwrap_or(&Value::Null), &format!("{at}/{name}"))
                })
                .collect()
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let items = expected.iter().zip(found).enumerate();
            items
                .flat_map(|(index, (expected, found))| differences(expected, found, &format!("{at}/{index}")))
                .collect()
        }
        (Value::Array(any), found)
            if !found.is_array() && any.iter().any(|one| differences(one, found, at).is_empty()) =>
        {
            Vec::new()
        }
        (Value::Number(expected), Value::Number(found)) if expected.as_f64() == found.as_f64() => Vec::new(),
        _ if expected == found => Vec::new(),
        _ => differs(),
    }
}

#[test]
fn placeholders_stand_for_numbers_in_range() {
    let now = 1_800_000_000;
    assert!(text_matches("{\"after\":{seconds},\"at\":{epoch}}", "{\"after\":59,\"at\":1800000059}", now));
    for found in
        ["{\"after\":9999,\"at\":1800000059}", "{\"after\":59,\"at\":59}", "{\"after\":,\"at\":1800000059}", ""]
    {
        assert!(!text_matches("{\"after\":{seconds},\"at\":{epoch}}", found, now), "{found}");
    }
}

#[test]
fn an_answer_may_have_more_but_not_other_members() {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let same = |expected, found| differences(&value(expected), &value(found), "").is_empty();
    assert!(same(r#"{"a":1,"b":null,"c":"{text}","d":[2,3]}"#, r#"{"a":1.0,"c":"x","d":3,"e":0}"#));
    assert!(!same(r#"{"a":1}"#, r#"{"a":2}"#));
    assert!(!same(r#"{"a":"{number}"}"#, "{}"));
    assert!(!same("[1]", "[1,2]"));
}
