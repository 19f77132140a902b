//! `deny.toml`, as far as the tidy test reads it: one entry per line, which saves a TOML parser.

use crate::tree;

/// What may enter the dependency tree.
pub struct Policy {
    pub licences: Vec<String>,
    pub bans: Vec<Ban>,
}

/// A crate that may be in the tree only as a direct dependency of its wrappers.
#[derive(Debug, PartialEq)]
pub struct Ban {
    pub name: String,
    pub wrappers: Vec<String>,
}

impl Policy {
    pub fn of_this_repository() -> Self {
        let text = tree::text_of("deny.toml").expect("deny.toml is at the root");
        let policy = Self::parse(text);
        assert!(!policy.licences.is_empty() && !policy.bans.is_empty(), "deny.toml keeps one entry per line");
        policy
    }

    fn parse(text: &str) -> Self {
        let licences = entries(text, "[licenses]", "allow = [").flat_map(quoted).collect();
        Self { licences, bans: entries(text, "[bans]", "deny = [").filter_map(Ban::parse).collect() }
    }
}

impl Ban {
    /// `{ crate = "name", wrappers = ["a", "b"], reason = "…" },`
    fn parse(line: &str) -> Option<Self> {
        let name = quoted(value(line, "crate = ", ',')?).into_iter().next()?;
        let wrappers = value(line, "wrappers = [", ']').map(quoted).unwrap_or_default();
        Some(Self { name, wrappers })
    }
}

/// The lines between `opening` and the line `]`, inside one section.
fn entries<'a>(text: &'a str, section: &'a str, opening: &'a str) -> impl Iterator<Item = &'a str> {
    let from_section = text.lines().skip_while(move |line| *line != section).skip(1);
    let in_section = from_section.take_while(|line| !line.starts_with('['));
    in_section.skip_while(move |line| *line != opening).skip(1).take_while(|line| *line != "]")
}

fn value<'a>(line: &'a str, key: &str, end: char) -> Option<&'a str> {
    let (_, rest) = line.split_once(key)?;
    rest.split(end).next()
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn reads_licences_and_bans() {
    let policy = Policy::parse(
        "[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n\n[bans]\nwildcards = \"deny\"\ndeny = [\n    \
         { crate = \"a\", wrappers = [\"b\", \"c\"], reason = \"no\" },\n    { crate = \"d\", reason = \"no\" },\n]\n",
    );
    let ban = |name: &str, wrappers: &[&str]| Ban {
        name: name.to_owned(),
        wrappers: wrappers.iter().map(|name| (*name).to_owned()).collect(),
    };
    assert_eq!(policy.licences, ["MIT", "ISC"]);
    assert_eq!(policy.bans, [ban("a", &["b", "c"]), ban("d", &[])]);
}
