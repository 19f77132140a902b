//! Pictures, sounds and files of a prompt: their length says little about the tokens that they cost.

use crate::json::JsonPath;

/// Most tokens that a picture, a sound or a file in a prompt is estimated at.
pub(super) const MEDIA_TOKENS_MAX: u64 = 1_600;

/// The last two fields of a place for media.
const PAIRS: [[&str; 2]; 9] = [
    ["source", "data"],
    ["source", "url"],
    ["inlineData", "data"],
    ["inline_data", "data"],
    ["image_url", "url"],
    ["audio_url", "url"],
    ["video_url", "url"],
    ["input_audio", "data"],
    ["file", "file_data"],
];
/// The last field of a place for media, whatever it is in.
const ALONE: [&str; 3] = ["image_url", "file_data", "b64_json"];
/// Fields of messages that hold what tools are given and return: text, whatever its fields are called.
const TOOLS: [&str; 4] = ["input", "args", "arguments", "response"];
/// Fields beside the data that say what it is.
const KINDS: [&str; 4] = ["type", "media_type", "mimeType", "mime_type"];

/// The media of a prompt.
#[derive(Debug, Default)]
pub(super) struct MediaTexts {
    /// Bytes of each.
    pub(super) bytes: Vec<u64>,
    /// Those in objects that have not ended, and how deep they are: a field that comes later may say that it is text.
    open: Vec<(usize, u64)>,
    /// Depths at which an object has said so, as bits.
    texts: u128,
}

impl MediaTexts {
    /// Whether a value stands in a place for media.
    pub(super) fn is_at(path: &JsonPath) -> bool {
        let key = |back: usize| path.depth().checked_sub(back).and_then(|depth| path.key(depth));
        let Some(last) = key(1).filter(|_| path.depth() > 2) else { return false };
        let is_named =
            ALONE.contains(&last) || PAIRS.iter().any(|[outer, inner]| last == *inner && key(2) == Some(*outer));
        is_named && !(1..path.depth()).any(|depth| path.key(depth).is_some_and(|key| TOOLS.contains(&key)))
    }

    /// Adds the text at such a place.
    pub(super) fn add(&mut self, path: &JsonPath, bytes: u64) {
        self.open.push((path.depth(), bytes));
    }

    /// Reads any other text: it may say of which kind the media beside it are.
    pub(super) fn read_kind(&mut self, path: &JsonPath, text: &str) {
        let is_kind = path.last_key().is_some_and(|key| KINDS.contains(&key));
        let is_text = text == "text" || text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("text/"));
        if is_kind && is_text {
            self.texts |= bit(path.depth());
        }
    }

    /// An object or list ends; the bytes of text that stood in a place for media in it.
    pub(super) fn end(&mut self, path: &JsonPath) -> u64 {
        let inner = path.depth() + 1;
        let is_text = self.texts & bit(inner) != 0;
        self.texts &= !bit(inner);
        let mut text_bytes = 0u64;
        while let Some((_, bytes)) = self.open.pop_if(|(depth, _)| *depth >= inner) {
            match is_text {
                true => text_bytes = text_bytes.saturating_add(bytes),
                false => self.bytes.push(bytes),
            }
        }
        text_bytes
    }
}

fn bit(depth: usize) -> u128 {
    u32::try_from(depth).ok().and_then(|depth| 1u128.checked_shl(depth)).unwrap_or(0)
}
