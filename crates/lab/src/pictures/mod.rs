//! The pictures of `docs/ALGORITHMS.md`: what each algorithm of `tollgate-core` admits over time.
//!
//! Nothing here is drawn by hand or computed from a formula: the real code runs under a load with a simulated clock, and
//! its outcomes are plotted. The same code gives the same text, so `pictures --check` and a test find a picture that no
//! longer fits the code.
//!
//! | module | draws |
//! |---|---|
//! | `rates` | one picture for each of the algorithms that count requests, all under the same load |
//! | `queue`, `slots` | the same load on a queue and on slots, where other things are worth seeing |
//! | `compared` | all of them together, and the burst around the turn of a window |
//! | `clock` | a clock that steps back |
//! | `soft` | how often a soft limit refuses |
//! | `waits` | the waiting times that an answer carries |

mod clock;
mod compared;
mod load;
mod measure;
mod queue;
mod rates;
mod slots;
mod soft;
mod waits;

use std::path::Path;
use std::{fs, io};

/// Where the pictures live, from the root of the repository.
pub const FOLDER: &str = "docs/img/algorithms";

/// One picture, with the figures that the page quotes.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of its file, without the ending.
    pub name: &'static str,
    /// Its figures, in a sentence or two.
    pub caption: String,
    /// The SVG text.
    pub svg: String,
}

impl Picture {
    /// The name of its file.
    pub fn file(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// True if `folder` holds this picture as it is drawn today. Line ends do not count: some checkouts change them.
    pub fn is_current(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join(self.file())).is_ok_and(|text| text.replace('\r', "") == self.svg)
    }

    /// Puts the picture into `folder`.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(self.file()), &self.svg)
    }
}

/// All pictures, in the order in which the page shows them.
pub fn all() -> Vec<Picture> {
    let mut pictures = vec![compared::together(), compared::boundary()];
    pictures.extend(rates::all());
    pictures.extend([queue::draw(), slots::draw(), waits::draw(), soft::draw(), clock::draw()]);
    pictures
}
