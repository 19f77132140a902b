//! Protocol buffer messages, built field by field.

use crate::template::TemplateText;

/// A protocol buffer message whose strings may hold key placeholders; lengths count the key, not the placeholder.
///
/// ```
/// use tollgate_load::{ProtobufMessage, LoadRequest};
///
/// let entry = ProtobufMessage::new().text(1, "user_id").text(2, "{key}");
/// let descriptor = ProtobufMessage::new().message(1, &entry);
/// let body = ProtobufMessage::new().text(1, "shop").message(2, &descriptor).number(3, 1);
/// let request = LoadRequest::post("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit").body(body);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// A message without fields.
    pub fn new() -> ProtobufMessage {
        ProtobufMessage::default()
    }

    /// Adds an integer, a boolean or an enum value.
    pub fn number(mut self, field: u32, value: u64) -> ProtobufMessage {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Adds a string.
    pub fn text(self, field: u32, text: &str) -> ProtobufMessage {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a nested message.
    pub fn message(self, field: u32, message: &ProtobufMessage) -> ProtobufMessage {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> ProtobufMessage {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(TemplateText::len_of(bytes) as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(0x80 | (value & 0x7f) as u8);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

impl AsRef<[u8]> for ProtobufMessage {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
