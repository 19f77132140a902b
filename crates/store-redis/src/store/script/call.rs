//! The scripts, and how one of them is called.

use tollgate_core::Time;
use tollgate_resp::{write_array_header, write_bulk};

use super::blob::Blob;

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

/// A fragment of the scripts.
macro_rules! fragment {
    ($name:literal) => {
        include_str!(concat!("../../../scripts/", $name, ".lua"))
    };
}

/// Finds the current window if the caller's estimate missed it: two exact divisions.
macro_rules! window_of_now {
    () => {
        concat!(
            fragment!("here"),
            fragment!("remainder"),
            fragment!("here_middle"),
            fragment!("remainder"),
            fragment!("here_end"),
        )
    };
}

/// The texts of all scripts on a given clock; the other fragments are identical.
macro_rules! texts {
    ($clock:literal) => {
        [
            concat!(
                "#!lua\n",
                fragment!($clock),
                fragment!("open"),
                fragment!("gcra_read"),
                fragment!("gcra_begin"),
                fragment!("arrival_parse"),
                fragment!("gcra_hot"),
                fragment!("flags"),
                fragment!("arrival_look"),
                fragment!("arrival_parse"),
                fragment!("arrival_look_end"),
                fragment!("seen"),
                fragment!("arrival_settle"),
                fragment!("remainder"),
                fragment!("arrival_settle_end"),
                "        end\n",
                fragment!("told"),
                fragment!("count_foreign"),
                fragment!("gcra_write"),
                fragment!("arrival_write"),
                "  elseif held[k] then\n",
                fragment!("gcra_repair"),
                fragment!("gcra_close"),
            ),
            concat!(
                "#!lua\n",
                fragment!($clock),
                fragment!("wide"),
                fragment!("open"),
                fragment!("mixed_read"),
                fragment!("flags"),
                "      if kind == 0 then\n",
                fragment!("arrival_read"),
                fragment!("arrival_look"),
                fragment!("arrival_parse"),
                fragment!("arrival_look_end"),
                "      elseif kind == 1 then\n",
                fragment!("window_read"),
                fragment!("window_parse"),
                fragment!("window_turn"),
                window_of_now!(),
                fragment!("window_turn_end"),
                fragment!("window_look"),
                "      elseif kind == 2 then\n",
                fragment!("window_read"),
                fragment!("counter_parse"),
                fragment!("counter_turn"),
                window_of_now!(),
                fragment!("counter_turn_end"),
                fragment!("counter_look"),
                "      elseif kind == 3 then\n",
                fragment!("log_look"),
                fragment!("log_glance"),
                fragment!("log_look_end"),
                "      elseif kind == 4 then\n",
                fragment!("slots_look"),
                fragment!("slots_glance"),
                fragment!("slots_look_end"),
                "      elseif kind == 5 then\n",
                fragment!("quota_read"),
                fragment!("quota_parse"),
                fragment!("quota_turn"),
                fragment!("window_look"),
                fragment!("quota_look"),
                "      else return {S, N, 'ARGS'} end\n",
                fragment!("seen"),
                "        if kind == 0 then\n",
                fragment!("arrival_settle"),
                fragment!("remainder"),
                fragment!("arrival_settle_end"),
                "        end\n",
                "        elseif kind == 1 then\n",
                fragment!("window_settle"),
                "        elseif kind == 2 then\n",
                fragment!("counter_settle"),
                fragment!("counter_due"),
                "        end\n",
                "        elseif kind == 3 then\n",
                fragment!("log_settle"),
                "        elseif kind == 5 then\n",
                fragment!("quota_settle"),
                fragment!("quota_due"),
                "        end\n",
                "        else\n",
                fragment!("slots_settle"),
                "        end\n",
                fragment!("told"),
                fragment!("mixed_end"),
                fragment!("count_foreign"),
                fragment!("log_write"),
                fragment!("slots_write"),
                fragment!("mixed_write"),
                fragment!("arrival_write"),
                fragment!("mixed_repair"),
                "  elseif type(held[k]) == 'string' and not find(held[k], '%D') then\n",
                fragment!("gcra_repair"),
                fragment!("gcra_close"),
            ),
            concat!(
                "#!lua\n",
                fragment!($clock),
                fragment!("back_open"),
                fragment!("back_arrival"),
                fragment!("arrival_parse"),
                fragment!("back_arrival_end"),
                fragment!("back_quota"),
                fragment!("quota_parse"),
                fragment!("back_quota_end"),
                fragment!("quota_due"),
                "      end\n    end\n",
                fragment!("back_window"),
                fragment!("window_parse"),
                fragment!("window_turn"),
                window_of_now!(),
                fragment!("window_turn_end"),
                fragment!("back_window_end"),
                fragment!("counter_parse"),
                fragment!("counter_turn"),
                window_of_now!(),
                fragment!("counter_turn_end"),
                fragment!("back_counter_end"),
                fragment!("counter_due"),
                fragment!("back_listed"),
                fragment!("log_glance"),
                fragment!("back_log"),
                fragment!("slots_glance"),
                fragment!("back_slots"),
                fragment!("mixed_write"),
                fragment!("arrival_write"),
                fragment!("back_close"),
            ),
        ]
    };
}

const TEXTS: [&str; 3] = texts!("clock");
const TEXTS_WITH_TEST_CLOCK: [&str; 3] = texts!("test_clock");

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
    pub const TEXTS: [&'static str; 3] = TEXTS;

    /// The text for `SCRIPT LOAD` and `EVAL`.
    pub const fn text(self) -> &'static str {
        let [gcra, mixed, give_back] = TEXTS;
        match self {
            Script::Gcra => gcra,
            Script::Mixed => mixed,
            Script::GiveBack => give_back,
        }
    }

    /// The script on a clock that the caller controls: for tests only.
    #[doc(hidden)]
    pub const fn text_with_test_clock(self) -> &'static str {
        let [gcra, mixed, give_back] = TEXTS_WITH_TEST_CLOCK;
        match self {
            Script::Gcra => gcra,
            Script::Mixed => mixed,
            Script::GiveBack => give_back,
        }
    }
}

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptCall<'a> {
    /// By its hash, as returned by `SCRIPT LOAD`.
    Sha(&'a [u8]),
    /// By its text, which also loads it.
    Text,
    /// At a time of the caller's choice; the hash, if any, is that of the text with a test clock.
    #[doc(hidden)]
    At(Time, Option<&'a [u8]>),
}

impl ScriptCall<'_> {
    /// Appends the whole command.
    pub(super) fn encode<'k>(
        self,
        script: Script,
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
        blob: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (word, name): (&[u8], &[u8]) = match self {
            ScriptCall::Sha(sha) | ScriptCall::At(_, Some(sha)) => (b"EVALSHA", sha),
            ScriptCall::Text => (b"EVAL", script.text().as_bytes()),
            ScriptCall::At(_, None) => (b"EVAL", script.text_with_test_clock().as_bytes()),
        };
        let now = if let ScriptCall::At(now, _) = self { Some(now) } else { None };
        write_array_header(out, 4 + keys.len() + usize::from(now.is_some()));
        write_bulk(out, word);
        write_bulk(out, name);
        write_bulk(out, itoa::Buffer::new().format(keys.len()).as_bytes());
        keys.for_each(|key| write_bulk(out, key));
        write_bulk(out, blob);
        if let Some(now) = now {
            let mut time = Blob::default();
            time.nanos(now.nanos());
            write_bulk(out, time.bytes());
        }
    }
}
