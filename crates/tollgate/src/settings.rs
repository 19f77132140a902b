//! The settings of the server as flags, generated from the settings table.
//!
//! clap's derive needs a field per flag, which would be a second list of settings; so its two traits are implemented by
//! hand over the table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Error, Result};
use clap::error::Error as ClapError;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, ValueHint};
use tollgate_config::{ConfigError, Resolved, SETTINGS, Setting, Sources};

use crate::output::Output;

/// Settings given on the command line.
#[derive(Clone, Debug, Default)]
pub struct SettingsArgs {
    file: Option<PathBuf>,
    flags: BTreeMap<&'static str, Vec<String>>,
}

impl SettingsArgs {
    /// The effective configuration. Prints warnings, and all mistakes but the last, which is the error.
    pub fn resolve(&self, out: &mut Output) -> Result<Resolved> {
        self.resolve_over(BTreeMap::new(), out)
    }

    /// The same, on top of values from other variables: Tollgate's own settings win.
    pub fn resolve_over(&self, weaker: BTreeMap<&'static str, String>, out: &mut Output) -> Result<Resolved> {
        let variable = |name: &str| Setting::named(name).map(Setting::variable);
        let mut environment: BTreeMap<String, String> =
            weaker.into_iter().filter_map(|(name, value)| Some((variable(name)?, value))).collect();
        environment.extend(Sources::environment_of_process());
        self.resolve_from(BTreeMap::new(), environment, out)
    }

    /// The same, with other defaults.
    pub fn resolve_with_defaults(&self, defaults: &[(&'static str, &str)], out: &mut Output) -> Result<Resolved> {
        let defaults = defaults.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.resolve_from(defaults, Sources::environment_of_process(), out)
    }

    fn resolve_from(
        &self,
        defaults: BTreeMap<&'static str, String>,
        environment: BTreeMap<String, String>,
        out: &mut Output,
    ) -> Result<Resolved> {
        let sources = Sources { defaults, file: self.file.clone(), flags: self.flags.clone(), environment };
        let resolved = sources.resolve().map_err(|error| report_all_but_last(error, out))?;
        resolved.unknown_environment.iter().for_each(|variable| out.warning(&variable.to_string()));
        Ok(resolved)
    }
}

fn report_all_but_last(error: ConfigError, out: &mut Output) -> Error {
    let mistakes = error.mistakes.into_iter().map(Error::new);
    let mut errors: Vec<Error> = error.report.into_iter().map(Error::new).chain(mistakes).collect();
    let last = errors.pop().unwrap_or_else(|| Error::msg("the configuration cannot be read"));
    errors.iter().for_each(|error| out.error(error));
    last
}

impl clap::Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Read settings from this file [env: TOLLGATE_CONFIG]");
        command.arg(file).args(SETTINGS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let values = |setting: &'static Setting| {
            let values = matches.get_many::<String>(setting.name)?;
            Some((setting.name, values.cloned().collect()))
        };
        Ok(Self { file: matches.get_one("config").cloned(), flags: SETTINGS.iter().filter_map(values).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(setting: &'static Setting) -> Arg {
    let check = |text: &str| setting.check(text).map(|()| text.to_owned()).map_err(|fault| fault.to_string());
    let argument = Arg::new(setting.name)
        .long(setting.flag())
        .value_name(setting.value_name)
        .help_heading(setting.section.title())
        .help(help(setting))
        .value_parser(check)
        .action(if setting.is_list() { ArgAction::Append } else { ArgAction::Set });
    match setting {
        // Checked later, by code whose message does not repeat the value.
        _ if setting.is_secret() => argument.value_parser(clap::value_parser!(String)),
        _ if setting.is_switch() => argument.num_args(0..=1).default_missing_value("true"),
        _ if setting.is_path() => argument.value_hint(ValueHint::FilePath),
        _ => argument,
    }
}

fn help(setting: &Setting) -> String {
    let words = match setting.words() {
        [] => String::new(),
        words => format!(" [possible values: {}]", words.join(", ")),
    };
    let default = match (setting.default_text(), setting.absent) {
        _ if setting.is_switch() => String::new(),
        (text, absent) if text.is_empty() => format!(" [default: {absent}]"),
        (text, _) => format!(" [default: {text}]"),
    };
    format!("{}{words}{default}", setting.help)
}
