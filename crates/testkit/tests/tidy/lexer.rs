//! Splits Rust text into code and comments, so that a rule about one is not fooled by the other.

/// The two halves of a text. Both have as many lines as the text; code has empty literals.
#[derive(Debug, PartialEq)]
pub struct Split {
    pub code: String,
    pub comments: String,
}

/// Splits a text. Doc comments are comments.
pub fn split(text: &str) -> Split {
    let mut lexer = Lexer { rest: text, split: Split { code: String::new(), comments: String::new() } };
    while lexer.step() {}
    lexer.split
}

struct Lexer<'a> {
    rest: &'a str,
    split: Split,
}

impl Lexer<'_> {
    /// Consumes one comment, literal or letter; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.comment(end);
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment(self.rest));
        } else if let Some(end) = raw_string(self.rest).filter(|_| !self.follows_name()) {
            self.literal(end);
        } else if first == '"' {
            self.literal(quoted(self.rest, '"'));
        } else if first == '\'' && is_char_literal(self.rest) {
            self.literal(quoted(self.rest, '\''));
        } else {
            self.rest = &self.rest[first.len_utf8()..];
            self.split.code.push(first);
            if first == '\n' {
                self.split.comments.push('\n');
            }
        }
        true
    }

    fn comment(&mut self, end: usize) {
        let (comment, rest) = self.rest.split_at(end);
        self.split.comments.push_str(comment);
        self.split.code.extend(comment.chars().filter(|letter| *letter == '\n'));
        self.rest = rest;
    }

    fn literal(&mut self, end: usize) {
        let (literal, rest) = self.rest.split_at(end);
        self.split.code.push_str("\"\"");
        for half in [&mut self.split.code, &mut self.split.comments] {
            half.extend(literal.chars().filter(|letter| *letter == '\n'));
        }
        self.rest = rest;
    }

    /// Whether the code so far ends inside a name: the `r` of `for"` begins no literal.
    fn follows_name(&self) -> bool {
        self.split.code.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    }
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let (step, change) = match rest {
            _ if rest.starts_with("/*") => (2, 1),
            _ if rest.starts_with("*/") => (2, -1),
            _ => (rest.chars().next().map_or(1, char::len_utf8), 0),
        };
        at += step;
        depth += change;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of `r"…"`, `r#"…"#`, `br"…"`, if the text begins with one.
fn raw_string(text: &str) -> Option<usize> {
    let body = ["r", "br", "cr"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inside = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// The length of a literal with escapes that begins with `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    matches!((letters.next(), letters.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

#[test]
fn code_and_comments_are_told_apart() {
    let text = "//! doc\nlet a = \"// no\"; // yes\n/* b /* c */\nd */ fn e<'f>(g: &'f str) -> char { '\"' }\n";
    let Split { code, comments } = split(text);
    assert_eq!(code, "\nlet a = \"\"; \n\n fn e<'f>(g: &'f str) -> char { \"\" }\n");
    assert_eq!(comments, "//! doc\n// yes\n/* b /* c */\nd */\n");
}

#[test]
fn literals_are_empty_and_keep_their_lines() {
    let text = "a(r#\"x \" // y\n\"#, b\"\\\"//\", '\\'', r\"\\\"); for r in b {} // end";
    let Split { code, comments } = split(text);
    assert_eq!(code, "a(\"\"\n, b\"\", \"\", \"\"); for r in b {} ");
    assert_eq!(comments, "\n// end");
}
