//! Replies whole, in pieces, and malformed.

use proptest::prelude::*;

use super::*;
use crate::template::PLACE;

const THROTTLED: &str = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";
const CHECKED: &str = "*6\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n:100\r\n$4\r\nrule\r\n$6\r\norders\r\n";
const CHECKED_BY_MAP: &str = "%3\r\n$7\r\nallowed\r\n#f\r\n$5\r\nlimit\r\n_\r\n$4\r\nrule\r\n$-1\r\n";

fn verdict(text: &str) -> Option<ReplyVerdict> {
    let found = find::<0>(text.as_bytes()).unwrap();
    assert!(found.is_none_or(|reply| reply.length == text.len() && !reply.is_last), "{text:?}");
    found.map(|reply| reply.verdict)
}

#[test]
fn a_command_is_an_array_of_its_words() {
    let (text, _) = frame(&LoadRequest::command(" CL.THROTTLE  {key} 15 user:{key} ")).unwrap();
    let expected = format!("*4\r\n$11\r\nCL.THROTTLE\r\n$16\r\n{PLACE}\r\n$2\r\n15\r\n$21\r\nuser:{PLACE}\r\n");
    assert_eq!((String::from_utf8(text.bytes).unwrap(), text.places.len()), (expected, 2));
    assert!(frame(&LoadRequest::command("  ")).is_err());
    assert!(frame(&LoadRequest::command("GET {key}").header("a", "b")).is_err());
}

#[test]
fn the_first_number_decides_as_its_command_means_it() {
    let read = |line: &str, reply: &str| {
        let (_, find) = frame(&LoadRequest::command(line)).unwrap();
        find(reply.as_bytes()).unwrap().map(|reply| reply.verdict)
    };
    let denied = THROTTLED.replacen(":0", ":1", 1);
    assert_eq!(read("CL.THROTTLE {key} 15 30 60", THROTTLED), Some(ReplyVerdict::Allowed));
    assert_eq!(read("CL.THROTTLE {key} 15 30 60", &denied), Some(ReplyVerdict::Denied));
    assert_eq!(read("throttle {key} 15 30 60", THROTTLED), Some(ReplyVerdict::Denied));
    assert_eq!(read("THROTTLE {key} 15 30 60", &denied), Some(ReplyVerdict::Allowed));
}

#[test]
fn pairs_say_by_themselves() {
    assert_eq!(verdict(CHECKED), Some(ReplyVerdict::Allowed));
    assert_eq!(verdict(&CHECKED.replacen(":1", ":0", 1)), Some(ReplyVerdict::Denied));
    assert_eq!(verdict(CHECKED_BY_MAP), Some(ReplyVerdict::Denied));
    assert_eq!(verdict(&CHECKED_BY_MAP.replacen("#f", "#t", 1)), Some(ReplyVerdict::Allowed));
}

#[test]
fn an_error_is_no_decision_and_anything_else_lets_pass() {
    for error in ["-ERR unknown command\r\n", "-NOAUTH\r\n", "!3\r\nERR\r\n"] {
        assert_eq!(verdict(error), Some(ReplyVerdict::Failed(0)), "{error:?}");
    }
    for reply in [
        "+OK\r\n",
        "$-1\r\n",
        "_\r\n",
        "$3\r\na\r\n\r\n",
        ":1\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\r\n$1\r\na\r\n",
        "$0\r\n\r\n",
    ] {
        assert_eq!(verdict(reply), Some(ReplyVerdict::Allowed), "{reply:?}");
    }
}

#[test]
fn what_follows_a_reply_is_left_alone() {
    let both = format!("{THROTTLED}{THROTTLED}");
    assert_eq!(find::<0>(both.as_bytes()).unwrap().map(|reply| reply.length), Some(THROTTLED.len()));
}

#[test]
fn no_beginning_of_a_reply_is_one() {
    for text in [THROTTLED, CHECKED, CHECKED_BY_MAP] {
        for end in 0..text.len() {
            assert_eq!(find::<0>(&text.as_bytes()[..end]), Ok(None), "{:?}", &text[..end]);
        }
    }
}

#[test]
fn hostile_replies_are_refused() {
    let cases = [
        "HTTP/1.1 400 Bad Request\r\n".to_owned(),
        "\0".to_owned(),
        ":\r\n".to_owned(),
        ":-\r\n".to_owned(),
        ":1a\r\n".to_owned(),
        "*+1\r\n:0\r\n".to_owned(),
        "$1\r\nab\r\n".to_owned(),
        "$99999999999999999999999\r\n".to_owned(),
        "$17000000\r\n".to_owned(),
        ":1\n".to_owned(),
        "*1\r\n".repeat(9),
        format!("+{}", "a".repeat(64 << 10)),
    ];
    for case in cases {
        assert!(find::<0>(case.as_bytes()).is_err(), "{case:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = find::<0>(&bytes);
        let _ = find::<0>(&[b"*5\r\n", bytes.as_slice()].concat());
        let _ = find::<0>(&[b"*99999999999999999999\r\n:0\r\n$3\r\n", bytes.as_slice()].concat());
    }

    #[test]
    fn a_reply_never_reaches_beyond_what_was_read(at in 0..CHECKED.len(), byte: u8) {
        let mut bytes = CHECKED.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok(Some(reply)) = find::<0>(&bytes) {
            prop_assert!(reply.length <= bytes.len());
        }
    }
}
