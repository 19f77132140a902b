//! What an operator pastes as a request: a curl line, the JSON of a check, or words such as `user_id=42 POST /orders`.

use serde_json::{Map, Value};

/// Methods that begin an endpoint.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"];
/// Header fields that say who is asking, and the attribute that they become.
const HEADERS: [(&str, &str); 4] =
    [("x-api-key", "api_key"), ("x-user-id", "user_id"), ("x-client-key", "client_key"), ("x-forwarded-for", "ip")];

/// Reads a request as the body of `/v1/explain`.
pub(super) fn read(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    if text.starts_with('{') {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("This is not JSON: {error}."))?;
        return value.as_object().cloned().ok_or_else(|| "Send one JSON object.".to_owned());
    }
    let words = words(text)?;
    match words.split_first() {
        Some((first, rest)) if first == "curl" => of_curl(rest),
        _ => of_words(&words),
    }
}

/// Words as a shell has them.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => match letters.next() {
                Some('\n') | None => {} // a line goes on
                Some(next) => word.get_or_insert_default().push(next),
            },
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("A {open} is not closed.")),
        None => Ok(words),
    }
}

fn of_words(words: &[String]) -> Result<Map<String, Value>, String> {
    let mut request = Map::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if METHODS.contains(&word.as_str()) && words.peek().is_some_and(|next| next.starts_with('/')) {
            let path = words.next().map_or("", String::as_str);
            request.insert("endpoint".to_owned(), format!("{word} {path}").into());
        } else if word.starts_with('/') {
            request.insert("endpoint".to_owned(), word.as_str().into());
        } else if let Some((name, value)) = word.split_once('=') {
            request.insert(name.to_owned(), attribute(name, value));
        } else {
            return Err(format!("What is {word:?}? Write name=value, and the endpoint as POST /path."));
        }
    }
    Ok(request)
}

/// Costs are numbers, all else is text.
fn attribute(name: &str, value: &str) -> Value {
    match (name, value.parse::<u64>()) {
        ("cost", Ok(number)) => number.into(),
        _ => value.into(),
    }
}

/// The request that a curl command sends: a check of this server as it is, any other as the API behind it would see it.
fn of_curl(words: &[String]) -> Result<Map<String, Value>, String> {
    let (mut method, mut target, mut data, mut request) = (None, None, None, Map::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-X" | "--request" => method = words.next().cloned(),
            "-d" | "--data" | "--data-raw" | "--data-binary" | "--json" => data = words.next().cloned(),
            "-H" | "--header" => add_header(&mut request, words.next().map_or("", String::as_str)),
            "--url" => target = words.next().cloned(),
            "-A" | "-b" | "-c" | "-e" | "-m" | "-o" | "-u" | "-w" | "-x" | "--user" | "--max-time" | "--output" => {
                _ = words.next()
            }
            word if word.starts_with('-') => {}
            word => target = Some(word.to_owned()),
        }
    }
    let target = target.ok_or("The curl line has no URL.")?;
    let path =
        target.split_once("://").map_or(target.as_str(), |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if let Some(data) = data.as_deref().filter(|_| path.ends_with("/v1/check") || path.ends_with("/v1/explain")) {
        return read(data);
    }
    let method = method.unwrap_or_else(|| if data.is_some() { "POST" } else { "GET" }.to_owned());
    request.insert("endpoint".to_owned(), format!("{} {path}", method.to_ascii_uppercase()).into());
    Ok(request)
}

fn add_header(request: &mut Map<String, Value>, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    if let Some((_, attribute)) = HEADERS.iter().find(|(known, _)| name.trim().eq_ignore_ascii_case(known)) {
        request.insert((*attribute).to_owned(), value.trim().split(',').next().unwrap_or_default().trim().into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(text: &str) -> Value {
        Value::Object(read(text).unwrap())
    }

    #[test]
    fn a_request_may_be_words_json_or_a_curl_line() {
        let expected = json!({ "user_id": "42", "endpoint": "POST /api/orders", "cost": 3 });
        assert_eq!(object("user_id=42 POST /api/orders cost=3"), expected);
        assert_eq!(object(r#"{"user_id":"42","endpoint":"POST /api/orders","cost":3}"#), expected);
        let check =
            r#"curl -s http://127.0.0.1:8080/v1/check -d '{"user_id":"42","endpoint":"POST /api/orders","cost":3}'"#;
        assert_eq!(object(check), expected);
        let curl = "curl -X POST \\\n  'https://api.example.com/api/orders?a=1' -H 'X-Api-Key: abc' -H \"Authorization: Bearer secret\"";
        assert_eq!(object(curl), json!({ "endpoint": "POST /api/orders", "api_key": "abc" }));
        assert_eq!(object("curl https://api.example.com"), json!({ "endpoint": "GET /" }));
        assert_eq!(object("curl -d x https://api.example.com/y"), json!({ "endpoint": "POST /y" }));
        assert_eq!(object(""), json!({}));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, told) in
            [("{", "not JSON"), ("[1]", "What is"), ("curl", "no URL"), ("'a", "not closed"), ("hello", "What is")]
        {
            assert!(read(text).unwrap_err().contains(told), "{text}");
        }
    }
}
