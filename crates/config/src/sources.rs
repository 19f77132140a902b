//! The sources of values and their precedence: flag, environment, file, default.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tollgate_rules::problem::{ParseError, Problem, Problems};
use tollgate_rules::{Report, nearest};

use crate::config::Config;
use crate::effective::{Resolved, UnknownVariable};
use crate::error::{ConfigError, Mistake};
use crate::file::{self, ConfigFile, ConfigFileError};
use crate::origin::SettingOrigin;
use crate::setting::Setting;
use crate::settings::SETTINGS;
use crate::store::without_passwords;

/// The variable that names the file.
const FILE_VARIABLE: &str = "TOLLGATE_CONFIG";
/// The prefix of our variables.
const PREFIX: &str = "TOLLGATE_";
/// Variables of the client commands; the server ignores them.
const CLIENT_VARIABLES: [&str; 2] = ["TOLLGATE_URL", "TOLLGATE_TOKEN"];
/// Variables that Kubernetes sets in every container next to a service named `tollgate`.
const KUBERNETES_PREFIXES: [&str; 2] = ["TOLLGATE_SERVICE_", "TOLLGATE_PORT"];

/// All sources of a configuration, passed in so that a test needs no process of its own.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Defaults of a command that differ from those of [`Config`], by the name of the setting.
    pub defaults: BTreeMap<&'static str, String>,
    /// The file, as `--config` names it; without it `TOLLGATE_CONFIG` does.
    pub file: Option<PathBuf>,
    /// Values of flags, by the name of the setting.
    pub flags: BTreeMap<&'static str, Vec<String>>,
    /// The variables that begin with `TOLLGATE_`. One that is empty counts as not set.
    pub environment: BTreeMap<String, String>,
}

impl Sources {
    /// The variables of this process with our prefix.
    pub fn environment_of_process() -> BTreeMap<String, String> {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect()
    }

    /// Reads every source, the weakest first, and reports all errors of all of them.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        let mut draft = ConfigDraft::default();
        for (name, value) in &self.defaults {
            if let Some(setting) = Setting::named(name) {
                draft.apply(setting, std::slice::from_ref(value), SettingOrigin::Default);
            }
        }
        if let Some((origin, path)) = self.file() {
            draft.file = file::read(&path).map_err(|error| unreadable(origin, error))?;
            draft.apply_file();
        }
        for setting in SETTINGS {
            let variable = setting.variable();
            if let Some(value) = self.variable(&variable) {
                draft.apply(setting, std::slice::from_ref(value), SettingOrigin::Environment(variable));
            }
            if let Some(values) = self.flags.get(setting.name).filter(|values| !values.is_empty()) {
                draft.apply(setting, values, SettingOrigin::Flag(format!("--{}", setting.flag())));
            }
        }
        draft.finish(self.unknown_environment())
    }

    fn file(&self) -> Option<(&'static str, PathBuf)> {
        let flag = self.file.clone().map(|path| ("--config", path));
        flag.or_else(|| self.variable(FILE_VARIABLE).map(|path| (FILE_VARIABLE, PathBuf::from(path))))
    }

    fn variable(&self, name: &str) -> Option<&String> {
        self.environment.get(name).filter(|value| !value.is_empty())
    }

    /// Variables with our prefix that are no settings: probably typos.
    fn unknown_environment(&self) -> Vec<UnknownVariable> {
        let known: Vec<String> = SETTINGS.iter().map(Setting::variable).chain([FILE_VARIABLE.to_owned()]).collect();
        let unknown = self.environment.keys().filter(|name| {
            let of_kubernetes = KUBERNETES_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            let of_others = of_kubernetes || CLIENT_VARIABLES.contains(&name.as_str());
            name.starts_with(PREFIX) && !of_others && !known.contains(name)
        });
        let meant = |name: &str| {
            let word = name.strip_prefix(PREFIX).unwrap_or(name);
            let words = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
            nearest(word, words).map(|meant| format!("{PREFIX}{meant}"))
        };
        unknown.map(|name| UnknownVariable { name: name.clone(), meant: meant(name) }).collect()
    }
}

fn unreadable(place: &str, error: ConfigFileError) -> ConfigError {
    match error {
        ConfigFileError::File(fault) => Mistake { place: place.to_owned(), fault }.into(),
        ConfigFileError::Text(report) => ConfigError { report: Some(report), mistakes: Vec::new() },
    }
}

/// A configuration in the making.
#[derive(Default)]
struct ConfigDraft {
    config: Config,
    origins: BTreeMap<&'static str, SettingOrigin>,
    file: ConfigFile,
    mistakes: Vec<Mistake>,
}

impl ConfigDraft {
    fn apply_file(&mut self) {
        for entry in std::mem::take(&mut self.file.entries) {
            let origin = SettingOrigin::File { file: self.file.name.clone(), place: entry.place };
            self.apply(entry.setting, &entry.texts, origin);
        }
    }

    fn apply(&mut self, setting: &'static Setting, values: &[String], origin: SettingOrigin) {
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        match setting.set(&mut self.config, &texts) {
            Ok(()) => drop(self.origins.insert(setting.name, origin)),
            Err(fault) => self.report(setting, fault, &origin, setting.code()),
        }
    }

    /// Records an error at the source that caused it.
    fn report(&mut self, setting: &Setting, fault: ParseError, origin: &SettingOrigin, code: &'static str) {
        let place = match origin {
            SettingOrigin::File { place, .. } => {
                let message = format!("{}: {}", setting.name, fault.message);
                return self.file.problems.push(Problem::error(code, *place, setting.name, message).help(fault.help));
            }
            SettingOrigin::Environment(variable) => variable,
            SettingOrigin::Flag(flag) => flag,
            SettingOrigin::Default => setting.name,
        };
        self.mistakes.push(Mistake { place: place.to_owned(), fault });
    }

    fn finish(mut self, unknown_environment: Vec<UnknownVariable>) -> Result<Resolved, ConfigError> {
        // Only without other errors: an invalid value would look like a missing one.
        if self.mistakes.is_empty() && self.file.problems.is_empty() {
            for (name, fault) in self.config.conflicts() {
                let origin = self.origins.get(name).cloned().unwrap_or_default();
                if let Some(setting) = Setting::named(name) {
                    self.report(setting, fault, &origin, "conflict");
                }
            }
        }
        let ConfigFile { name, text, problems, .. } = self.file;
        let report = report(&name, &text, problems);
        match report.is_none() && self.mistakes.is_empty() {
            true => Ok(Resolved { config: self.config, origins: self.origins, unknown_environment }),
            false => Err(ConfigError { report, mistakes: self.mistakes }),
        }
    }
}

fn report(name: &str, text: &str, problems: Problems) -> Option<Report> {
    (!problems.is_empty()).then(|| Report::new(name, &without_passwords(text), problems))
}
