//! One setting: how it is spelled, what it takes, and where it lives in [`Config`].

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_rules::address::Cidr;
use tollgate_rules::duration;
use tollgate_rules::problem::Fault;

use tollgate_net::Address;

use crate::auth::{self, FromHeader};
use crate::choice::Choice;
use crate::config::Config;
use crate::control::DbPlace;
use crate::store::StorePlace;
use crate::{bytes, parse};

/// A setting. Its default is the value in [`Config::default`].
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file: `max_connections`.
    pub name: &'static str,
    /// What stands for the value in help: `N`.
    pub value_name: &'static str,
    /// Where it is listed.
    pub section: Section,
    /// One sentence, without a full stop.
    pub help: &'static str,
    /// What holds when it is not set and has no value by default; empty for the others.
    pub absent: &'static str,
    /// What it takes, and where it is kept.
    pub kind: Kind,
}

/// What belongs together, in the order of every listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Addresses.
    Listening,
    /// The rules file.
    Rules,
    /// What people change while it runs, and where it is kept.
    Control,
    /// Where buckets live.
    Store,
    /// Who may ask, and over what.
    Access,
    /// What proxies ask on behalf of their clients.
    Auth,
    /// Bounds on connections.
    Connections,
    /// What decisions look like to callers.
    Answers,
    /// What the process may take.
    Resources,
    /// What is written down.
    Logs,
    /// What tells this node from others.
    Node,
}

impl Section {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Listening => "Listening",
            Self::Rules => "Rules",
            Self::Control => "Control plane",
            Self::Store => "Store",
            Self::Access => "Access",
            Self::Auth => "Forward-auth",
            Self::Connections => "Connections",
            Self::Answers => "Answers",
            Self::Resources => "Resources",
            Self::Logs => "Logs",
            Self::Node => "Node",
        }
    }
}

/// The way to a field of [`Config`].
pub type At<T> = fn(&mut Config) -> &mut T;

/// What a setting takes, and where it is kept.
#[derive(Debug)]
pub enum Kind {
    /// One or more addresses.
    Addresses(At<Vec<Address>>),
    /// An address, or `off`.
    Address(At<Option<Address>>),
    /// The path of a file.
    Path(At<Option<PathBuf>>),
    /// The path of a file to write, `-` for standard output, or `off`.
    Sink(At<Option<String>>),
    /// A short name of visible characters.
    Name(At<Option<String>>),
    /// A duration within bounds.
    Duration(At<Duration>, RangeInclusive<Duration>),
    /// A duration within bounds, or `off`.
    MaybeDuration(At<Option<Duration>>, RangeInclusive<Duration>),
    /// A number within bounds.
    Number(At<usize>, RangeInclusive<usize>),
    /// A number within bounds, or nothing.
    MaybeNumber(At<Option<usize>>, RangeInclusive<usize>),
    /// A size in memory within bounds.
    Size(At<usize>, RangeInclusive<u64>),
    /// A size beyond what a 32-bit machine can address.
    LargeSize(At<u64>, RangeInclusive<u64>),
    /// `true` or `false`.
    Switch(At<bool>),
    /// One HTTP status of a few.
    Status(At<u16>, &'static [&'static str]),
    /// One word of a few.
    Choice(fn(&mut Config) -> &mut dyn Choice),
    /// Words of a few, kept joined by commas.
    Words(At<String>, &'static [&'static str]),
    /// `off`, a percentage or a duration.
    Jitter(At<String>),
    /// Where buckets live. Shown without its password.
    Store(At<StorePlace>),
    /// Where rules and all about them live. Shown without its password.
    Db(At<DbPlace>),
    /// Names of any number, joined by commas.
    Names(At<Vec<String>>),
    /// The name of a header field, or `off`.
    Header(At<Option<String>>),
    /// Attributes and the header fields they come from, or `off`.
    FromHeaders(At<Vec<FromHeader>>),
    /// Permissions of a file, in octal.
    Mode(At<Option<u32>>),
    /// Networks, or `off`.
    Networks(At<Vec<Cidr>>),
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
            Kind::Addresses(_) | Kind::Words(..) | Kind::Names(_) | Kind::FromHeaders(_) | Kind::Networks(_)
        )
    }

    /// Whether its flag means `true` without a value.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch(_))
    }

    /// Whether its value may hold a password, and must not be repeated in messages.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Store(_) | Kind::Db(_))
    }

    /// Whether its value names a file.
    pub fn is_path(&self) -> bool {
        matches!(self.kind, Kind::Path(_) | Kind::Sink(_))
    }

    /// Whether its value is a bare number.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number(..) | Kind::MaybeNumber(..) | Kind::Status(..))
    }

    /// The words it takes, if they are few.
    pub fn words(&self) -> &'static [&'static str] {
        match &self.kind {
            Kind::Status(_, words) | Kind::Words(_, words) => words,
            Kind::Choice(at) => at(&mut Config::default()).names(),
            _ => &[],
        }
    }

    /// The stable code of a value that it does not take.
    pub fn code(&self) -> &'static str {
        match &self.kind {
            Kind::Addresses(_) | Kind::Address(_) | Kind::Networks(_) => "bad-address",
            Kind::Path(_) | Kind::Sink(_) => "bad-path",
            Kind::Name(_) | Kind::Names(_) | Kind::Header(_) | Kind::FromHeaders(_) => "bad-name",
            Kind::Duration(..) | Kind::MaybeDuration(..) | Kind::Jitter(_) => "bad-duration",
            Kind::Number(..) | Kind::MaybeNumber(..) | Kind::Mode(_) => "bad-number",
            Kind::Size(..) | Kind::LargeSize(..) => "bad-size",
            Kind::Switch(_) => "wrong-type",
            Kind::Status(..) | Kind::Choice(_) | Kind::Words(..) => "unknown-value",
            Kind::Store(_) => "bad-store",
            Kind::Db(_) => "bad-database",
        }
    }

    /// Whether it would take this value.
    pub fn check(&self, text: &str) -> Result<(), Fault> {
        self.set(&mut Config::default(), &[text])
    }

    /// Sets it. Only lists take more than one text; of others the last one counts.
    pub fn set(&self, config: &mut Config, texts: &[&str]) -> Result<(), Fault> {
        let text = texts.last().copied().unwrap_or_default();
        match &self.kind {
            Kind::Addresses(at) => *at(config) = parse::addresses(texts)?,
            Kind::Address(at) => *at(config) = parse::unless_off(text, str::parse)?,
            Kind::Path(at) => *at(config) = Some(parse::path(text)?),
            Kind::Sink(at) => *at(config) = parse::unless_off(text, parse::sink)?,
            Kind::Name(at) => *at(config) = Some(parse::name(text)?),
            Kind::Duration(at, range) => *at(config) = parse::duration(text, range)?,
            Kind::MaybeDuration(at, range) => {
                *at(config) = parse::unless_off(text, |text| parse::duration(text, range))?;
            }
            Kind::Number(at, range) => *at(config) = parse::number(text, range)?,
            Kind::MaybeNumber(at, range) => *at(config) = Some(parse::number(text, range)?),
            Kind::Size(at, range) => *at(config) = usize::try_from(parse::size(text, range)?).unwrap_or(usize::MAX),
            Kind::LargeSize(at, range) => *at(config) = parse::size(text, range)?,
            Kind::Switch(at) => *at(config) = parse::switch(text)?,
            Kind::Status(at, words) => *at(config) = parse::word(text, words)?.parse().unwrap_or_default(),
            Kind::Choice(at) => {
                let choice = at(config);
                let is_one = choice.choose(parse::word(text, choice.names())?);
                assert!(is_one, "a choice takes the names it lists");
            }
            Kind::Words(at, words) => *at(config) = parse::words(texts, words)?,
            Kind::Jitter(at) => *at(config) = parse::jitter(text)?,
            Kind::Store(at) => *at(config) = text.parse()?,
            Kind::Db(at) => *at(config) = text.parse()?,
            Kind::Names(at) => *at(config) = parse::pieces(texts).map(parse::name).collect::<Result<_, _>>()?,
            Kind::Mode(at) => *at(config) = Some(parse::mode(text)?),
            Kind::Header(at) => *at(config) = parse::unless_off(text, auth::header)?,
            Kind::FromHeaders(at) => *at(config) = auth::attributes(parse::pieces_unless_off(texts))?,
            Kind::Networks(at) => {
                *at(config) = parse::pieces_unless_off(texts).map(Cidr::parse).collect::<Result<_, _>>()?;
            }
        }
        Ok(())
    }

    /// Its value in the spelling that [`Setting::set`] takes; empty if there is none.
    pub fn show(&self, config: &Config) -> Vec<String> {
        // The table has one way to each field, for reading and writing; this is no hot path.
        let config = &mut config.clone();
        let off_or = |value: Option<String>| vec![value.unwrap_or_else(|| parse::OFF.to_owned())];
        let all_or_off = |all: Vec<String>| if all.is_empty() { off_or(None) } else { all };
        match &self.kind {
            Kind::Addresses(at) => at(config).iter().map(Address::to_string).collect(),
            Kind::Address(at) => off_or(at(config).as_ref().map(Address::to_string)),
            Kind::Path(at) => at(config).iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            Kind::Sink(at) => off_or(at(config).clone()),
            Kind::Name(at) => at(config).iter().cloned().collect(),
            Kind::Duration(at, _) => vec![duration::display(parse::nanoseconds(*at(config)))],
            Kind::MaybeDuration(at, _) => off_or(at(config).map(|span| duration::display(parse::nanoseconds(span)))),
            Kind::Number(at, _) => vec![at(config).to_string()],
            Kind::MaybeNumber(at, _) => at(config).iter().map(usize::to_string).collect(),
            Kind::Size(at, _) => vec![bytes::display(*at(config) as u64)],
            Kind::LargeSize(at, _) => vec![bytes::display(*at(config))],
            Kind::Switch(at) => vec![at(config).to_string()],
            Kind::Status(at, _) => vec![at(config).to_string()],
            Kind::Choice(at) => vec![at(config).name().to_owned()],
            Kind::Words(at, _) => at(config).split(',').map(str::to_owned).collect(),
            Kind::Jitter(at) => vec![at(config).clone()],
            Kind::Store(at) => vec![at(config).to_string()],
            Kind::Db(at) => vec![at(config).to_string()],
            Kind::Names(at) => at(config).clone(),
            Kind::Mode(at) => at(config).iter().map(|mode| format!("{mode:04o}")).collect(),
            Kind::Header(at) => off_or(at(config).clone()),
            Kind::FromHeaders(at) => all_or_off(at(config).iter().map(FromHeader::to_string).collect()),
            Kind::Networks(at) => all_or_off(at(config).iter().map(Cidr::to_string).collect()),
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
            Kind::Duration(_, range) | Kind::MaybeDuration(_, range) => {
                let show = |bound: &Duration| duration::display(parse::nanoseconds(*bound));
                between(show(range.start()), show(range.end()))
            }
            Kind::Number(_, range) | Kind::MaybeNumber(_, range) => {
                between(range.start().to_string(), range.end().to_string())
            }
            Kind::Size(_, range) | Kind::LargeSize(_, range) => {
                between(bytes::display(*range.start()), bytes::display(*range.end()))
            }
            _ => None,
        }
    }
}
