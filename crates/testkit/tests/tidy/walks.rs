//! The walks of `docs/ARCHITECTURE.md`: the files that a reader opens to follow one question exist, and a walk does not
//! grow beyond the bound that it states.

use crate::expect_none;
use crate::tree;

const PAGE: &str = "docs/ARCHITECTURE.md";

/// Questions that have a walk.
const WALKS: usize = 5;

/// One paragraph of the section.
struct Walk<'a> {
    title: &'a str,
    most: usize,
    files: Vec<&'a str>,
}

#[test]
fn every_file_of_a_walk_exists() {
    let page = tree::text_of(PAGE).expect("the page is there");
    let offences = walks(page).into_iter().flat_map(|walk| {
        let gone = walk.files.iter().filter(|file| tree::paths().binary_search(&format!("crates/{file}")).is_err());
        gone.map(|file| format!("{}: {file}", walk.title)).collect::<Vec<String>>()
    });
    expect_none(offences.collect(), "Name the file that has the code now.");
}

#[test]
fn a_walk_stays_within_its_bound() {
    let page = tree::text_of(PAGE).expect("the page is there");
    let walks = walks(page);
    assert_eq!(walks.len(), WALKS, "the walks of {PAGE}");
    let offences = walks.iter().filter(|walk| walk.files.is_empty() || walk.files.len() > walk.most);
    let offences = offences.map(|walk| format!("{}: {} files, at most {}", walk.title, walk.files.len(), walk.most));
    expect_none(offences.collect(), "Bring together what is only read together; do not raise the bound.");
}

/// The paragraphs that state a bound, with the files up to the end of the sentence that lists them.
fn walks(page: &str) -> Vec<Walk<'_>> {
    let section = page.split("\n## Walks\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    section.split("\n\n").filter_map(walk).collect()
}

fn walk(paragraph: &str) -> Option<Walk<'_>> {
    let paragraph = paragraph.trim();
    let (title, rest) = paragraph.strip_prefix("**")?.split_once("**")?;
    let (most, list) = rest.split_once("at most ")?.1.split_once(':')?;
    // The list ends where no arrow follows a file.
    let mut files = Vec::new();
    for step in list.split('→') {
        let (file, after) = step.trim_start().strip_prefix('`')?.split_once('`')?;
        files.push(file);
        if !after.trim().is_empty() {
            break;
        }
    }
    Some(Walk { title, most: most.trim().parse().ok()?, files })
}

#[test]
fn a_walk_is_read_up_to_the_end_of_its_list() {
    let page = "# Page\n\n## Walks\n\nText, at most 9: none.\n\n**A question**, from here on, at most 3: `a/x.rs` →\n`b/y.rs`. In \
                other cases `c/z.rs` → `d.rs`.\n\n## More\n\n**No walk**, at most 1: `e.rs`.\n";
    let found = walks(page);
    let found: Vec<(&str, usize, &[&str])> =
        found.iter().map(|walk| (walk.title, walk.most, walk.files.as_slice())).collect();
    assert_eq!(found, [("A question", 3, &["a/x.rs", "b/y.rs"][..])]);
}
