//! The pictures in the documents are those that the code draws, and the page shows every one of them with its figures.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate_lab::pictures::{self, FOLDER};

const BYTES_MAX: usize = 40 << 10;

/// Asked at run time first: clones that share a target folder share this binary too, and each means itself.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("../..")
}

#[test]
fn pictures_are_current() {
    let folder = root().join(FOLDER);
    let stale = pictures::all().into_iter().filter(|picture| !picture.is_current(&folder));
    let stale: Vec<String> = stale.map(|picture| picture.file()).collect();
    assert!(
        stale.is_empty(),
        "stale in {FOLDER}: {}\nLook at what changed, then draw them anew: \
         cargo run -p tollgate-lab --bin pictures",
        stale.join(", ")
    );
}

#[test]
fn pictures_are_small() {
    for picture in pictures::all() {
        assert!(picture.svg.len() <= BYTES_MAX, "{}: {} bytes", picture.file(), picture.svg.len());
    }
}

#[test]
fn no_picture_is_left_over() {
    let files: Vec<String> = pictures::all().iter().map(pictures::Picture::file).collect();
    let found = fs::read_dir(root().join(FOLDER)).expect("the folder of the pictures is there");
    for entry in found {
        let name = entry.expect("an entry can be read").file_name().into_string().expect("names are UTF-8");
        assert!(files.contains(&name), "{FOLDER}/{name} is not drawn by anything");
    }
}

#[test]
fn the_page_shows_every_picture_and_quotes_its_figures() {
    let page = fs::read_to_string(root().join("docs/ALGORITHMS.md")).expect("the page is there");
    let unquoted = page.lines().map(|line| line.trim_start_matches("> "));
    let page = unquoted.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    for picture in pictures::all() {
        assert!(page.contains(&format!("(img/algorithms/{})", picture.file())), "{} is not shown", picture.file());
        assert!(page.contains(&picture.caption), "{}: the page should say\n  {}", picture.file(), picture.caption);
    }
}
