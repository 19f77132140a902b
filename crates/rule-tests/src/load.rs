//! Reads and compiles rules files.

use std::path::Path;

use anyhow::Result;
use tollgate_rules::{Report, RuleFile};
use tollgate_ruleset::{CompileOptions, RuleSet};

use crate::input::{self, SourceText};

/// A rules file that was read and compiled.
#[derive(Debug)]
pub struct LoadedRules {
    /// The content of the file.
    pub file: RuleFile,
    /// The compiled rules.
    pub set: RuleSet,
}

/// Reads and compiles a rules file. An error of type [`Report`] lists all its problems.
pub fn rules(path: &Path) -> Result<LoadedRules> {
    Ok(from_source(&input::read(path)?)?)
}

/// The same with the secret of the nodes, which determines the keys of buckets, after `change` of the file's content.
pub fn rules_with(
    path: &Path,
    options: &CompileOptions,
    change: impl FnOnce(&mut RuleFile) -> Result<()>,
) -> Result<LoadedRules> {
    let source = input::read(path)?;
    let mut file = tollgate_rules::read(&source.name, &source.text)?;
    change(&mut file)?;
    Ok(compile(&source, file, options)?)
}

/// The same for text that was read already.
pub fn from_source(source: &SourceText) -> Result<LoadedRules, Report> {
    // Nothing is stored or served, so the digests need no secret, and are the same in every run.
    compiled(source, &CompileOptions::reproducible())
}

fn compiled(source: &SourceText, options: &CompileOptions) -> Result<LoadedRules, Report> {
    compile(source, tollgate_rules::read(&source.name, &source.text)?, options)
}

fn compile(source: &SourceText, file: RuleFile, options: &CompileOptions) -> Result<LoadedRules, Report> {
    let set = RuleSet::compile(std::slice::from_ref(&file), options)
        .map_err(|problems| Report::new(&source.name, &source.text, problems))?;
    Ok(LoadedRules { file, set })
}
