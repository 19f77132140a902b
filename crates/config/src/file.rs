//! The configuration file: a flat map of settings, in the strict YAML of rules files.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use tollgate_rules::problem::{ParseError, Problem, Problems, quote};
use tollgate_rules::read::decode;
use tollgate_rules::yaml::{YamlKey, YamlKind, YamlNode, is_blank};
use tollgate_rules::{Report, SourcePosition, nearest, yaml};

use crate::setting::Setting;
use crate::settings::SETTINGS;

/// Longest file accepted; a full one has a few kilobytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// A value of the file and its position.
#[derive(Debug)]
pub struct FileEntry {
    pub setting: &'static Setting,
    pub texts: Vec<String>,
    pub place: SourcePosition,
}

/// The values of a file, and its problems.
#[derive(Debug, Default)]
pub struct ConfigFile {
    pub name: String,
    pub text: String,
    pub entries: Vec<FileEntry>,
    pub problems: Problems,
}

/// Why a file could not be read at all.
#[derive(Debug)]
pub enum ConfigFileError {
    /// It cannot be opened, or is not the kind of file it should be.
    File(ParseError),
    /// It is not text.
    Text(Report),
}

/// Reads a file. Its problems are collected, so that the other sources are still checked.
pub fn read(path: &Path) -> Result<ConfigFile, ConfigFileError> {
    let name = path.to_string_lossy().into_owned();
    let bytes = read_bounded(path).map_err(ConfigFileError::File)?;
    let text = decode(&name, &bytes).map_err(ConfigFileError::Text)?.to_owned();
    let mut file = ConfigFile { name, ..ConfigFile::default() };
    match yaml::parse(&text) {
        Ok(root) => file.read_root(&root),
        Err(problems) => file.problems.extend(problems),
    }
    file.text = text;
    Ok(file)
}

impl ConfigFile {
    fn read_root(&mut self, root: &YamlNode) {
        match &root.kind {
            YamlKind::Map(entries) => entries.iter().for_each(|(key, value)| self.read_entry(key, value)),
            // An empty file, or one of comments only, sets nothing.
            YamlKind::Scalar { text, quoted: false } if text.is_empty() => {}
            _ => {
                let message = format!("the file should be a map of settings, found {}", root.describe());
                let problem = Problem::error("wrong-type", root.position(), "", message);
                self.problems.push(problem.help("write one `setting: value` per line, such as `http: 127.0.0.1:8080`"));
            }
        }
    }

    fn read_entry(&mut self, key: &YamlKey, value: &YamlNode) {
        let Some(setting) = Setting::named(&key.text) else {
            return match self.problems.is_full() {
                true => self.problems.skip(1),
                false => self.problems.push(unknown(key)),
            };
        };
        let before = self.problems.len();
        let texts = self.read_value(setting, value);
        if self.problems.len() == before {
            self.entries.push(FileEntry { setting, texts, place: value.position() });
        }
    }

    fn read_value(&mut self, setting: &'static Setting, value: &YamlNode) -> Vec<String> {
        match &value.kind {
            YamlKind::List(items) if setting.is_list() && !items.is_empty() => {
                items.iter().filter_map(|item| self.read_scalar(setting, item)).collect()
            }
            _ => self.read_scalar(setting, value).into_iter().collect(),
        }
    }

    fn read_scalar(&mut self, setting: &Setting, node: &YamlNode) -> Option<String> {
        let name = setting.name;
        let problem = |code, message: String| Problem::error(code, node.position(), name, message);
        let found = match &node.kind {
            YamlKind::Scalar { text, quoted } if *quoted || !is_blank(text) => match setting.check(text) {
                Ok(()) => return Some(text.clone()),
                Err(fault) => problem(setting.code(), format!("{name}: {}", fault.message)).help(fault.help),
            },
            YamlKind::Scalar { .. } => {
                problem("blank", format!("{name} is blank")).help("write a value, or remove the setting")
            }
            YamlKind::List(_) if name == "rules" => {
                problem("wrong-type", "rules should be the name of a file, found a list".into())
                    .help("this looks like a rules file: name it with `rules: rules.yaml` or --rules")
            }
            _ => problem("wrong-type", format!("{name} should be one value, found {}", node.describe()))
                .help(format!("write `{name}: {}`", setting.value_name)),
        };
        self.problems.push(found);
        None
    }
}

fn unknown(key: &YamlKey) -> Problem {
    let listed = "tollgate config --default lists all settings";
    let help = match nearest(&key.text, SETTINGS.iter().map(|setting| setting.name)) {
        Some(meant) => format!("did you mean `{meant}`? {listed}"),
        None => listed.to_owned(),
    };
    Problem::error("unknown-field", key.position(), &key.text, format!("unknown setting {}", quote(&key.text)))
        .help(help)
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, ParseError> {
    // Checked before opening, because opening a FIFO waits for a writer; and after, because the name may lead
    // elsewhere.
    regular(fs::metadata(path).map_err(|error| unreadable(path, &error))?.file_type(), path)?;
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    regular(file.metadata().map_err(|error| unreadable(path, &error))?.file_type(), path)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(refuse(path, "is too large", &format!("at most {FILE_BYTES_MAX} bytes are read"))),
        false => Ok(bytes),
    }
}

fn regular(kind: FileType, path: &Path) -> Result<(), ParseError> {
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(()),
        (_, true) => Err(refuse(path, "is a directory", "name a file in it")),
        _ => Err(refuse(path, "is not a regular file", "name a file that can be read twice")),
    }
}

fn refuse(path: &Path, why: &str, help: &str) -> ParseError {
    ParseError::new(format!("{} {why}", path.display()), help)
}

fn unreadable(path: &Path, error: &io::Error) -> ParseError {
    let why = match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    ParseError::new(format!("cannot read {}: {why}", path.display()), "name a file that this user can read")
}
