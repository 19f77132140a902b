//! What `/v1/explain` takes: a check request, or one descriptor in the JSON of Envoy's rate limit service.
//!
//! Rules of envoyproxy/ratelimit's files match the entries of a descriptor in order and by any key. A check request
//! cannot express all of them: there, `path` and `method` come from `endpoint`, and `user_id` is not a custom attribute.

use serde_json::Value;
use tollgate_proto::rls::RateLimitRequest;

use crate::check_request::{BodyError, CheckRequest, read_check};
use crate::rls::{RlsJsonError, read_json};

/// A request to explain.
#[derive(Debug)]
pub enum ExplainRequest<'a> {
    /// As `/v1/check` takes it.
    Check(Box<CheckRequest<'a>>),
    /// As `/json` of envoyproxy/ratelimit takes it, with one descriptor.
    Descriptor(RateLimitRequest),
}

impl ExplainRequest<'_> {
    /// Reads a body: one with `descriptors` is in the format of `/json`.
    pub fn read(body: &[u8]) -> Result<ExplainRequest<'_>, BodyError> {
        let has_descriptors =
            serde_json::from_slice::<Value>(body).is_ok_and(|value| value.get("descriptors").is_some());
        if !has_descriptors {
            return read_check(body).map(|request| ExplainRequest::Check(Box::new(request)));
        }
        let message = read_json(body).map_err(|RlsJsonError { field, detail }| BodyError {
            code: "bad_descriptor",
            field,
            detail: detail.to_owned(),
        })?;
        match message.descriptors.len() {
            1 => Ok(ExplainRequest::Descriptor(message)),
            number => Err(BodyError {
                code: "one_descriptor",
                field: "descriptors".to_owned(),
                detail: format!("holds {number} descriptors: one is explained at a time"),
            }),
        }
    }

    /// The namespace, or domain, whose rules are asked.
    pub fn namespace(&self) -> &str {
        match self {
            ExplainRequest::Check(request) => request.namespace(),
            ExplainRequest::Descriptor(message) => &message.domain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_with_descriptors_is_a_message_of_envoy() {
        let message = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"path","value":"/a"}]}]}"#;
        let read = ExplainRequest::read(message.as_bytes()).unwrap();
        assert!(matches!(&read, ExplainRequest::Descriptor(message) if message.domain == "edge"), "{read:?}");
        assert_eq!(read.namespace(), "edge");
        let check = ExplainRequest::read(br#"{"client_key":"user:42","namespace":"shop"}"#).unwrap();
        assert!(matches!(check, ExplainRequest::Check(_)) && check.namespace() == "shop");
    }

    #[test]
    fn a_message_that_cannot_be_explained_says_why() {
        let refused = |body: &str| ExplainRequest::read(body.as_bytes()).map(|_| ()).unwrap_err();
        let entry = r#"{"entries":[{"key":"a","value":"b"}]}"#;
        let two = refused(&format!(r#"{{"domain":"edge","descriptors":[{entry},{entry}]}}"#));
        assert_eq!((two.code, two.field.as_str()), ("one_descriptor", "descriptors"));
        assert_eq!(refused(r#"{"domain":"edge","descriptors":[]}"#).code, "one_descriptor");
        assert_eq!(refused(r#"{"domain":"edge","descriptors":[{"entry":[]}]}"#).code, "bad_descriptor");
        let path = refused(r#"{"namespace":"edge","attributes":{"path":"/a"}}"#);
        assert_eq!((path.code, path.field.as_str()), ("bad_attribute_name", "attributes.path"));
        assert!(path.detail.contains("descriptors"), "{}", path.detail);
    }
}
