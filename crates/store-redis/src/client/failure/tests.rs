//! Every error code and what it allows.

use bytes::Bytes;

use super::*;

fn code(text: &'static str) -> ErrorCode {
    ErrorCode::of(&RespValue::Error(Bytes::from_static(text.as_bytes()))).unwrap()
}

fn treatment(text: &'static str) -> Treatment {
    code(text).treatment()
}

use StoreErrorKind::{Refused, Saturated, Unavailable};

#[test]
fn noscript_is_sent_again_as_text_whatever_the_server_calls_it() {
    assert_eq!(treatment("NOSCRIPT No matching script. Please use EVAL."), Treatment::Reload);
    assert_eq!(treatment("NOSCRIPT No matching script."), Treatment::Reload);
}

#[test]
fn moved_ask_readonly_and_clusterdown_go_up() {
    assert_eq!(treatment("MOVED 3999 127.0.0.1:6381"), Treatment::Redirect);
    assert_eq!(treatment("ASK 3999 127.0.0.1:6381"), Treatment::Redirect);
    assert_eq!(treatment("READONLY You can't write against a read only replica."), Treatment::Redirect);
    assert_eq!(treatment("CLUSTERDOWN Hash slot not served"), Treatment::Redirect);
}

#[test]
fn tryagain_is_tried_again() {
    assert_eq!(treatment("TRYAGAIN Multiple keys request during rehashing of slot"), Treatment::Again);
}

#[test]
fn servers_that_are_not_ready_are_unavailable() {
    assert_eq!(treatment("LOADING Redis is loading the dataset in memory"), Treatment::GiveUp(Unavailable));
    assert_eq!(treatment("MASTERDOWN Link with MASTER is down"), Treatment::GiveUp(Unavailable));
    assert_eq!(treatment("BUSY Redis is busy running a script."), Treatment::GiveUp(Unavailable));
    assert_eq!(treatment("BUSY Valkey is busy running a script."), Treatment::GiveUp(Unavailable));
}

#[test]
fn servers_that_will_not_are_refusals() {
    assert_eq!(treatment("NOREPLICAS Not enough good replicas to write."), Treatment::GiveUp(Refused));
    assert_eq!(treatment("OOM command not allowed when used memory > 'maxmemory'."), Treatment::GiveUp(Refused));
    assert_eq!(treatment("NOAUTH Authentication required."), Treatment::GiveUp(Refused));
    assert_eq!(treatment("WRONGPASS invalid username-password pair or user is disabled."), Treatment::GiveUp(Refused));
    assert_eq!(treatment("NOPERM this user has no permissions"), Treatment::GiveUp(Refused));
}

#[test]
fn too_many_clients_is_saturation() {
    assert_eq!(treatment("ERR max number of clients reached"), Treatment::GiveUp(Saturated));
}

#[test]
fn everything_else_may_have_been_charged() {
    for text in
        ["ERR", "ERR unknown command", "", "MISCONF errors", "CROSSSLOT x", "noscript", "NOSCRIPTS", "MOVEDX 1 a:1"]
    {
        assert_eq!(treatment(text), Treatment::Unknown, "{text:?}");
    }
    assert_eq!(ErrorCode::of(&RespValue::Text(Bytes::from_static(b"MOVED"))), None);
}

#[test]
fn redirections_are_read() {
    let read = |text: &'static str| {
        let value = RespValue::Error(Bytes::from_static(text.as_bytes()));
        Redirect::of(code(text), &value, "10.0.0.7")
    };
    let to = |host, port| HostPort::new(host, port);
    assert_eq!(read("MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved { slot: 3999, to: to("127.0.0.1", 6381) }));
    assert_eq!(read("MOVED 3999 :6381"), Some(Redirect::Moved { slot: 3999, to: to("10.0.0.7", 6381) }));
    assert_eq!(read("ASK 0 ::1:6381"), Some(Redirect::Ask { slot: 0, to: to("::1", 6381) }));
    assert_eq!(read("READONLY x"), Some(Redirect::ReadOnly));
    assert_eq!(read("CLUSTERDOWN x"), Some(Redirect::ClusterDown));
    for bad in ["MOVED", "MOVED 3999", "MOVED x a:1", "MOVED 16384 a:1", "MOVED 1 a", "ASK 1 a:0"] {
        assert_eq!(read(bad), None, "{bad}");
    }
}

#[test]
fn an_unknown_error_is_reported_by_its_code_alone() {
    let told = |text: &'static str| meaning_of(code(text), &RespValue::Error(Bytes::from_static(text.as_bytes())));
    assert_eq!(told("MISCONF Redis is configured to save RDB"), "the server answered with an error (MISCONF)");
    assert_eq!(told("hunter2"), "the server answered with an error");
    assert_eq!(told("BUSY hunter2"), ErrorCode::Busy.meaning());
}

#[test]
fn every_refusal_has_its_place_and_its_own_name() {
    for (place, code) in ErrorCode::ALL.into_iter().enumerate() {
        assert_eq!(code.index(), place);
        assert_eq!(ErrorCode::ALL.iter().filter(|other| other.name() == code.name()).count(), 1);
    }
}
