//! Which values of a response the model has generated.
//!
//! Everything counts below the fields that hold what a model writes, but for what is known to describe it: a provider adds
//! a kind of content more often than a kind of label, and text that is not counted would be passed on for nothing.

use crate::json::{JsonPart, JsonPath};

/// A value that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeneratedPart {
    pub(super) statement: Statement,
    /// Whether it is a picture or a sound, whose length says little.
    pub(super) is_media: bool,
    /// Whether it is within the arguments of a tool, of which numbers and keys are written by the model, too.
    pub(super) is_argument: bool,
}

/// Which statement of a text it is: streams of OpenAI responses state their text again in items and at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// As it is generated; in a body that is no stream, the only one.
    First,
    /// The items of a stream, when they are whole.
    Items,
    /// The response at the end of a stream.
    Response,
}

/// Fields that hold the arguments of a tool: whatever is called in them as it likes is text.
const ARGUMENTS: [&str; 4] = ["input", "args", "arguments", "action"];

/// Fields whose whole content describes the text, or comes from tools that the provider runs.
const DESCRIPTIONS: [&str; 13] = [
    "annotations",
    "citation",
    "citationMetadata",
    "citations",
    "codeExecutionResult",
    "content_filter_results",
    "groundingMetadata",
    "logprobs",
    "logprobsResult",
    "outputs",
    "results",
    "safetyRatings",
    "urlContextMetadata",
];

/// Fields whose text describes: ids, types, signatures.
const LABELS: [&str; 23] = [
    "call_id",
    "container_id",
    "encrypted_content",
    "finishReason",
    "finish_reason",
    "format",
    "id",
    "item_id",
    "media_type",
    "mimeType",
    "mime_type",
    "model",
    "native_finish_reason",
    "object",
    "role",
    "signature",
    "status",
    "stop_reason",
    "stop_sequence",
    "thoughtSignature",
    "thought_signature",
    "tool_use_id",
    "type",
];

/// The last two fields of media in Base64.
const MEDIA: [[&str; 2]; 4] =
    [["audio", "data"], ["inlineData", "data"], ["inline_data", "data"], ["image_url", "url"]];
/// The last field of pictures alone.
const PICTURES: [&str; 2] = ["b64_json", "result"];

impl GeneratedPart {
    /// The value at `path`, if it counts; `from` are the steps to the response.
    pub(super) fn at(path: &JsonPath, from: usize, kind: JsonPart) -> Option<GeneratedPart> {
        let (statement, start) = statement(path, from)?;
        let is_key = kind == JsonPart::Key;
        // While a key is read, the last step is still that of the field before.
        let end = path.depth().saturating_sub(usize::from(is_key));
        let keys = || (start..end).map(|depth| path.key(depth).unwrap_or_default());
        if keys().any(|key| ARGUMENTS.contains(&key)) {
            return Some(GeneratedPart { statement, is_media: false, is_argument: true });
        }
        if !matches!(kind, JsonPart::Text | JsonPart::Deep) {
            return None;
        }
        let is_label = LABELS.contains(&path.last_key().unwrap_or_default());
        let is_description = is_label || is_tool_result(path, from) || keys().any(|key| DESCRIPTIONS.contains(&key));
        (!is_description).then(|| GeneratedPart { statement, is_media: is_media(path), is_argument: false })
    }
}

/// Which statement a value belongs to, and the step at which its own fields start.
fn statement(path: &JsonPath, from: usize) -> Option<(Statement, usize)> {
    let under = |key: &str| path.key(from + 1) == Some(key);
    Some(match path.key(from)? {
        "choices" | "candidates" | "content" | "content_block" | "delta" | "output" => (Statement::First, from + 1),
        "partial_image_b64" => (Statement::First, from + 1),
        "message" if under("content") => (Statement::First, from + 2),
        "item" => (Statement::Items, from + 1),
        "response" if under("output") => (Statement::Response, from + 2),
        _ => return None,
    })
}

/// Whether it is what a tool of Anthropic's has found: a block of content has content of its own only then.
fn is_tool_result(path: &JsonPath, from: usize) -> bool {
    match path.key(from) {
        Some("content") => path.key(from + 2) == Some("content"),
        Some("content_block") => path.key(from + 1) == Some("content"),
        _ => false,
    }
}

fn is_media(path: &JsonPath) -> bool {
    let key = |back: usize| path.depth().checked_sub(back).and_then(|depth| path.key(depth));
    let (Some(last), before) = (key(1), key(2)) else { return false };
    let is_pair = MEDIA.iter().any(|[outer, inner]| before == Some(*outer) && last == *inner);
    is_pair || PICTURES.contains(&last) || last == "partial_image_b64"
}
