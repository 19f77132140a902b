//! Fuzzes request bodies: an accepted body is JSON with the values that were read; an error never repeats a value.

use serde_json::Value;
use tollgate_core::Request;

use crate::check_request::{BATCH_MAX, BodyError, COST_MAX, CheckRequest, read_batch, read_check, read_receipt};

/// Parts of values of at least this length must not appear in an error.
const PIECE: usize = 16;
/// Longest path and detail of an error: names are cut to 64 characters.
const FAULT_BYTES_MAX: usize = 400;

/// Any bytes as the body of each call.
pub fn json_check(data: &[u8]) {
    let json = serde_json::from_slice::<Value>(data).ok();
    match read_check(data) {
        Ok(request) => is_what_was_sent(&request, json.as_ref().expect("a request is JSON")),
        Err(fault) => repeats_nothing(&fault, data, json.as_ref(), |data| read_check(data).err()),
    }
    match read_batch(data) {
        Ok(requests) => {
            let sent = json.as_ref().and_then(|json| json.get("requests")?.as_array()).expect("a batch is a list");
            assert!(requests.len() == sent.len() && sent.len() <= BATCH_MAX);
            requests.iter().zip(sent).for_each(|(request, sent)| is_what_was_sent(request, sent));
        }
        Err(fault) => repeats_nothing(&fault, data, json.as_ref(), |data| read_batch(data).err()),
    }
    for with_costs in [true, false] {
        match read_receipt(data, with_costs) {
            Ok(read) => {
                let sent = json.as_ref().expect("a receipt is JSON");
                let receipt = sent.get("reservation").or_else(|| sent.get("slot"));
                let text = receipt.map(|receipt| receipt.as_str().map_or_else(|| receipt.to_string(), str::to_owned));
                assert_eq!(text.as_deref(), Some(&*read.receipt), "a number is the text of its digits");
                for (meter, amount) in read.costs() {
                    let named = sent.get("costs").and_then(|costs| costs.get(meter));
                    let cost = named.or_else(|| sent.get("cost").filter(|_| meter == Request::REQUESTS));
                    assert_eq!(cost.and_then(Value::as_u64), Some(amount));
                    assert!(with_costs && amount <= COST_MAX);
                }
            }
            Err(fault) => {
                repeats_nothing(&fault, data, json.as_ref(), |data| read_receipt(data, with_costs).err());
            }
        }
    }
}

fn is_what_was_sent(request: &CheckRequest<'_>, sent: &Value) {
    let lists = request.lists();
    let request = request.request(&lists);
    assert!(request.cost <= COST_MAX);
    let costs = |meter: &str| sent.get("costs").and_then(|costs| costs.get(meter));
    let cost = sent.get("cost").or_else(|| costs(Request::REQUESTS));
    assert_eq!(cost.map_or(Some(1), Value::as_u64), Some(request.cost));
    for (meter, amount) in request.costs {
        assert_eq!(costs(meter).and_then(Value::as_u64), Some(*amount));
    }
    for (name, value) in request.custom {
        assert!(!name.contains('\0') && !value.contains('\0'));
        assert_eq!(sent.get("attributes").and_then(|all| all.get(*name)?.as_str()), Some(*value));
    }
    for (name, value) in sent.as_object().into_iter().flatten() {
        assert!(value.as_str().is_none_or(|text| !text.contains('\0')), "NUL in {name}");
    }
}

fn repeats_nothing(fault: &BodyError, data: &[u8], json: Option<&Value>, read: impl Fn(&[u8]) -> Option<BodyError>) {
    let BodyError { code, field, detail } = fault;
    assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code:?}");
    assert!(field.len() <= FAULT_BYTES_MAX && detail.len() <= FAULT_BYTES_MAX, "{fault:?}");
    assert!(field.bytes().all(|byte| byte.is_ascii_graphic()), "{fault:?}");
    assert!(!detail.contains(char::is_control), "{fault:?}");
    let Some(json) = json else { return };
    let (mut names, mut values) = (String::new(), Vec::new());
    gather(json, &mut names, &mut values);
    for value in values {
        for piece in value.as_bytes().windows(PIECE).filter_map(|piece| str::from_utf8(piece).ok()) {
            let is_repeated = field.contains(piece) || detail.contains(piece);
            // A value may equal a part of our own text, which is there whatever the value is.
            if is_repeated && !names.contains(piece) {
                let other = read(&without(data, piece.as_bytes()));
                assert_eq!(other.as_ref(), Some(fault), "{piece:?} comes back");
            }
        }
    }
}

/// The same bytes with something else in place of a piece.
fn without(data: &[u8], piece: &[u8]) -> Vec<u8> {
    let mut changed = data.to_vec();
    let places = data.windows(piece.len()).enumerate().filter(|(_, window)| *window == piece);
    for (place, _) in places {
        if let Some(there) = changed.get_mut(place..place + piece.len()) {
            there.fill(b'x');
        }
    }
    changed
}

/// All names, one after the other, and all texts that are values.
fn gather<'a>(json: &'a Value, names: &mut String, values: &mut Vec<&'a str>) {
    match json {
        Value::String(text) => values.push(text),
        Value::Array(list) => list.iter().for_each(|value| gather(value, names, values)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            names.push_str(name);
            gather(value, names, values);
        }),
        _ => {}
    }
}
