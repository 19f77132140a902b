//! Lists as CSV (RFC 4180), for spreadsheets and billing.
//!
//! A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula, and texts come from callers: such a
//! cell gets an apostrophe in front, which spreadsheets take for the mark of a text.

use std::fmt::Write as _;

/// Text in the making.
#[derive(Debug, Default)]
pub(crate) struct CsvText(String);

impl CsvText {
    /// Adds a row. Numbers of this program are safe as they are; every text is escaped.
    pub(crate) fn row<'a>(&mut self, cells: impl IntoIterator<Item = CsvCell<'a>>) {
        for (index, cell) in cells.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            match cell {
                CsvCell::Number(number) => _ = write!(self.0, "{number}"), // writing to a String succeeds
                CsvCell::Text(text) => self.text(text),
            }
        }
        self.0.push_str("\r\n");
    }

    fn text(&mut self, text: &str) {
        let runs = text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
        let is_plain = !runs && !text.contains([',', '"', '\r', '\n']) && text.trim() == text;
        if is_plain {
            return self.0.push_str(text);
        }
        self.0.push('"');
        self.0.push_str(if runs { "'" } else { "" });
        self.0.push_str(&text.replace('"', "\"\""));
        self.0.push('"');
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CsvCell<'a> {
    /// A number.
    Number(i64),
    /// A text; empty for nothing.
    Text(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_a_reader_would_take_them_apart_or_run_them() {
        let mut csv = CsvText::default();
        csv.row(["plain", "", "a,b", "say \"hi\"", "two\r\nlines", " padded "].map(CsvCell::Text));
        csv.row(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "-", "a=b"].map(CsvCell::Text));
        csv.row([CsvCell::Number(-5), CsvCell::Text("=cmd|' /C calc'!\"A0\"")]);
        let expected = "plain,,\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",\" padded \"\r\n\
                        \"'=1+1\",\"'+1\",\"'-1\",\"'@SUM(A1)\",\"'\tx\",-,a=b\r\n\
                        -5,\"'=cmd|' /C calc'!\"\"A0\"\"\"\r\n";
        assert_eq!(csv.finish(), expected);
    }
}
