//! Translation of limits of other limiters, before they are imported.

use std::path::Path;

use anyhow::{Result, bail};
use tollgate_rules::translate::{SourceFormat, TranslatedFile, translate};

use crate::input::{self, SourceText};
use crate::output::Output;
use crate::replace::replace;
use tollgate_terminal::visible;

/// The format of a file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ImportFormat {
    /// The file of one domain of envoyproxy/ratelimit
    EnvoyRatelimit,
    /// A limits file of limitador
    Limitador,
}

impl ImportFormat {
    fn origin(self) -> SourceFormat {
        match self {
            ImportFormat::EnvoyRatelimit => SourceFormat::EnvoyRatelimit,
            ImportFormat::Limitador => SourceFormat::Limitador,
        }
    }
}

/// The translation of a file.
pub struct TranslatedRules {
    /// The rules file.
    pub rules: SourceText,
    /// The namespace of the rules.
    pub namespace: String,
    /// True if no limit of the file was omitted.
    pub is_whole: bool,
}

/// Translates a file. Limits that cannot be translated exactly are reported as warnings.
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
    let TranslatedFile { namespace, text, .. } = one(&translation.files, namespace)?;
    let is_whole = translation.left_out(&namespace) == 0;
    Ok(TranslatedRules { rules: SourceText { name: format!("what {} means", source.name), text }, namespace, is_whole })
}

/// The file of one namespace: a rules file has one.
fn one(files: &[TranslatedFile], namespace: Option<&str>) -> Result<TranslatedFile> {
    if let Some(wanted) = files.iter().find(|file| Some(file.namespace.as_str()) == namespace) {
        return Ok(wanted.clone());
    }
    match files {
        [] => bail!("no limit of the file can be translated"),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|file| file.namespace.as_str()).collect();
            bail!("the file has several namespaces: choose one of {} with --namespace", names.join(", "))
        }
    }
}

/// Writes the rules instead of importing them. An existing file is replaced only with --force.
pub fn write(path: &Path, rules: &SourceText, force: bool, out: &mut Output) -> Result<()> {
    if input::is_stdin(path) {
        out.text(&rules.text)?;
        return Ok(());
    }
    if !force && path.exists() {
        bail!("{} exists: name another file, or add --force to replace it", visible(&path.to_string_lossy()));
    }
    replace(path, rules.text.as_bytes())?;
    out.line(&format!("wrote {}", visible(&path.to_string_lossy())))?;
    Ok(())
}
