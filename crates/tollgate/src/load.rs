//! From the name of a rules file to rules that can decide.

use std::path::Path;

use anyhow::Result;
use tollgate_rules::ruleset::{CompileOptions, RuleSet};
use tollgate_rules::{Report, RuleFile};

use crate::input::{self, SourceText};

/// Rules that were read and compiled.
#[derive(Debug)]
pub struct LoadedRules {
    /// What the file says.
    pub file: RuleFile,
    /// The same, ready to decide.
    pub set: RuleSet,
}

/// Reads and compiles a rules file. An error of type [`Report`] lists everything that is wrong with it.
pub fn rules(path: &Path) -> Result<LoadedRules> {
    Ok(from_source(&input::read(path)?)?)
}

/// The same with the secret of nodes, so that keys are theirs.
pub fn rules_with(path: &Path, options: &CompileOptions) -> Result<LoadedRules> {
    Ok(compiled(&input::read(path)?, options)?)
}

/// The same for a text at hand.
pub fn from_source(source: &SourceText) -> Result<LoadedRules, Report> {
    // Nothing is kept and nobody is served, so the digests need no secret, and print the same in every run.
    compiled(source, &CompileOptions::for_test())
}

fn compiled(source: &SourceText, options: &CompileOptions) -> Result<LoadedRules, Report> {
    let file = tollgate_rules::read(&source.name, &source.text)?;
    let set = RuleSet::compile(std::slice::from_ref(&file), options)
        .map_err(|problems| Report::new(&source.name, &source.text, problems))?;
    Ok(LoadedRules { file, set })
}
