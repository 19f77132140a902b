//! HTTP/1 heads: an accepted head means the same to a naive reader that splits lines, and however the bytes are split.

use tollgate_web::HttpError;
use tollgate_web::h1::{BodyLength, ParsedHead, parse};

const MAX_HEAD: usize = 4 << 10;
const MAX_HEADERS: usize = 40;
/// Inputs up to this length are cut at every byte, longer ones near both ends.
const CUT_EVERYWHERE: usize = 512;

/// Input: the first bytes of a connection.
pub fn http_head(data: &[u8]) {
    let whole = read(data);
    if let Ok(Some(parsed)) = &whole {
        check_against_naive_reader(data, parsed);
    }
    let cuts = (0..data.len()).filter(|cut| *cut < CUT_EVERYWHERE || data.len() - cut < CUT_EVERYWHERE);
    for cut in cuts {
        check_prefix(data.get(..cut).unwrap_or_default(), &whole);
    }
}

fn read(data: &[u8]) -> Result<Option<ParsedHead<'_>>, HttpError> {
    parse(data, MAX_HEAD, MAX_HEADERS)
}

/// An accepted prefix means the same as the whole; a refused prefix stays refused.
fn check_prefix(piece: &[u8], whole: &Result<Option<ParsedHead<'_>>, HttpError>) {
    match (read(piece), whole) {
        (Ok(None), _) => {
            let is_over = whole.as_ref().is_ok_and(|whole| whole.is_some_and(|whole| whole.bytes <= piece.len()));
            assert!(!is_over, "a complete head of {} bytes is not accepted", piece.len());
        }
        (Ok(Some(part)), Ok(Some(whole))) => assert_eq!(part, *whole, "more bytes change the meaning"),
        (Ok(Some(_)), other) => panic!("more bytes turn a request into {other:?}"),
        (Err(error), Ok(whole)) => panic!("{error:?} for a prefix of {whole:?}"),
        (Err(_), Err(_)) => {}
    }
}

fn check_against_naive_reader(data: &[u8], parsed: &ParsedHead<'_>) {
    assert!(parsed.bytes <= MAX_HEAD);
    let head = data.get(..parsed.bytes).unwrap_or_default();
    let head = head.strip_suffix(b"\r\n\r\n").unwrap_or_else(|| panic!("a head ends in an empty line"));
    assert!(head.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || b"\t\r\n".contains(byte)), "control characters");
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n").skip_while(|line| line.is_empty());
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "a bare CR or LF");

    let request: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    assert_eq!(request.len(), 3, "{request:?}");
    assert_eq!(request.first().copied(), Some(parsed.head.method));
    assert_eq!(request.get(2).copied(), Some(if parsed.is_http10 { "HTTP/1.0" } else { "HTTP/1.1" }));
    assert!(parsed.head.path.starts_with('/') || parsed.head.path == "*" || parsed.head.path.is_empty());
    assert!(!parsed.head.path.contains(['?', ' ', '\r', '\n']));

    let fields: Vec<(&str, &str)> = lines.map(|line| line.split_once(':').expect("a field has a colon")).collect();
    assert!(fields.len() <= MAX_HEADERS);
    assert!(fields.iter().all(|(name, _)| !name.is_empty() && !name.contains([' ', '\t'])), "{fields:?}");
    let values = |wanted: &str| -> Vec<&str> {
        let wanted = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        wanted.map(|(_, value)| value.trim_matches([' ', '\t'])).collect()
    };
    check_host(parsed, &values("host"), request.get(1).copied().unwrap_or_default());
    match (values("content-length").as_slice(), values("transfer-encoding").as_slice()) {
        ([], []) => assert_eq!(parsed.length, BodyLength::Known(0)),
        ([length], []) => {
            let number: u64 = length.parse().expect("digits");
            assert_eq!((BodyLength::Known(number), number.to_string().as_str()), (parsed.length, *length));
        }
        ([], [coding]) => {
            assert!(coding.eq_ignore_ascii_case("chunked") && !parsed.is_http10, "{coding}");
            assert_eq!(parsed.length, BodyLength::Chunked);
        }
        both => panic!("the length is given by {both:?}"),
    }
    assert!(!(parsed.keep_alive && values("connection").iter().any(|value| value.eq_ignore_ascii_case("close"))));
    assert!(!(parsed.expects_continue && parsed.is_http10));
}

/// Exactly one unambiguous host; an absolute target names the same one.
fn check_host(parsed: &ParsedHead<'_>, fields: &[&str], target: &str) {
    assert!(fields.len() == 1 || (parsed.is_http10 && fields.is_empty()));
    let of_target = target.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"));
    let of_target = of_target.map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    for host in fields.iter().chain(&of_target) {
        assert!(!host.is_empty() && !host.contains([' ', '\t', ',', '@', '/', '\\', '?', '#', '%', ';']), "{host}");
        assert!(host.rsplit(']').next().is_some_and(|rest| rest.matches(':').count() <= 1), "{host}");
    }
    if let (Some(field), Some(of_target)) = (fields.first(), of_target) {
        let name = |host: &str| host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        assert!(name(field) == name(of_target) || field.eq_ignore_ascii_case(of_target), "{field} and {of_target}");
    }
    assert_eq!(parsed.head.host.map(<[u8]>::to_vec), fields.first().copied().or(of_target).map(|host| host.into()));
}
