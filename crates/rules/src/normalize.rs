//! Unicode normalisation of values (RELIABILITY I18): `é` as one character or as two is the same client.
//!
//! Off unless a file or namespace sets it: systems that compare bytes see two spellings as two clients. Values are
//! rewritten before they are matched or hashed; names of attributes, addresses, methods and paths are not. ASCII has
//! one form, so it costs one scan.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// Longest value that is rewritten; readers of requests reject longer ones.
const VALUE_BYTES_MAX: usize = 4096;

/// The form in which values are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// As sent.
    #[default]
    None,
    /// Canonical composition: `e` and a combining accent become `é`.
    Nfc,
    /// Compatibility composition: also `ﬁ` becomes `fi`, and full-width letters become ASCII.
    Nfkc,
}

impl Normalize {
    /// Every form.
    pub const ALL: [Normalize; 3] = [Normalize::None, Normalize::Nfc, Normalize::Nfkc];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nfc => "nfc",
            Self::Nfkc => "nfkc",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Option<Normalize> {
        Normalize::ALL.into_iter().find(|form| form.name() == name)
    }

    /// A text in this form.
    pub fn apply(self, text: &str) -> Cow<'_, str> {
        match self.rewritten(text) {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(text),
        }
    }

    /// A text in this form; `None` if it is already.
    pub fn rewritten(self, text: &str) -> Option<String> {
        if self == Self::None || text.is_ascii() || text.len() > VALUE_BYTES_MAX {
            return None;
        }
        let quick = if self == Self::Nfkc { is_nfkc_quick(text.chars()) } else { is_nfc_quick(text.chars()) };
        if quick == IsNormalized::Yes {
            return None;
        }
        let new: String = if self == Self::Nfkc { text.nfkc().collect() } else { text.nfc().collect() };
        (new != text).then_some(new)
    }
}

/// Whether values of an attribute are canonical already: addresses, methods and paths.
pub fn has_canonical_spelling(name: &str) -> bool {
    matches!(name, "ip" | "endpoint" | "method" | "path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_those_of_unicode() {
        // Composed, decomposed, a ligature, a wide letter, a Hangul syllable in parts, a singleton.
        let cases = [
            ("caf\u{e9}", "caf\u{e9}", "caf\u{e9}"),
            ("cafe\u{301}", "caf\u{e9}", "caf\u{e9}"),
            ("\u{fb01}sh", "\u{fb01}sh", "fish"),
            ("\u{ff41}", "\u{ff41}", "a"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}", "\u{d55c}"),
            ("\u{212b}", "\u{c5}", "\u{c5}"),
            ("plain", "plain", "plain"),
        ];
        for (text, nfc, nfkc) in cases {
            assert_eq!(Normalize::None.apply(text), text);
            assert_eq!(Normalize::Nfc.apply(text), nfc, "{text}");
            assert_eq!(Normalize::Nfkc.apply(text), nfkc, "{text}");
            for form in Normalize::ALL {
                let once = form.apply(text).into_owned();
                assert!(matches!(form.apply(&once), Cow::Borrowed(_)), "{text}: a text in its form stays where it is");
            }
        }
        let long = "e\u{301}".repeat(VALUE_BYTES_MAX);
        assert!(matches!(Normalize::Nfc.apply(&long), Cow::Borrowed(_)), "what is refused anyway is not rewritten");
        assert!(Normalize::ALL.into_iter().all(|form| Normalize::from_name(form.name()) == Some(form)));
    }
}
