//! The secret of a webhook, and signatures with it.
//!
//! The secret is derived from the key of the site and the id of the webhook, so that no table holds it. With a
//! `secret_file` a copy of the database alone does not tell it. When that file changes, the secrets do; the fingerprint
//! beside a webhook tells, and nothing is sent with a secret that its receiver does not know.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The secret of one webhook.
#[derive(Clone)]
pub struct WebhookSecret([u8; 32]);

impl WebhookSecret {
    /// The secret of this webhook.
    pub fn derive(site_key: &[u8; 32], webhook_id: &str) -> WebhookSecret {
        let mut hmac = Context::with_key(&Key::new(HMAC_SHA256, site_key));
        hmac.update(b"webhook secret\0");
        hmac.update(webhook_id.as_bytes());
        WebhookSecret(hmac.sign().as_ref().first_chunk().copied().unwrap_or_default())
    }

    /// As its receiver needs it. Shown once.
    pub fn shown(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// Four bytes of its SHA-256, in hex: tells one secret from another, and nothing of its 256 bits.
    pub fn fingerprint(&self) -> String {
        let digest = digest(&SHA256, &self.0);
        digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The value of `webhook-signature`: version 1, over id, time and body.
    pub fn signature(&self, id: &str, seconds: u64, body: &str) -> String {
        let signed = sign(&Key::new(HMAC_SHA256, &self.0), format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(signed))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_by_webhook_and_site_and_are_not_logged() {
        let secret = WebhookSecret::derive(&[1; 32], "wh_a");
        assert_eq!(secret.shown(), WebhookSecret::derive(&[1; 32], "wh_a").shown());
        for other in [WebhookSecret::derive(&[1; 32], "wh_b"), WebhookSecret::derive(&[2; 32], "wh_a")] {
            assert!(other.shown() != secret.shown() && other.fingerprint() != secret.fingerprint());
        }
        assert_eq!((secret.shown().len(), secret.fingerprint().len()), (50, 8));
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let bytes = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let key = Key::new(HMAC_SHA256, &bytes);
        let body = r#"{"test": 2432232314}"#;
        let signed = sign(&key, format!("msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{body}").as_bytes());
        assert_eq!(STANDARD.encode(signed), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
