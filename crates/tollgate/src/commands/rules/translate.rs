//! Limits of another limiter, translated before they are imported.

use std::path::Path;

use anyhow::{Result, bail};
use tollgate_rules::translate::{Origin, Translated, translate};

use crate::input::{self, SourceText};
use crate::output::Output;
use crate::render::visible;
use crate::replace::replace;

/// Whose file it is.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ImportFormat {
    /// The file of one domain of envoyproxy/ratelimit
    EnvoyRatelimit,
    /// A limits file of limitador
    Limitador,
}

impl ImportFormat {
    fn origin(self) -> Origin {
        match self {
            ImportFormat::EnvoyRatelimit => Origin::EnvoyRatelimit,
            ImportFormat::Limitador => Origin::Limitador,
        }
    }
}

/// What a file means.
pub struct TranslatedRules {
    /// The rules.
    pub rules: SourceText,
    /// Their namespace.
    pub namespace: String,
    /// No limit of the file was left out.
    pub is_whole: bool,
}

/// The rules that the file means. What could not be said is told as warnings.
pub fn rules_from(
    from: ImportFormat,
    source: &SourceText,
    namespace: Option<&str>,
    out: &mut Output,
) -> Result<TranslatedRules> {
    let translation = translate(from.origin(), &source.name, &source.text)?;
    for note in &translation.notes {
        out.warning(&format!("{}:{}: {}", source.name, note.line, note.message));
    }
    let Translated { namespace, text, .. } = one(&translation.files, namespace)?;
    let is_whole = translation.left_out(&namespace) == 0;
    Ok(TranslatedRules { rules: SourceText { name: format!("what {} means", source.name), text }, namespace, is_whole })
}

/// The one file that is wanted: a rules file is about one namespace.
fn one(files: &[Translated], namespace: Option<&str>) -> Result<Translated> {
    if let Some(wanted) = files.iter().find(|file| Some(file.namespace.as_str()) == namespace) {
        return Ok(wanted.clone());
    }
    match files {
        [] => bail!("nothing in it can be said with rules"),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|file| file.namespace.as_str()).collect();
            bail!("the file is about several namespaces: choose one of {} with --namespace", names.join(", "))
        }
    }
}

/// Writes rules instead of importing them. A file that is there stays, unless it may go.
pub fn write(path: &Path, rules: &SourceText, force: bool, out: &mut Output) -> Result<()> {
    if input::is_stdin(path) {
        out.text(&rules.text)?;
        return Ok(());
    }
    if !force && path.exists() {
        bail!("{} is there already: name another file, or add --force to replace it", visible(&path.to_string_lossy()));
    }
    replace(path, rules.text.as_bytes())?;
    out.line(&format!("wrote {}", visible(&path.to_string_lossy())))?;
    Ok(())
}
