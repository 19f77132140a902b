//! Default requests of each protocol.

use anyhow::{Result, bail};
use tollgate_load::ProtobufMessage;

/// Over HTTP.
pub const JSON: &str = r#"{"client_key":"{key}","endpoint":"/api/orders","tier":"free"}"#;
/// Over RESP.
pub const COMMAND: &str = "TG.CHECK client_key={key} endpoint=/api/orders tier=free";
/// Over gRPC.
pub const WORDS: &str = "client_key={key} endpoint=/api/orders tier=free";

/// Tollgate's own check.
pub const CHECK: &str = "/tollgate.v1.Tollgate/Check";
/// Envoy's call.
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The message of a method from words `name=value`: attributes and namespace of a check, or the entries of one
/// descriptor and the domain.
pub fn message(method: &str, words: &str) -> Result<ProtobufMessage> {
    let scope = match method {
        CHECK => "namespace",
        SHOULD_RATE_LIMIT => "domain",
        _ => bail!("{method}: only {CHECK} and {SHOULD_RATE_LIMIT} are supported"),
    };
    let (mut message, mut descriptor) = (ProtobufMessage::new(), ProtobufMessage::new());
    for word in words.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else { bail!("{word:?}: write name=value") };
        let entry = ProtobufMessage::new().text(1, name).text(2, value);
        match method {
            _ if name == scope => message = message.text(1, value),
            CHECK => message = message.message(2, &entry),
            _ => descriptor = descriptor.message(1, &entry),
        }
    }
    Ok(if method == CHECK { message } else { message.message(2, &descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_the_message_of_their_method() {
        let check = message(CHECK, "namespace=a user_id={key}").unwrap();
        assert_eq!(check.as_ref(), b"\x0a\x01a\x12\x1b\x0a\x07user_id\x12\x10{key}");
        let asked = message(SHOULD_RATE_LIMIT, "domain=a user_id={key}").unwrap();
        assert_eq!(asked.as_ref(), b"\x0a\x01a\x12\x1d\x0a\x1b\x0a\x07user_id\x12\x10{key}");
    }

    #[test]
    fn unsupported_methods_and_words_are_rejected() {
        assert!(message("/a.B/C", WORDS).is_err());
        assert!(message(CHECK, "client_key").is_err());
    }
}
