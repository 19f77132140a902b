//! The families of header fields, as one table: a style is a list of fields, a field a list of parts.
//!
//! There is no RFC yet, and every revision of the draft renamed something. The next renaming changes a word in this
//! table; the code that writes fields knows no names.

use std::str::FromStr;

use tollgate_rules::nearest;
use tollgate_rules::problem::ParseError;

/// A family of header fields that some client or gateway understands.
#[derive(Debug)]
pub struct HeaderStyle {
    /// Its names, the one we use first.
    pub names: &'static [&'static str],
    /// Its fields.
    pub fields: &'static [HeaderField],
}

/// A header field: runs of items, joined by commas.
#[derive(Debug)]
pub struct HeaderField {
    /// Its name, in its original spelling.
    pub name: &'static str,
    /// Which policies it lists, and the parts of each.
    pub runs: &'static [(PolicySelector, HeaderItem)],
}

/// The parts of an item, each with the text before it. A part without a value is omitted with that text.
pub type HeaderItem = &'static [(&'static str, HeaderPart)];

/// Which policies a run of items is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySelector {
    /// The deciding rule's.
    Deciding,
    /// Those of every rule that limits the request.
    Every,
    /// The first with a window of so many seconds; without one the field is left out.
    Window(u64),
}

/// One value of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPart {
    /// The rule's name, as a structured field's string.
    Name,
    /// The resource of the rule, unquoted.
    Resource,
    /// Units per window.
    Quota,
    /// The window in seconds, if there is one.
    Window,
    /// The capacity, where it is not the quota.
    Burst,
    /// What is counted, where it is not requests.
    Unit,
    /// The partition key, if there is one.
    Partition,
    /// The capacity.
    Limit,
    /// What could pass now.
    Remaining,
    /// What is in use.
    Used,
    /// Seconds until `remaining` grows, if it will.
    Next,
    /// The same, 0 if it will not.
    NextOrZero,
    /// Seconds until the limit is as if unused.
    ResetIn,
    /// The same as seconds since 1970.
    ResetAt,
}

/// A field with one value of the deciding rule.
macro_rules! one {
    ($name:literal, $part:ident) => {
        HeaderField { name: $name, runs: &[(PolicySelector::Deciding, &[("", HeaderPart::$part)])] }
    };
}

/// A field with one value of the rule with a certain window.
macro_rules! per {
    ($name:literal, $window:literal, $part:ident) => {
        HeaderField { name: $name, runs: &[(PolicySelector::Window($window), &[("", HeaderPart::$part)])] }
    };
}

/// The list of policies as older drafts have it, without names.
const NAMELESS_POLICIES: HeaderField = HeaderField {
    name: "RateLimit-Policy",
    runs: &[(
        PolicySelector::Every,
        &[("", HeaderPart::Quota), (";w=", HeaderPart::Window), (";tollgate-burst=", HeaderPart::Burst)],
    )],
};

/// Every style, in the order of the fields in a response.
///
/// The drafts' `t` and `reset` are [`HeaderPart::Next`]: draft 11 wants the time in which no more than `r` can be used,
/// the older ones want it no later than `Retry-After`, and the time to a full bucket is neither. `X-RateLimit-Reset` is
/// the full reset and agrees with `reset_at` in the body.
pub static STYLES: [HeaderStyle; 10] = [
    HeaderStyle {
        names: &["x-ratelimit"],
        fields: &[
            one!("X-RateLimit-Limit", Limit),
            one!("X-RateLimit-Remaining", Remaining),
            one!("X-RateLimit-Reset", ResetAt),
            one!("X-RateLimit-Resource", Resource),
        ],
    },
    HeaderStyle {
        names: &["x-ratelimit-delta"],
        fields: &[
            one!("X-RateLimit-Limit", Limit),
            one!("X-RateLimit-Remaining", Remaining),
            one!("X-RateLimit-Reset", ResetIn),
            one!("X-RateLimit-Resource", Resource),
        ],
    },
    HeaderStyle {
        names: &["github"],
        fields: &[
            one!("X-RateLimit-Limit", Limit),
            one!("X-RateLimit-Remaining", Remaining),
            one!("X-RateLimit-Used", Used),
            one!("X-RateLimit-Reset", ResetAt),
            one!("X-RateLimit-Resource", Resource),
        ],
    },
    HeaderStyle {
        names: &["twitter"],
        fields: &[
            one!("x-rate-limit-limit", Limit),
            one!("x-rate-limit-remaining", Remaining),
            one!("x-rate-limit-reset", ResetAt),
            one!("x-rate-limit-resource", Resource),
        ],
    },
    HeaderStyle {
        names: &["envoy"],
        fields: &[
            HeaderField {
                name: "X-RateLimit-Limit",
                runs: &[
                    (PolicySelector::Deciding, &[("", HeaderPart::Limit)]),
                    (
                        PolicySelector::Every,
                        &[("", HeaderPart::Quota), (";w=", HeaderPart::Window), (";name=", HeaderPart::Name)],
                    ),
                ],
            },
            one!("X-RateLimit-Remaining", Remaining),
            one!("X-RateLimit-Reset", ResetIn),
        ],
    },
    HeaderStyle {
        names: &["kong"],
        fields: &[
            per!("X-RateLimit-Limit-Second", 1, Limit),
            per!("X-RateLimit-Remaining-Second", 1, Remaining),
            per!("X-RateLimit-Limit-Minute", 60, Limit),
            per!("X-RateLimit-Remaining-Minute", 60, Remaining),
            per!("X-RateLimit-Limit-Hour", 3600, Limit),
            per!("X-RateLimit-Remaining-Hour", 3600, Remaining),
            per!("X-RateLimit-Limit-Day", 86_400, Limit),
            per!("X-RateLimit-Remaining-Day", 86_400, Remaining),
        ],
    },
    HeaderStyle {
        names: &["draft-11", "draft-10", "draft-09", "draft-08"],
        fields: &[
            HeaderField {
                name: "RateLimit-Policy",
                runs: &[(
                    PolicySelector::Every,
                    &[
                        ("", HeaderPart::Name),
                        (";q=", HeaderPart::Quota),
                        (";qu=", HeaderPart::Unit),
                        (";w=", HeaderPart::Window),
                        (";pk=", HeaderPart::Partition),
                        (";tollgate-burst=", HeaderPart::Burst),
                    ],
                )],
            },
            HeaderField {
                name: "RateLimit",
                runs: &[(
                    PolicySelector::Every,
                    &[
                        ("", HeaderPart::Name),
                        (";r=", HeaderPart::Remaining),
                        (";t=", HeaderPart::Next),
                        (";pk=", HeaderPart::Partition),
                    ],
                )],
            },
        ],
    },
    HeaderStyle {
        names: &["draft-07"],
        fields: &[
            NAMELESS_POLICIES,
            HeaderField {
                name: "RateLimit",
                runs: &[(
                    PolicySelector::Deciding,
                    &[
                        ("limit=", HeaderPart::Limit),
                        (", remaining=", HeaderPart::Remaining),
                        (", reset=", HeaderPart::NextOrZero),
                    ],
                )],
            },
        ],
    },
    HeaderStyle {
        names: &["draft-06", "draft-05", "draft-04"],
        fields: &[
            NAMELESS_POLICIES,
            one!("RateLimit-Limit", Limit),
            one!("RateLimit-Remaining", Remaining),
            one!("RateLimit-Reset", NextOrZero),
        ],
    },
    HeaderStyle {
        names: &["ratelimit-epoch"],
        fields: &[
            one!("RateLimit-Limit", Limit),
            one!("RateLimit-Remaining", Remaining),
            one!("RateLimit-Reset", ResetAt),
        ],
    },
];

impl HeaderStyle {
    /// The name we use.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// A field that both would write.
    fn clash(&self, other: &HeaderStyle) -> Option<&'static str> {
        let writes = |field: &&HeaderField| other.fields.iter().any(|twin| twin.name.eq_ignore_ascii_case(field.name));
        self.fields.iter().find(writes).map(|field| field.name)
    }
}

/// The enabled styles: a set of rows of [`STYLES`], no two of which write the same field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderStyles(u16);

impl HeaderStyles {
    /// No fields about limits at all; `Retry-After` is sent regardless.
    pub const NONE: HeaderStyles = HeaderStyles(0);

    /// The styles, in the order of the table.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = &'static HeaderStyle> {
        STYLES.iter().enumerate().filter(move |(index, _)| self.0 & (1 << index) != 0).map(|(_, style)| style)
    }

    fn with(self, text: &str) -> Result<HeaderStyles, ParseError> {
        let Some(index) = STYLES.iter().position(|style| style.names.contains(&text)) else {
            return Err(unknown(text));
        };
        let new = HeaderStyles(1 << index);
        let clash = new.iter().find_map(|new| self.iter().find_map(|old| Some((old, new, new.clash(old)?))));
        match clash {
            Some((old, new, _)) if old.name() == new.name() => {
                Err(ParseError::new(format!("the header style `{}` is named twice", old.name()), "name it once"))
            }
            Some((old, new, field)) => Err(ParseError::new(
                format!("the header styles `{}` and `{}` both write {field}", old.name(), new.name()),
                "choose one of them",
            )),
            None => Ok(HeaderStyles(self.0 | new.0)),
        }
    }
}

/// The styles of most clients in use, and of those to come.
impl Default for HeaderStyles {
    fn default() -> Self {
        let usual = |style: &HeaderStyle| matches!(style.name(), "x-ratelimit" | "draft-11");
        let indices = STYLES.iter().enumerate().filter(|(_, style)| usual(style));
        indices.fold(HeaderStyles::NONE, |styles, (index, _)| HeaderStyles(styles.0 | 1 << index))
    }
}

impl FromStr for HeaderStyles {
    type Err = ParseError;

    /// Reads names with commas between them: `x-ratelimit,draft-11`; or `none`.
    fn from_str(text: &str) -> Result<HeaderStyles, ParseError> {
        if matches!(text.trim(), "none" | "off") {
            return Ok(HeaderStyles::NONE);
        }
        text.split(',').map(str::trim).try_fold(HeaderStyles::NONE, HeaderStyles::with)
    }
}

impl std::fmt::Display for HeaderStyles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == HeaderStyles::NONE {
            return f.write_str("none");
        }
        self.iter().enumerate().try_for_each(|(index, style)| {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(style.name())
        })
    }
}

fn unknown(text: &str) -> ParseError {
    let names = || STYLES.iter().flat_map(|style| style.names).copied();
    let known = names().collect::<Vec<_>>().join(", ");
    let help = match nearest(text, names()) {
        Some(meant) => format!("did you mean `{meant}`? There are {known}, and none"),
        None if text == "none" => "write `none` alone".to_owned(),
        None => format!("there are {known}, and none"),
    };
    ParseError::new(format!("`{text}` is no header style"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_read_by_any_of_their_names() {
        let read = |text: &str| text.parse::<HeaderStyles>().map(|styles| styles.to_string());
        assert_eq!(HeaderStyles::default().to_string(), "x-ratelimit,draft-11");
        assert_eq!(read("draft-09, x-ratelimit"), Ok("x-ratelimit,draft-11".to_owned()));
        assert_eq!(read("draft-04"), Ok("draft-06".to_owned()));
        assert_eq!(read("kong,twitter,envoy"), Ok("twitter,envoy,kong".to_owned()));
        assert_eq!(read("none"), Ok("none".to_owned()));
        for style in &STYLES {
            assert_eq!(read(style.name()), Ok(style.name().to_owned()));
        }
    }

    #[test]
    fn styles_that_write_the_same_field_are_refused() {
        let fault = |text: &str| text.parse::<HeaderStyles>().expect_err(text).to_string();
        assert_eq!(
            fault("x-ratelimit,github"),
            "the header styles `x-ratelimit` and `github` both write X-RateLimit-Limit; choose one of them"
        );
        assert_eq!(
            fault("draft-11,twitter,draft-07"),
            "the header styles `draft-11` and `draft-07` both write RateLimit-Policy; choose one of them"
        );
        assert_eq!(fault("draft-11,draft-08"), "the header style `draft-11` is named twice; name it once");
        assert!(fault("draft11").starts_with("`draft11` is no header style; did you mean `draft-11`? There are x-rat"));
        assert_eq!(fault("github,none"), "`none` is no header style; write `none` alone");
        assert!(fault("").starts_with("`` is no header style; there are "));
    }

    #[test]
    fn no_style_writes_a_field_twice() {
        for style in &STYLES {
            for (index, field) in style.fields.iter().enumerate() {
                let later = &style.fields[index + 1..];
                assert!(later.iter().all(|twin| !twin.name.eq_ignore_ascii_case(field.name)), "{}", style.name());
            }
        }
    }
}
