//! The configuration in effect, as a file that could be read again, and as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tollgate_rules::yaml::is_blank;

use crate::config::Config;
use crate::origin::SettingOrigin;
use crate::setting::{Section, Setting};
use crate::settings::SETTINGS;

/// A configuration, and where each value came from.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The values.
    pub config: Config,
    /// Variables that begin with `TOLLGATE_` and are not settings.
    pub unknown_environment: Vec<UnknownVariable>,
    /// Sources of those that were set, by name.
    pub(super) origins: BTreeMap<&'static str, SettingOrigin>,
}

/// A variable with our prefix that is no setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    /// Its name.
    pub name: String,
    /// The variable that was probably meant.
    pub meant: Option<String>,
}

impl std::fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not a setting", self.name)?;
        match &self.meant {
            Some(meant) => write!(f, "; did you mean {meant}?"),
            None => Ok(()),
        }
    }
}

impl Resolved {
    /// Where the value of a setting came from.
    pub fn origin(&self, setting: &Setting) -> SettingOrigin {
        self.origins.get(setting.name).cloned().unwrap_or_default()
    }

    /// A configuration file that says the same, with the source of each value as a comment.
    pub fn to_yaml(&self) -> String {
        layout("#", |setting| (self.line(setting), self.remark(setting)))
    }

    /// Every setting with its value and its source.
    pub fn to_json(&self) -> Value {
        let entry = |setting: &Setting| (setting.name.to_owned(), self.entry(setting));
        Value::Object(SETTINGS.iter().map(entry).collect::<Map<_, _>>())
    }

    fn line(&self, setting: &Setting) -> String {
        match value(setting, &self.config) {
            Some(value) => format!("{}: {value}", setting.name),
            None => format!("# {}:", setting.name),
        }
    }

    fn remark(&self, setting: &Setting) -> String {
        match (self.origin(setting), setting.absent) {
            (SettingOrigin::Default, absent) if !absent.is_empty() => format!("default: {absent}"),
            (origin, _) => one_line(&origin.to_string()),
        }
    }

    fn entry(&self, setting: &Setting) -> Value {
        let typed = |text: &String| match text.parse::<u64>() {
            Ok(number) if setting.is_number() => json!(number),
            _ if setting.is_switch() => json!(text == "true"),
            _ => json!(text),
        };
        let shown = setting.show(&self.config);
        let value = match shown.first() {
            _ if setting.is_list() => json!(shown),
            Some(text) => typed(text),
            None => Value::Null,
        };
        match self.origin(setting) {
            SettingOrigin::Default => json!({ "value": value, "source": "default" }),
            SettingOrigin::File { file, place } => {
                json!({ "value": value, "source": "file", "file": file, "line": place.line, "column": place.column })
            }
            SettingOrigin::Environment(variable) => {
                json!({ "value": value, "source": "environment", "variable": variable })
            }
            SettingOrigin::Flag(flag) => json!({ "value": value, "source": "flag", "flag": flag }),
        }
    }
}

/// A configuration file to start from: every setting with its default and its help, all commented out.
///
/// Defaults that were written down would stay when a later version has better ones.
pub fn template() -> String {
    layout("###", |setting| {
        let value = value(setting, &Config::default()).unwrap_or_else(|| setting.value_name.to_owned());
        (format!("# {}: {value}", setting.name), setting.help.to_owned())
    })
}

/// All settings under the headings of their sections, with remarks that line up.
fn layout(heading: &str, line: impl Fn(&Setting) -> (String, String)) -> String {
    let lines: Vec<(Section, (String, String))> =
        SETTINGS.iter().map(|setting| (setting.section, line(setting))).collect();
    let widths = lines.iter().map(|(_, (line, _))| line.chars().count());
    let width = widths.filter(|width| *width <= WIDTH).max().unwrap_or(0);
    let mut page = String::new();
    let mut last = None;
    for (section, (line, remark)) in lines {
        if last != Some(section) {
            let gap = if last.is_some() { "\n" } else { "" };
            page.push_str(&format!("{gap}{heading} {}\n", section.title()));
            last = Some(section);
        }
        page.push_str(&format!("{line:width$}  # {remark}\n"));
    }
    page
}

/// The value of a setting as YAML.
fn value(setting: &Setting, config: &Config) -> Option<String> {
    let texts: Vec<String> = setting.show(config).iter().map(|text| scalar(text)).collect();
    match texts.as_slice() {
        [] => None,
        [text] => Some(text.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

/// Values longer than this do not push the sources of all others to the right.
const WIDTH: usize = 60;

/// A text as YAML, quoted unless it can only mean itself, and safe for a terminal.
fn scalar(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:%+-".contains(letter);
    let starts_well = text.starts_with(|letter: char| letter.is_ascii_alphanumeric() || "/.".contains(letter));
    if starts_well && text.chars().all(is_plain) && !text.ends_with(':') && !is_blank(text) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if is_hidden(letter) => quoted.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Removes line breaks: a file name may contain one, a comment must not.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Characters that move the cursor or change text direction; all have four hexadecimal digits.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
