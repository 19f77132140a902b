//! Input files of bounded size, or standard input. Neither the type nor the size of a file is trusted.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use tollgate_rules::{read::decode, yaml};

/// Longest input accepted: the limit of the rules reader.
pub const BYTES_MAX: u64 = yaml::TEXT_BYTES_MAX as u64;

/// The text of a file, and the name under which it is reported.
#[derive(Debug)]
pub struct SourceText {
    /// The name as given on the command line.
    pub name: String,
    /// The content.
    pub text: String,
}

/// Reads a file, or standard input for `-`. An error of type [`tollgate_rules::Report`] means that it is not UTF-8.
pub fn read(path: &Path) -> Result<SourceText> {
    let (name, bytes) = match is_stdin(path) {
        true => ("<stdin>".to_owned(), read_bounded(io::stdin().lock(), "standard input")?),
        false => (path.to_string_lossy().into_owned(), read_file(path)?),
    };
    let text = decode(&name, &bytes)?.to_owned();
    Ok(SourceText { name, text })
}

/// True for `-`.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    let name = path.to_string_lossy();
    // Checked before it is opened, because opening a FIFO blocks; and after, because the file may have been replaced.
    regular(fs::metadata(path).map_err(|error| unreadable(&name, &error))?.file_type(), &name)?;
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    let facts = file.metadata().with_context(|| format!("cannot read {name}"))?;
    regular(facts.file_type(), &name)?;
    if facts.len() > BYTES_MAX {
        bail!("{name} is too large: {} bytes, at most {BYTES_MAX} are read", facts.len());
    }
    read_bounded(file, &name)
}

fn unreadable(name: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("cannot read {name}: there is no such file"),
        ErrorKind::PermissionDenied => anyhow::anyhow!("cannot read {name}: permission denied"),
        _ => anyhow::anyhow!("cannot read {name}: {error}"),
    }
}

fn regular(kind: FileType, name: &str) -> Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        bail!("{name} is a directory: name a file in it");
    }
    bail!("{name} is not a regular file: use - to read from a pipe");
}

fn read_bounded(reader: impl Read, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("{name} is too large: at most {BYTES_MAX} bytes are read");
    }
    Ok(bytes)
}
