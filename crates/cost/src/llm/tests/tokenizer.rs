//! Counts beside those of the provider's own program, with its own vocabulary.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use tiktoken_rs::cl100k_base_singleton as provider;

use crate::llm::tokenizer::TokenCount;
use crate::llm::{LlmRequest, LlmSpec, Tokenizer};

/// Tokens of `cl100k_base`, but for the special ones.
const TOKENS: u32 = 100_256;

static VOCABULARY: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| Arc::new(Tokenizer::read(&file()).unwrap()));

/// The file that the provider publishes.
fn file() -> String {
    (0..TOKENS).fold(String::new(), |mut file, rank| {
        let token = BASE64_STANDARD.encode(provider().decode_bytes(&[rank]).unwrap());
        writeln!(file, "{token} {rank}").unwrap();
        file
    })
}

fn count(text: &str, piece: usize) -> u64 {
    let mut count = TokenCount::new(VOCABULARY.clone());
    text.as_bytes().chunks(piece).for_each(|bytes| count.add(bytes));
    count.end_text();
    count.tokens()
}

fn counted_by_provider(text: &str) -> u64 {
    provider().count_ordinary(text) as u64
}

#[test]
fn prose_and_code_are_counted_as_the_provider_counts_them() {
    for text in [
        "Hello, world!",
        "The quick brown fox jumps over the lazy dog. It was 1234567 o'clock, wasn't it?\n\nA new paragraph follows.",
        "fn main() {\n    let total: u64 = (0..10).map(|n| n * 2).sum();\n    println!(\"{total}\");\n}\n",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Summarise this contract in ten lines.\"}]}",
    ] {
        assert_eq!(count(text, 7), counted_by_provider(text), "{text}");
    }
}

#[test]
fn other_scripts_differ_by_a_few_percent() {
    for text in [
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Größenordnungsmäßig stimmt das überall. ",
        "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis; où êtes-vous allés l'été dernier? ",
        "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний. ",
        "敏捷的棕色狐狸跳过了懒狗。人工智能正在改变我们的生活方式,请总结下面的合同内容。",
    ] {
        let text = text.repeat(20);
        let (ours, wanted) = (count(&text, 1_000), counted_by_provider(&text));
        assert!(ours.abs_diff(wanted) * 20 <= wanted, "{ours} of {wanted}: {text}");
    }
}

#[test]
fn long_texts_are_estimated_at_the_ratio_of_their_beginning() {
    let sentence = "An invoice of 1,200 euros was paid on the third of May. ";
    let text = sentence.repeat(40_000);
    let (ours, wanted) = (count(&text, 65_536), counted_by_provider(&text));
    assert!(ours.abs_diff(wanted) * 100 <= wanted, "{ours} of {wanted}");
}

#[test]
fn prompts_are_encoded_without_escapes_settings_and_media() {
    let spec = LlmSpec { vocabulary: Some(VOCABULARY.clone()), ..LlmSpec::default() };
    let body = r#"{"model":"gpt-4o","user":"someone with a long name","messages":[{"role":"user","content":
        "H\u00e9llo,\n\"world\" \ud83d\ude00"},{"role":"user","content":[{"image_url":{"url":"data:,AAAA"}}]}]}"#;
    let request = LlmRequest::read(&spec, "/v1/chat/completions", body.as_bytes()).unwrap().unwrap();
    let texts = ["user", "Héllo,\n\"world\" 😀", "user"];
    assert_eq!(request.prompt_tokens, texts.map(counted_by_provider).iter().sum::<u64>() + 3, "and 3 of the picture");
}

#[test]
fn files_that_are_no_vocabulary_name_the_line() {
    let whole = file();
    let broken = whole.replacen("IQ== 0\n", "IQ== zero\n", 1);
    let error = Tokenizer::read(&broken).unwrap_err().to_string();
    assert!(error.starts_with("line 1, `IQ== zero`, is no token and rank; name a .tiktoken file"), "{error}");
    let short = whole.replacen("IQ== 0\n", "", 1);
    let error = Tokenizer::read(&short).unwrap_err().to_string();
    assert!(error.starts_with("the vocabulary has no token for the byte 0x21"), "{error}");
    assert!(Tokenizer::read("").is_err());
}

proptest! {
    #[test]
    fn pieces_do_not_matter(text in "\\PC{0,200}[ \\r\\na-z0-9.,']{0,200}", piece in 1_usize..50) {
        prop_assert_eq!(count(&text, piece), count(&text, usize::MAX));
    }

    #[test]
    fn a_text_has_at_most_as_many_tokens_as_bytes(text in "[\\PC\\s]{0,300}") {
        let tokens = count(&text, usize::MAX);
        prop_assert!(tokens <= text.len() as u64);
        prop_assert_eq!(tokens == 0, text.is_empty());
    }
}
