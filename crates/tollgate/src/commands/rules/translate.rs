//! Limits of another limiter, translated before they are imported.

use std::path::Path;

use anyhow::{Result, bail};
use tollgate_rules::translate::{Origin, Translated, translate};

use crate::input::{self, Source};
use crate::output::Output;
use crate::render::visible;
use crate::replace::replace;

/// Whose file it is.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum From {
    /// The file of one domain of envoyproxy/ratelimit
    EnvoyRatelimit,
    /// A limits file of limitador
    Limitador,
}

impl From {
    fn origin(self) -> Origin {
        match self {
            From::EnvoyRatelimit => Origin::EnvoyRatelimit,
            From::Limitador => Origin::Limitador,
        }
    }
}

/// The rules that the file means, and their namespace. What could not be said is told as warnings.
pub fn rules_from(from: From, source: &Source, namespace: Option<&str>, out: &mut Output) -> Result<(Source, String)> {
    let translation = translate(from.origin(), &source.name, &source.text)?;
    for note in &translation.notes {
        out.warning(&format!("{}:{}: {}", source.name, note.line, note.message));
    }
    let Translated { namespace, text, .. } = one(translation.files, namespace)?;
    Ok((Source { name: format!("what {} means", source.name), text }, namespace))
}

/// The one file that is wanted: a rules file is about one namespace.
fn one(mut files: Vec<Translated>, namespace: Option<&str>) -> Result<Translated> {
    if let Some(place) = files.iter().position(|file| Some(file.namespace.as_str()) == namespace) {
        return Ok(files.swap_remove(place));
    }
    match files.pop() {
        None => bail!("nothing in it can be said with rules"),
        Some(only) if files.is_empty() => Ok(only),
        Some(last) => {
            let names: Vec<&str> = files.iter().chain([&last]).map(|file| file.namespace.as_str()).collect();
            bail!("the file is about several namespaces: choose one of {} with --namespace", names.join(", "))
        }
    }
}

/// Writes rules instead of importing them.
pub fn write(path: &Path, rules: &Source, out: &mut Output) -> Result<()> {
    if input::is_stdin(path) {
        out.text(&rules.text)?;
        return Ok(());
    }
    replace(path, rules.text.as_bytes())?;
    out.line(&format!("wrote {}", visible(&path.to_string_lossy())))?;
    Ok(())
}
