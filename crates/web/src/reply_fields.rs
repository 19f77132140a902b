//! The fields of a reply as fields of a header: known names are not parsed, and all values share one copy.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tollgate_service::HeaderFields;

/// Sets the fields of a decision. Those of the same name that are there tell of other limits.
pub fn set_fields(headers: &mut HeaderMap, fields: &HeaderFields) {
    let mut before = None;
    for_each(headers, fields, |headers, name, field, value| {
        match before == Some(name) {
            true => _ = headers.append(field, value),
            false => _ = headers.insert(field, value),
        }
        before = Some(name);
    });
}

/// Adds all fields.
pub(crate) fn append_fields(headers: &mut HeaderMap, fields: &HeaderFields) {
    for_each(headers, fields, |headers, _, field, value| _ = headers.append(field, value));
}

fn for_each(
    headers: &mut HeaderMap,
    fields: &HeaderFields,
    mut add: impl FnMut(&mut HeaderMap, &'static str, HeaderName, HeaderValue),
) {
    let (values, ends) = fields.joined();
    let values = Bytes::copy_from_slice(values);
    headers.reserve(ends.size_hint().0 + 1); // the caller of this adds the id of the decision
    let mut start = 0;
    for (name, end) in ends {
        let value = HeaderValue::from_maybe_shared(values.slice(start..end));
        start = end;
        if let (Some(field), Ok(value)) = (field_name(name), value) {
            add(headers, name, field, value);
        }
    }
}

/// The name of a field. Parsing one costs as much as all else about it.
fn field_name(name: &'static str) -> Option<HeaderName> {
    Some(match name {
        "X-RateLimit-Limit" => const { HeaderName::from_static("x-ratelimit-limit") },
        "X-RateLimit-Remaining" => const { HeaderName::from_static("x-ratelimit-remaining") },
        "X-RateLimit-Reset" => const { HeaderName::from_static("x-ratelimit-reset") },
        "X-RateLimit-Resource" => const { HeaderName::from_static("x-ratelimit-resource") },
        "RateLimit-Policy" => const { HeaderName::from_static("ratelimit-policy") },
        "RateLimit" => const { HeaderName::from_static("ratelimit") },
        "Retry-After" => header::RETRY_AFTER,
        "Content-Type" => header::CONTENT_TYPE,
        "Cache-Control" => header::CACHE_CONTROL,
        _ => HeaderName::from_bytes(name.as_bytes()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_replace_those_of_the_same_name_and_keep_their_own_repetitions() {
        let mut fields = HeaderFields::default();
        for (name, value) in [("RateLimit", "a"), ("RateLimit", "b"), ("X-Own", "c"), ("Retry-After", "7")] {
            fields.push(name, value);
        }
        let lines = |headers: &HeaderMap| -> Vec<String> {
            let mut lines: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            lines.sort();
            lines
        };
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit", HeaderValue::from_static("of the server"));
        let mut appended = headers.clone();
        set_fields(&mut headers, &fields);
        assert_eq!(lines(&headers), ["ratelimit: a", "ratelimit: b", "retry-after: 7", "x-own: c"]);
        append_fields(&mut appended, &fields);
        assert_eq!(lines(&appended).len(), 5);
    }

    #[test]
    fn known_names_are_those_that_would_be_parsed() {
        for name in ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Resource"]
            .into_iter()
            .chain(["RateLimit-Policy", "RateLimit", "Retry-After", "Content-Type", "Cache-Control"])
        {
            assert_eq!(field_name(name), HeaderName::from_bytes(name.as_bytes()).ok(), "{name}");
        }
    }
}
