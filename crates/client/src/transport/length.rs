//! Longest texts of a request. A server that gets much more closes the connection before it has read everything, and that
//! would look like an outage, for which the fail policy may pass requests: the length of a text must not choose it.

use tollgate_core::{Attribute, Request};

use crate::failure::{RequestRejected, VALUE_TOO_LONG};

/// Longest path.
const PATH_BYTES_MAX: usize = 8192;
/// Longest method, and a space.
const METHOD_BYTES_MAX: usize = 64;
/// Longest value.
const VALUE_BYTES_MAX: usize = 4096;

/// Rejects a request as a server would.
pub(super) fn check(request: &Request<'_>) -> Result<(), RequestRejected> {
    let path_bytes = request.get(Attribute::Endpoint).map(|endpoint| {
        let path = endpoint.find('/').and_then(|start| endpoint.get(start..)).unwrap_or(endpoint);
        let bytes = path.split(['?', '#']).next().unwrap_or_default().len();
        // The whole text is bounded too.
        bytes.max(endpoint.len().saturating_sub(METHOD_BYTES_MAX))
    });
    if path_bytes.is_some_and(|bytes| bytes > PATH_BYTES_MAX) {
        let detail = format!("endpoint: the path is longer than {PATH_BYTES_MAX} bytes");
        return Err(RequestRejected { code: "path_too_long".to_owned(), detail });
    }
    let known = Attribute::ALL.into_iter().filter(|attribute| *attribute != Attribute::Endpoint);
    let known = known.filter_map(|attribute| Some((attribute.name(), request.get(attribute)?)));
    let mut values = known.chain(request.custom.iter().copied());
    match values.find(|(_, value)| value.len() > VALUE_BYTES_MAX) {
        None => Ok(()),
        Some((name, _)) => Err(RequestRejected {
            code: VALUE_TOO_LONG.to_owned(),
            detail: format!("{name}: use at most {VALUE_BYTES_MAX} bytes"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(request: &Request<'_>) -> Option<String> {
        check(request).err().map(|rejected| rejected.code)
    }

    #[test]
    fn bounds_are_those_of_the_server() {
        let letters = |count| "a".repeat(count);
        for (endpoint, found) in [
            (format!("GET /{}", letters(8191)), None),
            (format!("GET /{}", letters(8192)), Some("path_too_long")),
            (format!("/{}", letters(8192)), Some("path_too_long")),
            (format!("GET /a?{}", letters(8_000)), None),
            (format!("GET /a?{}", letters(8_300)), Some("path_too_long")),
        ] {
            assert_eq!(code(&Request::new().with(Attribute::Endpoint, &endpoint)).as_deref(), found);
        }
        let (most, above) = (letters(4096), letters(4097));
        assert_eq!(code(&Request::new().with(Attribute::UserId, &most)), None);
        assert_eq!(code(&Request::new().with(Attribute::UserId, &above)).as_deref(), Some("value_too_long"));
        let custom = [("region", above.as_str())];
        let mut request = Request::new();
        request.custom = &custom;
        let rejected = check(&request).unwrap_err();
        assert_eq!(rejected.to_string(), "value_too_long: region: use at most 4096 bytes");
    }
}
