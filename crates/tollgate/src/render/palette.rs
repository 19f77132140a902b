//! Few colours with a meaning each.

use anstyle::{AnsiColor, Style};

use super::visible;

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Whether escapes are written at all.
    pub colour: bool,
}

impl Palette {
    /// Allowed, passed.
    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default().bold(), text)
    }

    /// Denied, failed, wrong.
    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// Worth a look.
    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// A name, a heading.
    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Beside the point.
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Advice, places.
    pub fn hint(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        let text = visible(text);
        if self.colour { format!("{style}{text}{style:#}") } else { text }
    }
}
