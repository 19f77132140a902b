//! Help as a page, for browsers without scripts.

use maud::html;

use crate::help::content;
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::response::PageResponse;

/// The page.
pub(super) fn show(operator: &Operator<'_>) -> PageResponse {
    let body = html! { h1 { "Help" } (content()) };
    PageResponse::of(
        Framed { title: "Help", section: NavigationEntry::None, live: None, done: "", body }.markup(operator),
    )
}
