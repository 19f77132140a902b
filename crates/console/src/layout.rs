//! The frame of every page: head, navigation, search, and who is signed in.

use maud::{DOCTYPE, Markup, html};

use crate::help::dialog;
use crate::json::text;
use crate::operator::Operator;

/// A page inside the frame.
pub(crate) struct Framed<'a> {
    /// Its title.
    pub(crate) title: &'a str,
    /// The entry of the navigation that is lit.
    pub(crate) section: NavigationEntry,
    /// The target of its live numbers, if it has some: `/console/live?page=…`.
    pub(crate) live: Option<String>,
    /// The code of what was just done: `?done=` of the URL.
    pub(crate) done: &'a str,
    /// Its content.
    pub(crate) body: Markup,
}

/// Entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationEntry {
    Overview,
    Rules,
    Clients,
    Explain,
    WhatIf,
    History,
    Access,
    System,
    None,
}

const NAVIGATION: [(NavigationEntry, &str, &str); 8] = [
    (NavigationEntry::Overview, "/", "Overview"),
    (NavigationEntry::Rules, "/console/rules", "Rules"),
    (NavigationEntry::Clients, "/console/clients", "Clients"),
    (NavigationEntry::Explain, "/console/explain", "Explain"),
    (NavigationEntry::WhatIf, "/console/what-if", "What if"),
    (NavigationEntry::History, "/console/audit", "History"),
    (NavigationEntry::Access, "/console/access", "Access"),
    (NavigationEntry::System, "/console/system", "System"),
];

/// What a change did, by its code. Only these texts can be shown: a link cannot put words on a page.
const DONE: &[(&str, &str)] = &[
    ("rule-saved", "The rule is saved, and in force on every node within two seconds."),
    ("rule-deleted", "The rule is deleted."),
    ("rule-mode", "The mode of the rule is switched."),
    ("override-created", "The override is in force."),
    ("override-ended", "The override has ended."),
    ("client-saved", "The client is saved."),
    ("counter-reset", "The counters are reset."),
    ("penalty-lifted", "The penalty is lifted."),
    ("reverted", "The change is reverted."),
    ("rolled-back", "The namespace is as it was at that generation."),
    ("mode-set", "The mode is set."),
    ("token-revoked", "The token is revoked: it and its sessions end now."),
    ("key-revoked", "The key is revoked."),
    ("webhook-tested", "A test event was sent: the delivery log says how it ended."),
    ("webhook-saved", "The webhook is saved."),
    ("webhook-deleted", "The webhook is deleted."),
];

impl Framed<'_> {
    /// The whole document.
    pub(crate) fn markup(self, operator: &Operator<'_>) -> Markup {
        let Framed { title, section, live, done, body } = self;
        let done = DONE.iter().find(|(code, _)| *code == done).map(|(_, text)| *text);
        document(
            title,
            html! {
                a class="skip" href="#main" { "Skip to content" }
                header class="top" {
                    a class="brand" href="/" { (logo()) "Tollgate" }
                    form class="search" role="search" action="/console/search" {
                        input type="search" name="q" id="search" placeholder="Find a rule or client" aria-label="Find a rule or client" autocomplete="off" maxlength="200";
                        kbd { "/" }
                        div id="found" hidden {}
                    }
                    details class="menu" {
                        summary { span class="who" { (text(&operator.whoami, "name")) } " " span class="role" { (operator.role()) } }
                        form method="post" action="/console/sign-out" {
                            (form_token(operator))
                            a href="/console/help" { "Help and keys" }
                            a href="/docs" { "Admin API" }
                            a href="/console/data-api" { "Data API" }
                            button { "Sign out" }
                        }
                    }
                }
                nav aria-label="Pages" {
                    @for (entry, path, name) in NAVIGATION {
                        a href=(path) aria-current=[(entry == section).then_some("page")] { (name) }
                    }
                }
                main id="main" tabindex="-1" data-live=[live] {
                    @if let Some(done) = done { p class="note good" role="status" { (done) } }
                    (body)
                }
                (dialog())
            },
        )
    }
}

/// A page without navigation: sign-in, and problems.
pub(crate) fn bare(title: &str, body: Markup) -> Markup {
    document(title, html! { main class="bare" id="main" { p class="brand" { (logo()) "Tollgate" } (body) } })
}

/// The hidden field that proves a form to be ours.
pub(crate) fn form_token(operator: &Operator<'_>) -> Markup {
    html! { input type="hidden" name="form_token" value=(operator.form_token); }
}

fn document(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " · Tollgate" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="/console/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/console/style.css";
                script src="/console/script.js" type="module" {}
            }
            body { (body) }
        }
    }
}

fn logo() -> Markup {
    html! {
        svg class="logo" viewBox="0 0 32 32" aria-hidden="true" {
            rect width="32" height="32" rx="7" {}
            path d="M9 24V9m14 15V9" {}
            path class="bar" d="M9 14h14" {}
        }
    }
}
