//! Help: the keys, and what the words mean.

use maud::{Markup, html};

const KEYS: [(&str, &str); 8] = [
    ("/", "Find a rule or a client"),
    ("?", "This help"),
    ("g o", "Overview"),
    ("g r", "Rules"),
    ("g c", "Clients"),
    ("g e", "Explain"),
    ("g w", "What if"),
    ("Esc", "Close"),
];

const WORDS: [(&str, &str); 7] = [
    ("rule", "Which requests are counted together, and how many of them may pass. Every rule that matches applies."),
    ("enforce, shadow, off", "A rule enforces its limit, only counts what it would refuse, or does nothing."),
    ("override", "Another number for one client, until a time."),
    ("client", "What a limit is kept for: a key, a user, an address, an organisation."),
    ("generation", "Every change makes one; every decision names the one that it was made under."),
    ("retry after", "When a refused request would pass: exact, so a client that waits so long is served."),
    ("breaker", "Open while the store does not answer; each rule then does what its on_fail says."),
];

/// The help, over any page.
pub(crate) fn dialog() -> Markup {
    html! {
        dialog id="help" aria-label="Help" {
            (content())
            form method="dialog" { button class="button" { "Close" } }
        }
    }
}

/// The help itself.
pub(crate) fn content() -> Markup {
    html! {
        div class="columns help" {
            section {
                h2 { "Keys" }
                dl { @for (key, what) in KEYS { dt { kbd { (key) } } dd { (what) } } }
            }
            section {
                h2 { "Words" }
                dl { @for (word, what) in WORDS { dt { (word) } dd { (what) } } }
            }
        }
    }
}
