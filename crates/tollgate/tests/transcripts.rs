//! Transcripts: the test runs every `$` line of `tests/transcripts/*.txt` and compares the output. Lines of standard
//! error begin with `! `, a line `? N` is an exit code other than 0, and `## ` begins a comment. To update:
//! `UPDATE_TRANSCRIPTS=1 cargo test -p tollgate --test transcripts`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use support::Dir;
use support::transcript;

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() {
            let mut dir = Dir::new(concat!("transcript-", stringify!($name)));
            transcript::replay(concat!("tests/transcripts/", stringify!($name), ".txt"), &mut dir);
        })*

        #[test]
        fn every_transcript_is_replayed() {
            transcript::assert_all("tests/transcripts", &[$(stringify!($name)),*]);
        }
    };
}

transcripts!(
    bench,
    check,
    config,
    db,
    explain,
    fmt,
    help,
    help_admin,
    lint,
    measure,
    mistakes,
    store,
    test_tables,
    translate
);
