//! Licence expressions: `OR`, `AND`, `WITH`, parentheses, and the old `/` for `OR`.
//!
//! `AND` binds tighter than `OR`; `A WITH B` is one licence, allowed only if it is listed as such.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Whether some way of reading the expression needs only allowed licences. What cannot be read is not allowed.
pub fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let mut reader = Reader { words: words(expression).into_iter().peekable(), allowed };
    reader.any_of() == Some(true) && reader.words.next().is_none()
}

struct Reader<'a> {
    words: Peekable<IntoIter<String>>,
    allowed: &'a [String],
}

impl Reader<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut verdict = self.all_of()?;
        while self.skip("OR") {
            verdict |= self.all_of()?;
        }
        Some(verdict)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut verdict = self.licence()?;
        while self.skip("AND") {
            verdict &= self.licence()?;
        }
        Some(verdict)
    }

    fn licence(&mut self) -> Option<bool> {
        if self.skip("(") {
            let verdict = self.any_of()?;
            return self.skip(")").then_some(verdict);
        }
        let mut name = self.words.next()?;
        if self.skip("WITH") {
            name = format!("{name} WITH {}", self.words.next()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn skip(&mut self, word: &str) -> bool {
        self.words.next_if(|next| next == word).is_some()
    }
}

fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn reads_licence_expressions() {
    let allowed = ["MIT", "Apache-2.0", "NCSA", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    let yes = [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR GPL-3.0) AND NCSA",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        "GPL-3.0 AND ISC OR MIT",
    ];
    let no = [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT WITH LLVM-exception",
        "(MIT OR Apache-2.0) AND GPL-3.0",
        "MIT OR",
        "(MIT",
        "MIT)",
        "MIT Apache-2.0",
    ];
    for expression in yes {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in no {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}
