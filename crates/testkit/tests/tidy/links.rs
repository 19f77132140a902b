//! Relative links in Markdown files point at files that are there.

use crate::expect_none;
use crate::tree;

#[test]
fn links_lead_somewhere() {
    let mut offences = Vec::new();
    for file in tree::texts_ending_in(".md") {
        for (number, line) in prose(&file.text) {
            for link in links(&line).into_iter().filter(|link| is_relative(link)) {
                if !target(&file.path, &link).is_some_and(|path| exists(&path)) {
                    offences.push(format!("{}:{number}: {link}", file.path));
                }
            }
        }
    }
    expect_none(offences, "Correct the path; it is relative to the page, and the file must be committed.");
}

/// The numbered lines outside of code blocks, without what stands in backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let marker = ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (None, None) => lines.push((index + 1, line.split('`').step_by(2).collect())),
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
        }
    }
    lines
}

/// `[text](link "title")`, `[name]: link`, and the `src="link"` and `href="link"` of inline HTML.
fn links(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let named = line.starts_with('[').then(|| line.split_once("]: ")).flatten();
    let named = named.and_then(|(_, rest)| rest.split(' ').next());
    let html = ["src=\"", "href=\""].into_iter().flat_map(|attribute| line.split(attribute).skip(1));
    let html = html.filter_map(|rest| rest.split('"').next());
    let all = inline.chain(named).chain(html);
    all.map(|link| link.trim_matches(['<', '>']).to_owned()).collect()
}

fn is_relative(link: &str) -> bool {
    !link.is_empty() && !link.starts_with('#') && !link.contains("://") && !link.starts_with("mailto:")
}

/// Where the link leads, from the root; `None` above it.
fn target(page: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or(link);
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A file of the repository, a folder that holds one, or the root.
fn exists(path: &str) -> bool {
    let is_there = |file: &String| {
        file.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'))
    };
    tree::paths().iter().any(is_there)
}

#[test]
fn finds_links_in_prose_only() {
    let page = "[a](b.md#c) `[no](no.md)` ![d](e/f.svg \"g\")\n```\n[no](no.md)\n```\n[h]: i.md\n<img src=\"j.png\">\n";
    let found: Vec<String> = prose(page).iter().flat_map(|(_, line)| links(line)).collect();
    assert_eq!(found, ["b.md#c", "e/f.svg", "i.md", "j.png"]);
}

#[test]
fn resolves_against_the_page() {
    assert_eq!(target("docs/a.md", "../crates/core#x").as_deref(), Some("crates/core"));
    assert_eq!(target("README.md", "./docs/").as_deref(), Some("docs"));
    assert_eq!(target("README.md", "../outside.md"), None);
}
