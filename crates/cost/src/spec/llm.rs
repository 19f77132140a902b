//! Reads the settings of `llm`.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use tollgate_rules::key::is_attribute;
use tollgate_rules::problem::{Problems, quote};
use tollgate_rules::read::{FieldValue, MapFields};

use crate::llm::{LlmDialect, LlmMeters, LlmSpec, OnExhausted, OtherCalls, TokenCounter};

const FIELDS: &[&str] = &[
    "dialect",
    "bytes_per_token",
    "tokenizer",
    "reserve",
    "step",
    "on_exhausted",
    "include_usage",
    "background",
    "others",
    "meters",
];
const METERS: &[&str] = &["input", "output", "cached", "total"];

/// Most tokens of a reservation or a step.
const TOKENS_MAX: u64 = 1_000_000_000;

const ENDINGS: [(&str, OnExhausted); 2] = [("finish", OnExhausted::Finish), ("cut", OnExhausted::Cut)];
const OTHERS: [(&str, OtherCalls); 2] = [("pass", OtherCalls::Pass), ("reject", OtherCalls::Reject)];

pub(super) fn read_llm(value: FieldValue<'_>, problems: &mut Problems) -> LlmSpec {
    let fields = value.fields(FIELDS, "llm: { step: 256 }", problems);
    let mut spec = LlmSpec {
        dialect: fields.get("dialect").and_then(|value| value.choice(&LlmDialect::NAMES, problems)),
        ..LlmSpec::default()
    };
    let mut number = |name, low, high| fields.get(name).and_then(|value| value.integer(low..=high, problems));
    if let Some(bytes) = number("bytes_per_token", 1, 64).and_then(NonZeroU64::new) {
        spec.counter = TokenCounter::BytesPerToken(bytes);
    }
    spec.reserve = number("reserve", 1, TOKENS_MAX).unwrap_or(spec.reserve);
    spec.step = number("step", 1, TOKENS_MAX).unwrap_or(spec.step);
    spec.tokenizer = fields.get("tokenizer").and_then(|value| value.text(problems)).map(PathBuf::from);
    if let Some(ending) = fields.get("on_exhausted").and_then(|value| value.choice(&ENDINGS, problems)) {
        spec.on_exhausted = ending;
    }
    if let Some(others) = fields.get("others").and_then(|value| value.choice(&OTHERS, problems)) {
        spec.others = others;
    }
    if let Some(include) = fields.get("include_usage").and_then(|value| value.boolean(problems)) {
        spec.include_usage = include;
    }
    if let Some(background) = fields.get("background").and_then(|value| value.boolean(problems)) {
        spec.background = background;
    }
    if let Some(meters) = fields.get("meters") {
        spec.meters = read_names(meters, problems);
    }
    spec
}

/// The meters that are named; without `meters`, input and output have the usual names.
fn read_names(value: FieldValue<'_>, problems: &mut Problems) -> LlmMeters {
    let fields = value.fields(METERS, "{ input: input_tokens, output: output_tokens }", problems);
    if fields.known() && METERS.iter().all(|name| fields.get(name).is_none()) {
        let message = format!("{} names no meter", value.path);
        problems.push(value.problem("out-of-range", message).help("name input, output, cached or total"));
    }
    LlmMeters {
        input: read_name(&fields, "input", problems),
        output: read_name(&fields, "output", problems),
        cached: read_name(&fields, "cached", problems),
        total: read_name(&fields, "total", problems),
    }
}

fn read_name(fields: &MapFields<'_>, name: &'static str, problems: &mut Problems) -> Option<Arc<str>> {
    let value = fields.get(name)?;
    let text = value.text(problems)?;
    if !is_attribute(text) {
        let message = format!("{} cannot be the name of a meter", quote(text));
        let help = "a lower-case letter, then up to 63 of a-z, 0-9, `_`, `.` and `-`";
        problems.push(value.problem("bad-meter", message).help(help));
        return None;
    }
    Some(text.into())
}
