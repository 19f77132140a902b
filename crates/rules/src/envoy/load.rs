//! Loads all files of a configuration: one domain each, or several files merged into one domain.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::read::{duplicate, line};
use super::{EnvoyDescriptor, EnvoyDomain, read};
use crate::problem::{Problem, Problems, quote};
use crate::read::RULES_MAX;
use crate::report::Report;

/// A file's name and content.
#[derive(Clone, Copy, Debug)]
pub struct EnvoyFile<'a> {
    /// Its name, for messages.
    pub file: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// Treatment of a second file for a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// It is an error.
    #[default]
    Refuse,
    /// Its descriptors are added to the domain.
    Merge,
}

/// Reads all files. Returns the domains sorted by name, or one report for each file with problems.
pub fn load(files: &[EnvoyFile<'_>], duplicates: Duplicates) -> Result<Vec<EnvoyDomain>, Vec<Report>> {
    let mut domains: BTreeMap<String, LoadedDomain<'_>> = BTreeMap::new();
    let mut reports = Vec::new();
    let mut rules = 0;
    for file in files {
        let domain = match read(file.file, file.text) {
            Ok(mut domain) => {
                name_file(&mut domain.descriptors, &Arc::from(file.file));
                domain
            }
            Err(report) => {
                reports.push(report);
                continue;
            }
        };
        rules += count(&domain.descriptors);
        let mut problems = Problems::default();
        if rules > RULES_MAX {
            let message = format!("all files together have more than {RULES_MAX} limits");
            problems.push(Problem::error("too-large", domain.at, "descriptors", message).help("load fewer of them"));
        }
        match domains.get_mut(&domain.name) {
            None => {
                let name = domain.name.clone();
                domains.insert(name, LoadedDomain::new(file.file, domain));
            }
            Some(first) if duplicates == Duplicates::Merge => first.add(file.file, domain, &mut problems),
            Some(first) => problems.push(first.refuse(&domain)),
        }
        if !problems.is_empty() {
            reports.push(Report::new(file.file, file.text, problems));
        }
    }
    if reports.is_empty() { Ok(domains.into_values().map(|loaded| loaded.domain).collect()) } else { Err(reports) }
}

/// A domain, and the file of each of its first-level descriptors.
struct LoadedDomain<'a> {
    domain: EnvoyDomain,
    origins: BTreeMap<(String, Option<String>), (&'a str, String)>,
    file: &'a str,
}

impl<'a> LoadedDomain<'a> {
    fn new(file: &'a str, domain: EnvoyDomain) -> LoadedDomain<'a> {
        let origins = domain.descriptors.iter().map(|descriptor| (pair(descriptor), (file, line(descriptor.at))));
        LoadedDomain { origins: origins.collect(), domain, file }
    }

    fn refuse(&self, second: &EnvoyDomain) -> Problem {
        let message = format!("the domain {} is also in {}", quote(&second.name), self.file);
        let help = "put both into one file, rename one, or let them be merged with --envoy-merge-domains";
        Problem::error("duplicate-domain", second.at, "domain", message).help(help)
    }

    fn add(&mut self, file: &'a str, domain: EnvoyDomain, problems: &mut Problems) {
        for (number, descriptor) in domain.descriptors.into_iter().enumerate() {
            if let Some((other, line)) = self.origins.insert(pair(&descriptor), (file, line(descriptor.at))) {
                let (field, other) = (format!("descriptors[{number}]"), format!("on {line} of {other}"));
                problems.push(duplicate(&descriptor, field, &other));
            }
            self.domain.descriptors.push(descriptor);
        }
    }
}

fn pair(descriptor: &EnvoyDescriptor) -> (String, Option<String>) {
    (descriptor.key.clone(), descriptor.value.clone())
}

/// Sets the file name of every descriptor.
fn name_file(level: &mut [EnvoyDescriptor], file_name: &Arc<str>) {
    for descriptor in level {
        descriptor.file_name = Some(file_name.clone());
        name_file(&mut descriptor.descriptors, file_name);
    }
}

/// Number of limits of a level and the levels below.
fn count(level: &[EnvoyDescriptor]) -> usize {
    level.iter().map(|descriptor| usize::from(descriptor.rate_limit.is_some()) + count(&descriptor.descriptors)).sum()
}
