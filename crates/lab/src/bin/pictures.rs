//! Draws the pictures of `docs/ALGORITHMS.md`: `cargo run -p tollgate-lab --bin pictures [-- --check]`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tollgate_lab::pictures::{self, Picture};

const HELP: &str = "\
Drives the algorithms of tollgate-core through a load and draws what they admit.

usage: pictures [--check] [FOLDER]

  --check   compare with the files that are there, and write nothing
  --help    this text
  FOLDER    where the pictures are; docs/img/algorithms of this repository if not given

Prints each picture's name and the figures measured while drawing it.
Exit code: 0 if all was written or is current, 1 if a picture is stale, 2 if an argument is wrong.
";

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(None) => {
            write!(out, "{HELP}")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(arguments)) if arguments.check => check(&arguments.folder, &mut out),
        Ok(Some(arguments)) => draw(&arguments.folder, &mut out),
        Err(problem) => {
            writeln!(io::stderr(), "pictures: {problem}\n\n{HELP}")?;
            Ok(ExitCode::from(2))
        }
    }
}

struct Arguments {
    check: bool,
    folder: PathBuf,
}

impl Arguments {
    /// `None` if help is wanted.
    fn parse(words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut arguments = Arguments { check: false, folder: root.join(pictures::FOLDER) };
        for word in words {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--check" => arguments.check = true,
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
                _ => arguments.folder = word.into(),
            }
        }
        Ok(Some(arguments))
    }
}

fn draw(folder: &Path, out: &mut impl Write) -> io::Result<ExitCode> {
    for picture in pictures::all() {
        picture.write(folder)?;
        describe(&picture, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(folder: &Path, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut stale = 0;
    for picture in pictures::all() {
        if !picture.is_current(folder) {
            writeln!(out, "stale: {}", picture.file())?;
            stale += 1;
        }
    }
    if stale > 0 {
        writeln!(out, "{stale} stale; draw them with: cargo run -p tollgate-lab --bin pictures")?;
        return Ok(ExitCode::FAILURE);
    }
    writeln!(out, "all pictures are current")?;
    Ok(ExitCode::SUCCESS)
}

fn describe(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{} ({} bytes)\n  {}", picture.file(), picture.svg.len(), picture.caption)
}
