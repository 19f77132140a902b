//! RELIABILITY 3.6, H20, F54 and F56 over raw sockets: what they send ends nothing but their own connection, and
//! others are answered meanwhile.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tollgate_lab::patience::until_async;
use tollgate_net::NetLimits;

use crate::rig::{Caller, PATIENCE, Rig, bytes, command, within};

const PASSWORD: &str = "correct horse battery";
const MULTIBULK: &[u8] = b"-ERR Protocol error: invalid multibulk length\r\n";

fn guarded(net: NetLimits) -> Rig {
    Rig::with(|config, dir| {
        let file = dir.join("password");
        std::fs::write(&file, PASSWORD).unwrap();
        config.resp.password_file = Some(file);
        config.net = net;
    })
}

async fn ends_with(rig: &Rig, sent: &[u8], expected: &[u8]) {
    let mut caller = rig.caller().await;
    let _ = caller.try_send(sent).await;
    let came = caller.rest().await.unwrap_or_default();
    let sent = sent.get(..100).unwrap_or(sent);
    assert_eq!(came.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{}", sent.escape_ascii());
}

#[tokio::test]
async fn r01_claims_are_not_believed() {
    let rig = Rig::start();
    for claim in ["*1000000000\r\n", "*-5\r\n", "*\r\n", "*99999999999999999999\r\n", "*65\r\n"] {
        ends_with(&rig, claim.as_bytes(), MULTIBULK).await;
    }
    for claim in ["$1000000000\r\n", "$-2\r\n", "$99999999999999999999\r\n"] {
        let sent = format!("*2\r\n{claim}");
        ends_with(&rig, sent.as_bytes(), b"-ERR Protocol error: invalid bulk length\r\n").await;
    }
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"malformed\"}").await, 8.0);
    rig.answers_others().await;
}

#[tokio::test]
async fn r02_a_command_is_at_most_a_megabyte() {
    let rig = Rig::start();
    let long = vec![b'x'; 64 << 10];
    let mut caller = rig.caller().await;
    caller.send(&bytes(&[b"ECHO", &long])).await;
    assert_eq!(caller.reply().await.len(), long.len() + "$65536\r\n\r\n".len());
    let words: Vec<&[u8]> = std::iter::repeat_n(&long[..], 20).collect();
    ends_with(&rig, &bytes(&words), b"-ERR Protocol error: too big request\r\n").await;
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"too_large\"}").await, 1.0);
}

#[tokio::test]
async fn r03_strangers_send_little() {
    let rig = guarded(NetLimits::default());
    ends_with(&rig, b"*11\r\n", MULTIBULK).await;
    ends_with(&rig, b"*1\r\n$16385\r\n", b"-ERR Protocol error: invalid bulk length\r\n").await;
    let long = [b'x'; 16 << 10];
    ends_with(&rig, &bytes(&[&long, &long]), b"-ERR Protocol error: too big request\r\n").await;
    let mut caller = rig.caller().await;
    caller.says(&command(&["AUTH", PASSWORD]), b"+OK\r\n").await;
    caller.send(&bytes(&[b"ECHO", &[b'x'; 20_000]])).await;
    assert!(caller.reply().await.starts_with("$20000\r\n"), "who is known may send more");
}

#[tokio::test]
async fn r04_strangers_are_told_little() {
    let rig = guarded(NetLimits::default());
    let mut caller = rig.caller().await;
    let flood = b"PING\r\n".repeat(100_000);
    let _ = caller.try_send(&flood).await;
    let mut told = 0;
    let mut some = vec![0; 64 << 10];
    while let Ok(read @ 1..) = within(caller.stream.read(&mut some)).await {
        told += read;
    }
    assert!(told <= 64 << 10, "{told}");
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"stranger\"}").await, 1.0);
}

/// Each sends almost all of a command: what they may fill is not what callers with the password need.
#[tokio::test]
async fn strangers_leave_room_for_others() {
    let rig = guarded(NetLimits { max_in_transit: 256 << 10, ..NetLimits::default() });
    let begun = [&b"*2\r\n$16384\r\n"[..], &[b'x'; 16_000]].concat();
    let mut strangers = Vec::new();
    for _ in 0..40 {
        let mut stranger = rig.caller().await;
        let _ = stranger.try_send(&begun).await;
        strangers.push(stranger);
    }
    let no_room = async { while rig.metric("tollgate_resp_protocol_errors_total{reason=\"no_room\"}").await < 30.0 {} };
    within(no_room).await;
    let mut caller = rig.caller().await;
    caller.says(&command(&["AUTH", PASSWORD]), b"+OK\r\n").await;
    caller.send(&bytes(&[b"ECHO", &[b'x'; 60_000]])).await;
    assert!(caller.reply().await.starts_with("$60000\r\n"));
}

#[tokio::test]
async fn strangers_have_so_long_to_give_the_password() {
    let rig = guarded(NetLimits { head_timeout: Duration::from_millis(1500), ..NetLimits::default() });
    let mut known = rig.caller().await;
    known.says(&command(&["AUTH", PASSWORD]), b"+OK\r\n").await;
    let (mut silent, mut busy) = (rig.caller().await, rig.caller().await);
    let is_gone = async || busy.try_send(b"\r\n").await.is_err();
    let asking = until_async("the end of who only asks", PATIENCE, is_gone);
    let (said, ()) = within(async { tokio::join!(silent.rest(), asking) }).await;
    assert_eq!(said.unwrap(), b"");
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"stranger\"}").await, 2.0);
    known.says(b"PING\r\n", b"+PONG\r\n").await;
    known.says(b"RESET\r\n", b"+RESET\r\n").await;
    assert_eq!(known.rest().await.unwrap(), b"", "a stranger again");
}

#[tokio::test]
async fn empty_commands_of_strangers_count() {
    let rig = guarded(NetLimits { head_timeout: Duration::from_secs(3600), ..NetLimits::default() });
    let mut caller = rig.caller().await;
    let _ = caller.try_send(&b"*0\r\n".repeat(10_000)).await;
    let _ = caller.rest().await;
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"stranger\"}").await, 1.0);
}

#[tokio::test]
async fn who_gives_the_password_again_and_again_is_no_stranger() {
    let rig = guarded(NetLimits::default());
    let mut caller = rig.caller().await;
    let rounds = [command(&["AUTH", PASSWORD]), command(&["RESET"])].concat().repeat(1000);
    for _ in 0..10 {
        caller.says(&rounds, &b"+OK\r\n+RESET\r\n".repeat(1000)).await;
    }
}

/// What a large command made grow does not stay because of a few bytes now and then.
#[tokio::test]
async fn large_buffers_do_not_outlive_their_use() {
    const CALLERS: usize = 600;
    let rig = Rig::start();
    let large = command(&["ECHO", &"x".repeat(65_000)]);
    let before = rig.metric("process_resident_memory_bytes").await;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let mut caller = rig.caller().await;
        caller.send(&large).await;
        assert_eq!(caller.reply().await.len(), 65_000 + "$65000\r\n\r\n".len());
        for _ in 0..20 {
            caller.says(b"PING\r\n", b"+PONG\r\n").await;
        }
        caller.says(b"PING\r\n*", b"+PONG\r\n").await;
        callers.push(caller);
    }
    let each = (rig.metric("process_resident_memory_bytes").await - before) / CALLERS as f64;
    assert!(each < 112.0 * 1024.0, "{each} bytes each, whatever other tests take meanwhile included");
    drop(callers);
}

#[tokio::test]
async fn r05_inline_commands_are_short() {
    let rig = Rig::start();
    let line = vec![b'x'; 64 << 10];
    ends_with(&rig, &line, b"-ERR Protocol error: too big inline request\r\n").await;
    ends_with(&rig, b"PING \"a\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n").await;
    let words = [&b"x ".repeat(70)[..], b"\r\n"].concat();
    ends_with(&rig, &words, b"-ERR Protocol error: too many arguments\r\n").await;
}

/// R08: only arrays and lines of words are commands, whatever a value of another type holds.
#[tokio::test]
async fn r08_values_of_other_types_are_no_commands() {
    let rig = Rig::start();
    let check = "TG.CHECK client_key=victim";
    for sent in [
        format!("%1\r\n${}\r\n{check}\r\n", check.len()),
        format!("${}\r\n{check}\r\n", check.len()),
        format!("+{check}\r\n"),
        format!("-{check}\r\n"),
        format!("={}\r\ntxt:{check}\r\n", check.len() + 4),
        format!("!{}\r\n{check}\r\n", check.len()),
        "~2\r\n$8\r\nTG.CHECK\r\n$17\r\nclient_key=victim\r\n".to_owned(),
        ">2\r\n$8\r\nTG.CHECK\r\n$17\r\nclient_key=victim\r\n".to_owned(),
        "|1\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$8\r\nTG.CHECK\r\n$17\r\nclient_key=victim\r\n".to_owned(),
        ":1\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        "_\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        "#t\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        ",1.5\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        "(12345\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        ".\r\nTG.CHECK client_key=victim\r\n".to_owned(),
        ";4\r\nPING\r\nTG.CHECK client_key=victim\r\n".to_owned(),
    ] {
        let mark = &sent.as_bytes()[..1];
        let expected = [b"-ERR Protocol error: expected '*', got '", mark, b"'\r\n"].concat();
        ends_with(&rig, sent.as_bytes(), &expected).await;
    }
    let mut caller = rig.caller().await;
    caller.send(b"TG.PEEK client_key=victim\r\n").await;
    assert!(caller.reply().await.contains("remaining\r\n:10\r\n"), "something was charged");
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"malformed\"}").await, 16.0);
}

/// R02: what is announced and does not come is told so before the connection ends.
#[tokio::test]
async fn r02_a_command_that_does_not_come_is_told_so() {
    let head_timeout = Duration::from_millis(300);
    let rig = Rig::with(|config, _| config.net = NetLimits { head_timeout, ..NetLimits::default() });
    let late = b"-ERR Protocol error: the rest of the command did not come in time\r\n";
    for sent in
        [&b"*1\r\n$5\r\nabc\r\n"[..], b"*2\r\n$4\r\nECHO\r\n$5\r\nabc", b"*3", b"*1\r\n", b"PING", b"*1\r\n$4\r\nPING"]
    {
        ends_with(&rig, sent, late).await;
    }
    ends_with(&rig, b"$5\r\nabc\r\n", b"-ERR Protocol error: expected '*', got '$'\r\n").await;
    ends_with(&rig, b"PING\r\n*1\r\n", &[b"+PONG\r\n", &late[..]].concat()).await;
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"too_slow\"}").await, 7.0);
    rig.answers_others().await;
}

/// One byte after the other buys no time, whether the whole was announced or not.
#[tokio::test]
async fn r06_a_trickle_ends_in_time() {
    let head_timeout = Duration::from_millis(500);
    let rig = Rig::with(|config, _| config.net = NetLimits { head_timeout, ..NetLimits::default() });
    let trickle = |sent: Vec<u8>| {
        let at = rig.at();
        async move {
            let (mut stream, since) = (TcpStream::connect(at).await.unwrap(), Instant::now());
            let mut bytes = sent.iter().cycle();
            let is_over = async || stream.write_all(&[*bytes.next().unwrap()]).await.is_err();
            until_async("the end of a trickle", PATIENCE, is_over).await;
            since.elapsed()
        }
    };
    let (array, line) = within(async {
        tokio::join!(trickle([&b"*2\r\n$4\r\nPING\r\n$60000\r\n"[..], &[b'x'; 9000]].concat()), trickle(vec![b'x']))
    })
    .await;
    assert!(array >= head_timeout && line >= head_timeout, "{array:?} {line:?}");
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"too_slow\"}").await, 2.0);
    rig.answers_others().await;
}

/// A million commands, never read: the server stops reading, and in the end has enough.
#[tokio::test]
async fn r07_who_does_not_read_stops_itself() {
    let write_timeout = Duration::from_millis(500);
    let rig = Rig::with(|config, _| config.net = NetLimits { write_timeout, ..NetLimits::default() });
    let stream = TcpStream::connect(rig.at()).await.unwrap();
    let (_reader, mut writer) = stream.into_split();
    let flood = command(&["ECHO", &"x".repeat(1000)]).repeat(1000);
    let mut sent = 0_u64;
    let flooding = async {
        while writer.write_all(&flood).await.is_ok() && sent < 1_000_000 {
            sent += 1000;
        }
    };
    within(flooding).await;
    assert!(sent < 1_000_000, "the server took all of it");
    rig.answers_others().await;
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"too_slow\"}").await, 1.0);
}

#[tokio::test]
async fn r12_h20_other_protocols_are_not_answered() {
    let rig = Rig::start();
    for sent in [
        &b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nPING\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"PRI * HTTP/2.0\r\n",
        b"GET / HTTP/1.1\r\n",
    ] {
        let mut caller = rig.caller().await;
        let _ = caller.try_send(sent).await;
        let came = caller.rest().await.unwrap_or_default();
        assert!(came.is_empty(), "{}", came.escape_ascii());
    }
    assert_eq!(rig.metric("tollgate_resp_protocol_errors_total{reason=\"foreign\"}").await, 6.0);
    rig.answers_others().await;
}

#[tokio::test]
async fn idle_connections_stay_unless_that_is_set() {
    let rig = Rig::with(|config, _| {
        config.net.idle_timeout = Duration::from_millis(50); // of others
        config.resp.idle_timeout = None;
    });
    let mut caller = rig.caller().await;
    for _ in 0..6 {
        let mut other = TcpStream::connect(rig.admin).await.unwrap();
        let mut said = Vec::new();
        within(other.read_to_end(&mut said)).await.unwrap();
        assert!(said.is_empty(), "an idle connection of another protocol ends");
    }
    caller.says(b"PING\r\n", b"+PONG\r\n").await;

    let rig = Rig::with(|config, _| config.resp.idle_timeout = Some(Duration::from_millis(100)));
    let mut caller = rig.caller().await;
    caller.says(b"PING\r\n", b"+PONG\r\n").await;
    assert_eq!(caller.rest().await.unwrap(), b"", "a proper end, without a word");
}

/// F56: whatever bytes, each connection gets an answer or an end, and the server stays.
#[tokio::test]
async fn f56_a_storm_of_nonsense_ends_nothing() {
    let rig = Rig::start();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    const PIECES: [&[u8]; 18] = [
        b"*3\r\n",
        b"$4\r\n",
        b"\r\n",
        b"PING",
        b"CL.THROTTLE",
        b"$-1\r\n",
        b"*-1\r\n",
        b"\"",
        b"\0",
        b" 1 1 1",
        b"HELLO 3",
        b"TG.CHECK a=b",
        b"*1\r\n$4\r\nPING\r\n",
        b"\xff",
        b"MULTI\r\n",
        b"*1\r\n$4\r\nEXEC\r\n",
        b"DISCARD\r\n",
        b"%1\r\n",
    ];
    for _ in 0..400 {
        let mut sent = Vec::new();
        for _ in 0..random() % 30 {
            sent.extend_from_slice(PIECES[(random() % PIECES.len() as u64) as usize]);
        }
        let mut caller: Caller = rig.caller().await;
        let _ = caller.try_send(&sent).await;
        let _ = caller.stream.shutdown().await;
        let _ = caller.rest().await;
    }
    assert_eq!(rig.metric("tollgate_panics_total").await, 0.0);
    rig.answers_others().await;
    assert_eq!(rig.end().await, 0);
}
