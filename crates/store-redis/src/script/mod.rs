//! What runs inside the store, and how it is asked.
//!
//! A script decides: it reads the buckets of a call, the time once, and writes what was decided, each bucket at most
//! once, at the end. It answers little: the time, a verdict per question, and the buckets as it found them. From these
//! the caller's side replays the very steps of `tollgate-core`, and so learns what was granted and what to tell. Scripts
//! therefore hold no hint, no rounding for people and no product: only sums and comparisons of exact nanoseconds.
//!
//! Nothing here does any I/O: [`Batch`] and [`Returns`] write commands into a buffer and read replies.

mod batch;
mod blob;
mod charge;
mod reply;
mod returns;
mod state;

pub use batch::{Batch, Question};
pub use reply::{Answer, BadReply, Reply, ReturnReply};
pub use returns::Returns;

use tollgate_core::Time;

use crate::resp;

/// A script, by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    /// Decides over token buckets and queues alone: the shortest path.
    Gcra,
    /// Decides over limits of every kind.
    Mixed,
    /// Takes receipts back.
    GiveBack,
}

/// Assembles a script from what reads the clock and from its fragments.
macro_rules! script {
    ($clock:literal, $($fragment:literal),+) => {
        concat!(
            "#!lua\n",
            include_str!(concat!("../../scripts/", $clock, ".lua")),
            $(include_str!(concat!("../../scripts/", $fragment, ".lua"))),+
        )
    };
}

/// The texts of all scripts with one clock or another; the fragments are the same bytes.
macro_rules! texts {
    ($clock:literal) => {
        [
            script!(
                $clock,
                "open",
                "gcra_begin",
                "arrival_look",
                "gcra_decide",
                "arrival_settle",
                "gcra_end",
                "arrival_write",
                "close"
            ),
            script!(
                $clock,
                "wide",
                "open",
                "mixed_begin",
                "arrival_look",
                "mixed_window",
                "window_turn",
                "window_look",
                "mixed_counter",
                "counter_turn",
                "counter_look",
                "mixed_log",
                "log_look",
                "mixed_slots",
                "slots_look",
                "mixed_decide",
                "arrival_settle",
                "mixed_settle_window",
                "window_settle",
                "mixed_settle_counter",
                "counter_settle",
                "mixed_settle_log",
                "log_settle",
                "mixed_settle_slots",
                "slots_settle",
                "mixed_end",
                "arrival_write",
                "close"
            ),
            script!($clock, "wide", "give_back"),
        ]
    };
}

const TEXTS: [&str; 3] = texts!("clock");
const TEXTS_WITH_A_TEST_CLOCK: [&str; 3] = texts!("test_clock");

impl Script {
    /// Every script there is.
    pub const ALL: [Script; 3] = [Script::Gcra, Script::Mixed, Script::GiveBack];

    /// Its place in [`Script::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Script::Gcra => 0,
            Script::Mixed => 1,
            Script::GiveBack => 2,
        }
    }

    /// What `SCRIPT LOAD` and `EVAL` are given.
    pub const fn text(self) -> &'static str {
        let [gcra, mixed, give_back] = TEXTS;
        match self {
            Script::Gcra => gcra,
            Script::Mixed => mixed,
            Script::GiveBack => give_back,
        }
    }

    /// The same script on a clock that the caller holds: for tests. It never runs in production.
    #[doc(hidden)]
    pub const fn text_with_a_test_clock(self) -> &'static str {
        let [gcra, mixed, give_back] = TEXTS_WITH_A_TEST_CLOCK;
        match self {
            Script::Gcra => gcra,
            Script::Mixed => mixed,
            Script::GiveBack => give_back,
        }
    }
}

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// By its hash, as `SCRIPT LOAD` answered it.
    Sha(&'a [u8]),
    /// By its text, which also loads it.
    Text,
    /// At a time that the caller chooses; the hash, if any, is that of the text with a test clock.
    #[doc(hidden)]
    At(Time, Option<&'a [u8]>),
}

impl Call<'_> {
    /// Appends the whole command.
    fn encode<'k>(self, script: Script, keys: impl ExactSizeIterator<Item = &'k [u8]>, blob: &[u8], out: &mut Vec<u8>) {
        let (word, name): (&[u8], &[u8]) = match self {
            Call::Sha(sha) | Call::At(_, Some(sha)) => (b"EVALSHA", sha),
            Call::Text => (b"EVAL", script.text().as_bytes()),
            Call::At(_, None) => (b"EVAL", script.text_with_a_test_clock().as_bytes()),
        };
        let now = if let Call::At(now, _) = self { Some(now) } else { None };
        resp::header(out, 4 + keys.len() + usize::from(now.is_some()));
        resp::part(out, word);
        resp::part(out, name);
        resp::part(out, itoa::Buffer::new().format(keys.len()).as_bytes());
        keys.for_each(|key| resp::part(out, key));
        resp::part(out, blob);
        if let Some(now) = now {
            let mut time = blob::Blob::default();
            time.nanos(now.nanos());
            resp::part(out, time.bytes());
        }
    }
}
