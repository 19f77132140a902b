//! Whatever a stream holds and however it is cut, it passes unchanged but for the report that was added.

use proptest::prelude::*;

use super::samples::*;
use super::*;

/// Pieces of streams, well-formed and not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(CHAT_EVENTS.as_bytes().to_vec()),
        Just(ANTHROPIC_EVENTS.as_bytes().to_vec()),
        Just(DONE.as_bytes().to_vec()),
        Just(b"data: {\"choices\":[".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"\r\r".to_vec()),
        Just(b"\n".to_vec()),
        Just(b": comment\n".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"data:\ndata\nid: 7\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
        "[a-z{}\\[\\]\":,0-9 \n]{0,40}".prop_map(String::into_bytes),
    ]
}

/// A stream that is cut at these places.
fn cut(body: &[u8], cuts: &[usize], mut each: impl FnMut(&[u8])) {
    let mut start = 0;
    for length in cuts.iter().cycle() {
        if start >= body.len() {
            return;
        }
        let end = (start + length).min(body.len());
        each(&body[start..end]);
        start = end;
    }
}

fn pass(reader: &mut UsageReader, body: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    cut(body, cuts, |piece| reader.push(Bytes::copy_from_slice(piece), &mut out));
    reader.end(&mut out);
    out.iter().flat_map(|passage| passage.bytes.to_vec()).collect()
}

proptest! {
    #[test]
    fn nothing_is_changed_where_nothing_was_added(
        pieces in proptest::collection::vec(piece(), 0..8),
        cuts in proptest::collection::vec(1..200usize, 1..6),
        media in prop_oneof![Just("text/event-stream"), Just("application/json"), Just("text/plain")],
    ) {
        let body = pieces.concat();
        for (path, request) in [(CHAT, r#"{"messages":[]}"#), ("/v1/x:streamGenerateContent", "{}")] {
            let request = call(path, request);
            let mut reader = UsageReader::new(&request, &LlmSpec::default(), 200, Some(media));
            prop_assert_eq!(&pass(&mut reader, &body, &cuts), &body);
        }
    }

    #[test]
    fn only_the_added_report_is_left_out(
        before in proptest::collection::vec(piece(), 0..4),
        after in proptest::collection::vec(piece(), 0..4),
        cuts in proptest::collection::vec(1..200usize, 1..6),
    ) {
        // Whatever stands before ends, so that the report is an event of its own.
        let before = [&before.concat()[..], b"\n\n"].concat();
        let after = after.concat();
        let body = [&before[..], CHAT_USAGE.as_bytes(), &after].concat();
        let request = call(CHAT, CHAT_STREAM);
        prop_assert_eq!(pass(&mut events(&request), &body, &cuts), [before, after].concat());
    }

    #[test]
    fn usage_does_not_depend_on_the_cuts(
        pieces in proptest::collection::vec(piece(), 0..8),
        cuts in proptest::collection::vec(1..200usize, 1..6),
    ) {
        let body = pieces.concat();
        let request = call(CHAT, CHAT_STREAM);
        let (mut whole, mut parts) = (events(&request), events(&request));
        pass(&mut whole, &body, &[usize::MAX / 2]);
        pass(&mut parts, &body, &cuts);
        prop_assert_eq!(whole.usage(), parts.usage());
    }
}
