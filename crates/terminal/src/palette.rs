//! Colours by meaning.

use anstyle::{AnsiColor, Style};

use super::visible;

/// Colours text, if enabled.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// True if escape sequences are written.
    pub colour: bool,
}

impl Palette {
    /// Allowed, passed.
    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default().bold(), text)
    }

    /// Denied, failed, invalid.
    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// Warnings.
    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Names, headings.
    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Secondary text.
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Advice, locations.
    pub fn hint(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        let text = visible(text);
        if self.colour { format!("{style}{text}{style:#}") } else { text }
    }
}
