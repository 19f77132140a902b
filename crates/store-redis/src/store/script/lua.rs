//! The scripts, and their texts, which are assembled from the files in `scripts/`.
//!
//! `gcra.lua`, `mixed.lua` and `give_back.lua` are the scripts. A line `-- @include log.write` stands for the part
//! `write` of `log.lua`, which begins after the line `-- @part write` and ends before the next such line. Parts are
//! pasted, not called: a function call in Lua costs more than most of them do. A script with parts ends before the first
//! line that begins with `-- @part`.

use std::sync::LazyLock;

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    /// Decides token buckets and queues only: the shortest path.
    Gcra,
    /// Decides limits of every kind.
    Mixed,
    /// Takes receipts back.
    GiveBack,
}

impl Script {
    /// All scripts.
    pub const ALL: [Script; 3] = [Script::Gcra, Script::Mixed, Script::GiveBack];

    /// Its index in [`Script::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Script::Gcra => 0,
            Script::Mixed => 1,
            Script::GiveBack => 2,
        }
    }

    /// The texts of all scripts, in the order of [`Script::ALL`].
    pub fn texts() -> [&'static str; 3] {
        Script::ALL.map(Script::text)
    }

    /// The text for `SCRIPT LOAD` and `EVAL`.
    pub fn text(self) -> &'static str {
        text_of(self, Clock::Server)
    }

    /// The script on a clock that the caller controls: for tests only.
    #[doc(hidden)]
    pub fn text_with_test_clock(self) -> &'static str {
        text_of(self, Clock::Test)
    }
}

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("../../../scripts/", $name, ".lua"))
    };
}

const GCRA: &str = lua!("gcra");
const MIXED: &str = lua!("mixed");
const GIVE_BACK: &str = lua!("give_back");

/// The files with parts.
const FILES: &[(&str, &str)] = &[
    ("decide", lua!("decide")),
    ("gcra", GCRA),
    ("window", lua!("window")),
    ("counter", lua!("counter")),
    ("log", lua!("log")),
    ("slots", lua!("slots")),
    ("quota", lua!("quota")),
    ("arithmetic", lua!("arithmetic")),
];

/// Where a script reads the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// From the server.
    Server,
    /// From its arguments.
    Test,
}

/// The text of a script.
fn text_of(script: Script, clock: Clock) -> &'static str {
    static ON_SERVER_CLOCK: LazyLock<[String; 3]> = LazyLock::new(|| assemble(lua!("clock")));
    static ON_TEST_CLOCK: LazyLock<[String; 3]> = LazyLock::new(|| assemble(lua!("test_clock")));
    let [gcra, mixed, give_back] = match clock {
        Clock::Server => &*ON_SERVER_CLOCK,
        Clock::Test => &*ON_TEST_CLOCK,
    };
    match script {
        Script::Gcra => gcra,
        Script::Mixed => mixed,
        Script::GiveBack => give_back,
    }
}

fn assemble(clock: &str) -> [String; 3] {
    [GCRA, MIXED, GIVE_BACK].map(|script| {
        let mut text = String::new();
        paste(without_parts(script), clock, &mut text);
        text
    })
}

/// A script without the parts in its file.
fn without_parts(text: &str) -> &str {
    text.find("\n-- @part").and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Appends a text with its includes replaced.
fn paste(text: &str, clock: &str, out: &mut String) {
    for line in text.lines() {
        match included(line) {
            None => out.extend([line, "\n"]),
            Some("clock") => out.push_str(clock),
            Some(name) => paste(part(name).unwrap_or_default(), clock, out),
        }
    }
}

fn included(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("-- @include ")
}

/// The part `write` of `log.lua` for `log.write`.
fn part(name: &str) -> Option<&'static str> {
    let (file, part) = name.split_once('.')?;
    let (_, text) = FILES.iter().find(|(name, _)| *name == file)?;
    let found = text.split("-- @part ").skip(1).find_map(|text| text.strip_prefix(part)?.strip_prefix('\n'))?;
    Some(found.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_and_used() {
        let texts = || [GCRA, MIXED, GIVE_BACK].into_iter().chain(FILES.iter().map(|(_, text)| *text));
        let includes: Vec<&str> = texts().flat_map(str::lines).filter_map(included).collect();
        for name in includes.iter().filter(|name| **name != "clock") {
            assert!(part(name).is_some_and(|text| !text.is_empty()), "{name}");
        }
        for (file, text) in FILES {
            for part in text.lines().filter_map(|line| line.strip_prefix("-- @part ")) {
                assert!(includes.contains(&format!("{file}.{part}").as_str()), "{file}.{part} is not used");
            }
        }
    }

    #[test]
    fn texts_are_complete() {
        for script in Script::ALL {
            for clock in [Clock::Server, Clock::Test] {
                let text = text_of(script, clock);
                assert!(text.starts_with("#!lua\n") && text.contains("local now_s, now_n"), "{script:?}");
                assert!(!text.contains("-- @"), "{script:?}");
            }
        }
    }
}
