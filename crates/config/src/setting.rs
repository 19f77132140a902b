//! One setting: its spellings, its kind, and its field in [`Config`].

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_rules::address::Cidr;
use tollgate_rules::duration;
use tollgate_rules::problem::ParseError;

use tollgate_net::Address;

use crate::auth::{self, FromHeader};
use crate::choice::SettingChoice;
use crate::config::Config;
use crate::control::DbPlace;
use crate::store::StorePlace;
use crate::{bytes, parse};

/// A setting. Its default is the value in [`Config::default`].
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file: `max_connections`.
    pub name: &'static str,
    /// The placeholder of the value in help: `N`.
    pub value_name: &'static str,
    /// The section that lists it.
    pub section: Section,
    /// One sentence, without a full stop.
    pub help: &'static str,
    /// The behaviour without a value, if it has no default; otherwise empty.
    pub absent: &'static str,
    /// Its kind, and its field in [`Config`].
    pub kind: SettingKind,
}

/// The sections, in the order of every listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Addresses.
    Listening,
    /// The gateway.
    Gateway,
    /// The rules file.
    Rules,
    /// The control plane.
    Control,
    /// Where buckets live.
    Store,
    /// Tokens and TLS of callers.
    Access,
    /// Forward-auth.
    Auth,
    /// Metrics and webhooks.
    Signals,
    /// Bounds on connections.
    Connections,
    /// How decisions are rendered.
    Answers,
    /// Memory and threads.
    Resources,
    /// Logs.
    Logs,
    /// The identity of this node.
    Node,
}

impl Section {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Listening => "Listening",
            Self::Gateway => "Gateway",
            Self::Rules => "Rules",
            Self::Control => "Control plane",
            Self::Store => "Store",
            Self::Access => "Access",
            Self::Auth => "Forward-auth",
            Self::Signals => "Signals",
            Self::Connections => "Connections",
            Self::Answers => "Answers",
            Self::Resources => "Resources",
            Self::Logs => "Logs",
            Self::Node => "Node",
        }
    }
}

/// Accesses a field of [`Config`].
pub type FieldAccess<T> = fn(&mut Config) -> &mut T;

/// The kind of a setting, and its field in [`Config`].
#[derive(Debug)]
pub enum SettingKind {
    /// Addresses, or `off`.
    Addresses(FieldAccess<Vec<Address>>),
    /// An address, or `off`.
    Address(FieldAccess<Option<Address>>),
    /// The path of a file.
    Path(FieldAccess<Option<PathBuf>>),
    /// The path of a file to write, `-` for standard output, or `off`.
    Sink(FieldAccess<Option<String>>),
    /// A short name of visible characters.
    Name(FieldAccess<Option<String>>),
    /// A duration within bounds.
    Duration(FieldAccess<Duration>, RangeInclusive<Duration>),
    /// A duration within bounds, or `off`.
    MaybeDuration(FieldAccess<Option<Duration>>, RangeInclusive<Duration>),
    /// A number within bounds.
    Number(FieldAccess<usize>, RangeInclusive<usize>),
    /// A number within bounds, or nothing.
    MaybeNumber(FieldAccess<Option<usize>>, RangeInclusive<usize>),
    /// A size in memory within bounds.
    Size(FieldAccess<usize>, RangeInclusive<u64>),
    /// A size beyond what a 32-bit machine can address.
    LargeSize(FieldAccess<u64>, RangeInclusive<u64>),
    /// `true` or `false`.
    Switch(FieldAccess<bool>),
    /// One HTTP status of a few.
    Status(FieldAccess<u16>, &'static [&'static str]),
    /// One word of a few.
    Choice(fn(&mut Config) -> &mut dyn SettingChoice),
    /// Several of a few words, joined by commas.
    Words(FieldAccess<String>, &'static [&'static str]),
    /// `off`, a percentage or a duration.
    Jitter(FieldAccess<String>),
    /// Where buckets live. Shown without its password.
    Store(FieldAccess<StorePlace>),
    /// The database. Shown without its password.
    Db(FieldAccess<DbPlace>),
    /// Names of any number, joined by commas.
    Names(FieldAccess<Vec<String>>),
    /// The name of a header field, or `off`.
    Header(FieldAccess<Option<String>>),
    /// Attributes and the header fields they come from, or `off`.
    FromHeaders(FieldAccess<Vec<FromHeader>>),
    /// Permissions of a file, in octal.
    Mode(FieldAccess<Option<u32>>),
    /// Networks, or `off`.
    Networks(FieldAccess<Vec<Cidr>>),
}

impl Setting {
    /// The flag, without its dashes: `max-connections`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable: `TOLLGATE_MAX_CONNECTIONS`.
    pub fn variable(&self) -> String {
        format!("TOLLGATE_{}", self.name.to_uppercase())
    }

    /// Whether it takes several values, listed or joined by commas.
    pub fn is_list(&self) -> bool {
        matches!(
            self.kind,
            SettingKind::Addresses(_)
                | SettingKind::Words(..)
                | SettingKind::Names(_)
                | SettingKind::FromHeaders(_)
                | SettingKind::Networks(_)
        )
    }

    /// Whether its flag means `true` without a value.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, SettingKind::Switch(_))
    }

    /// Whether its value may hold a password, and must not be repeated in messages.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, SettingKind::Store(_) | SettingKind::Db(_))
    }

    /// Whether its value names a file.
    pub fn is_path(&self) -> bool {
        matches!(self.kind, SettingKind::Path(_) | SettingKind::Sink(_))
    }

    /// Whether its value is a bare number.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, SettingKind::Number(..) | SettingKind::MaybeNumber(..) | SettingKind::Status(..))
    }

    /// The words it accepts, if they are a fixed set.
    pub fn words(&self) -> &'static [&'static str] {
        match &self.kind {
            SettingKind::Status(_, words) | SettingKind::Words(_, words) => words,
            SettingKind::Choice(at) => at(&mut Config::default()).names(),
            _ => &[],
        }
    }

    /// The stable code of an invalid value.
    pub fn code(&self) -> &'static str {
        match &self.kind {
            SettingKind::Addresses(_) | SettingKind::Address(_) | SettingKind::Networks(_) => "bad-address",
            SettingKind::Path(_) | SettingKind::Sink(_) => "bad-path",
            SettingKind::Name(_) | SettingKind::Names(_) | SettingKind::Header(_) | SettingKind::FromHeaders(_) => {
                "bad-name"
            }
            SettingKind::Duration(..) | SettingKind::MaybeDuration(..) | SettingKind::Jitter(_) => "bad-duration",
            SettingKind::Number(..) | SettingKind::MaybeNumber(..) | SettingKind::Mode(_) => "bad-number",
            SettingKind::Size(..) | SettingKind::LargeSize(..) => "bad-size",
            SettingKind::Switch(_) => "wrong-type",
            SettingKind::Status(..) | SettingKind::Choice(_) | SettingKind::Words(..) => "unknown-value",
            SettingKind::Store(_) => "bad-store",
            SettingKind::Db(_) => "bad-database",
        }
    }

    /// Checks a value.
    pub fn check(&self, text: &str) -> Result<(), ParseError> {
        self.set(&mut Config::default(), &[text])
    }

    /// Sets it. Only lists accept more than one text; otherwise the last one counts.
    pub fn set(&self, config: &mut Config, texts: &[&str]) -> Result<(), ParseError> {
        let text = texts.last().copied().unwrap_or_default();
        match &self.kind {
            SettingKind::Addresses(at) => *at(config) = parse::addresses(texts)?,
            SettingKind::Address(at) => *at(config) = parse::unless_off(text, str::parse)?,
            SettingKind::Path(at) => *at(config) = Some(parse::path(text)?),
            SettingKind::Sink(at) => *at(config) = parse::unless_off(text, parse::sink)?,
            SettingKind::Name(at) => *at(config) = Some(parse::name(text)?),
            SettingKind::Duration(at, range) => *at(config) = parse::duration(text, range)?,
            SettingKind::MaybeDuration(at, range) => {
                *at(config) = parse::unless_off(text, |text| parse::duration(text, range))?;
            }
            SettingKind::Number(at, range) => *at(config) = parse::number(text, range)?,
            SettingKind::MaybeNumber(at, range) => *at(config) = Some(parse::number(text, range)?),
            SettingKind::Size(at, range) => {
                *at(config) = usize::try_from(parse::size(text, range)?).unwrap_or(usize::MAX)
            }
            SettingKind::LargeSize(at, range) => *at(config) = parse::size(text, range)?,
            SettingKind::Switch(at) => *at(config) = parse::switch(text)?,
            SettingKind::Status(at, words) => *at(config) = parse::word(text, words)?.parse().unwrap_or_default(),
            SettingKind::Choice(at) => {
                let choice = at(config);
                let is_one = choice.choose(parse::word(text, choice.names())?);
                assert!(is_one, "a choice accepts the names it lists");
            }
            SettingKind::Words(at, words) => *at(config) = parse::words(texts, words)?,
            SettingKind::Jitter(at) => *at(config) = parse::jitter(text)?,
            SettingKind::Store(at) => *at(config) = text.parse()?,
            SettingKind::Db(at) => *at(config) = text.parse()?,
            SettingKind::Names(at) => *at(config) = parse::pieces(texts).map(parse::name).collect::<Result<_, _>>()?,
            SettingKind::Mode(at) => *at(config) = Some(parse::mode(text)?),
            SettingKind::Header(at) => *at(config) = parse::unless_off(text, auth::header)?,
            SettingKind::FromHeaders(at) => *at(config) = auth::attributes(parse::pieces_unless_off(texts))?,
            SettingKind::Networks(at) => {
                *at(config) = parse::pieces_unless_off(texts).map(Cidr::parse).collect::<Result<_, _>>()?;
            }
        }
        Ok(())
    }

    /// Its value in the spelling that [`Setting::set`] accepts; empty if there is none.
    pub fn show(&self, config: &Config) -> Vec<String> {
        // The table has one accessor per field, for reading and writing; this is no hot path.
        let config = &mut config.clone();
        let off_or = |value: Option<String>| vec![value.unwrap_or_else(|| parse::OFF.to_owned())];
        let all_or_off = |all: Vec<String>| if all.is_empty() { off_or(None) } else { all };
        match &self.kind {
            SettingKind::Addresses(at) => all_or_off(at(config).iter().map(Address::to_string).collect()),
            SettingKind::Address(at) => off_or(at(config).as_ref().map(Address::to_string)),
            SettingKind::Path(at) => at(config).iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            SettingKind::Sink(at) => off_or(at(config).clone()),
            SettingKind::Name(at) => at(config).iter().map(|text| without_login(text)).collect(),
            SettingKind::Duration(at, _) => vec![duration::display(parse::nanoseconds(*at(config)))],
            SettingKind::MaybeDuration(at, _) => {
                off_or(at(config).map(|span| duration::display(parse::nanoseconds(span))))
            }
            SettingKind::Number(at, _) => vec![at(config).to_string()],
            SettingKind::MaybeNumber(at, _) => at(config).iter().map(usize::to_string).collect(),
            SettingKind::Size(at, _) => vec![bytes::display(*at(config) as u64)],
            SettingKind::LargeSize(at, _) => vec![bytes::display(*at(config))],
            SettingKind::Switch(at) => vec![at(config).to_string()],
            SettingKind::Status(at, _) => vec![at(config).to_string()],
            SettingKind::Choice(at) => vec![at(config).name().to_owned()],
            SettingKind::Words(at, _) => at(config).split(',').map(str::to_owned).collect(),
            SettingKind::Jitter(at) => vec![at(config).clone()],
            SettingKind::Store(at) => vec![at(config).to_string()],
            SettingKind::Db(at) => vec![at(config).to_string()],
            SettingKind::Names(at) => at(config).clone(),
            SettingKind::Mode(at) => at(config).iter().map(|mode| format!("{mode:04o}")).collect(),
            SettingKind::Header(at) => off_or(at(config).clone()),
            SettingKind::FromHeaders(at) => all_or_off(at(config).iter().map(FromHeader::to_string).collect()),
            SettingKind::Networks(at) => all_or_off(at(config).iter().map(Cidr::to_string).collect()),
        }
    }

    /// Its default as text; empty if it has none.
    pub fn default_text(&self) -> String {
        self.show(&Config::default()).join(",")
    }

    /// The bounds of its value, if it has some: `1ms to 1h`.
    pub fn bounds(&self) -> Option<String> {
        let between = |low: String, high: String| Some(format!("{low} to {high}"));
        match &self.kind {
            SettingKind::Duration(_, range) | SettingKind::MaybeDuration(_, range) => {
                let show = |bound: &Duration| duration::display(parse::nanoseconds(*bound));
                between(show(range.start()), show(range.end()))
            }
            SettingKind::Number(_, range) | SettingKind::MaybeNumber(_, range) => {
                between(range.start().to_string(), range.end().to_string())
            }
            SettingKind::Size(_, range) | SettingKind::LargeSize(_, range) => {
                between(bytes::display(*range.start()), bytes::display(*range.end()))
            }
            _ => None,
        }
    }
}

/// A text without the user and the password of a URL in it.
fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{rest}"),
        None => text.to_owned(),
    }
}
