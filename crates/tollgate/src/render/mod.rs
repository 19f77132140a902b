//! Values as people and programs read them. Text from files and arguments goes through [`visible`] on its way out.

mod change;
mod decision;
mod explained;
mod moment;
mod palette;
mod report;
mod rule;
mod span;
mod stored;
mod table;

pub use change::{Tally, changes_text, field_changes};
pub use decision::{Shown, ruling_text};
pub use explained::{effective_text, explained_text};
pub use moment::moment;
pub use palette::Palette;
pub use report::{colour_report, problem_json};
pub use rule::{key_words, limit_words, match_words, member, mode_words, source_words};
pub use span::for_people;
pub use stored::stored_text;
pub use table::{Table, cell};

/// Text safe for a terminal: control and direction-changing characters are written as escapes.
pub fn visible(text: &str) -> String {
    let hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match hidden(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

/// `1 rule`, `2 rules`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
