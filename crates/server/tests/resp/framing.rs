//! SPEC 3.3 over the wire: every row, whole and cut at every place.

use crate::rig::{Caller, Rig, command};

/// What is sent, what comes back, and whether the connection then ends.
const ROWS: &[(&[u8], &[u8], bool)] = &[
    (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n", false),
    (b"*2\r\n$4\r\npInG\r\n$5\r\nhe\0lo\r\n", b"$5\r\nhe\0lo\r\n", false),
    (b"*0\r\n*-1\r\n\r\n\n*1\r\n$4\r\nPING\r\n", b"+PONG\r\n", false),
    (b"PING\r\nPING\nPING \"a\\x20b\"\r\n", b"+PONG\r\n+PONG\r\n$3\r\na b\r\n", false),
    (b"*1\r\n$4\r\nPING\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", b"+PONG\r\n+PONG\r\n$0\r\n\r\n", false),
    (b"*abc\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", true),
    (b"*2147483648\r\n", b"-ERR Protocol error: invalid multibulk length\r\n", true),
    (b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n", true),
    (b"*1\r\n$-1\r\n", b"-ERR Protocol error: invalid bulk length\r\n", true),
    (b"*1\r\n$65537\r\n", b"-ERR Protocol error: invalid bulk length\r\n", true),
    (b"*1\r\n$1\r\nab\r\n", b"-ERR Protocol error: expected CRLF after bulk\r\n", true),
    (b"ECHO \"a\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n", true),
    (b"%1\r\n$8\r\nTG.CHECK\r\n$12\r\nclient_key=a\r\n", b"-ERR Protocol error: expected '*', got '%'\r\n", true),
    (b"PING\r\n$4\r\nPING\r\n", b"+PONG\r\n-ERR Protocol error: expected '*', got '$'\r\n", true),
    (b"PING\r\n*x\r\nPING\r\n", b"+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n", true),
    (b"FOO bar\r\n", b"-ERR unknown command 'FOO', with args beginning with: 'bar' \r\n", false),
    (b"PING a b\r\n", b"-ERR wrong number of arguments for 'ping' command\r\n", false),
    (b"QUIT\r\nPING\r\n", b"+OK\r\n", true),
    (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"", true),
];

#[tokio::test]
async fn every_row_wherever_it_is_cut() {
    let rig = Rig::start();
    for (sent, expected, ends) in ROWS {
        for cut in (0..sent.len()).step_by(if sent.len() > 40 { 3 } else { 1 }) {
            let mut caller = rig.caller().await;
            let (left, right) = sent.split_at(cut);
            caller.send(left).await;
            if cut > 0 {
                tokio::task::yield_now().await; // both pieces are seen apart more often than not
            }
            let _ = caller.try_send(right).await; // a server that has seen enough may have gone
            check(&mut caller, sent, expected, *ends).await;
        }
    }
    rig.answers_others().await;
}

async fn check(caller: &mut Caller, sent: &[u8], expected: &[u8], ends: bool) {
    match ends {
        true => {
            let came = caller.rest().await.unwrap_or_default();
            // A silent end may reset what was still on its way; a spoken one may not.
            assert_eq!(came.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{}", sent.escape_ascii());
        }
        false => {
            let mut all = expected.to_vec();
            all.extend_from_slice(b"$4\r\nstay\r\n");
            caller.says(b"ECHO stay\r\n", &all).await;
        }
    }
}

#[tokio::test]
async fn byte_by_byte_is_the_same() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    let sent = [command(&["ECHO", "a\r\nb"]), b"PING\r\n".to_vec(), command(&["CL.THROTTLE", "k", "9", "1", "3600"])];
    for byte in sent.concat() {
        caller.send(&[byte]).await;
    }
    caller.says(b"", b"$4\r\na\r\nb\r\n+PONG\r\n*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:3600\r\n").await;
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order_and_a_batch_in_one_piece() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    let sent: Vec<u8> = (0..5000).flat_map(|number| command(&["ECHO", &number.to_string()])).collect();
    let expected: String = (0..5000).map(|n: i32| format!("${}\r\n{n}\r\n", n.to_string().len())).collect();
    let (mut reader, mut writer) = caller.stream.split();
    let write = async { tokio::io::AsyncWriteExt::write_all(&mut writer, &sent).await.unwrap() };
    let read = async {
        let mut came = vec![0; expected.len()];
        tokio::io::AsyncReadExt::read_exact(&mut reader, &mut came).await.unwrap();
        came
    };
    let (came, ()) = crate::rig::within(async { tokio::join!(read, write) }).await;
    assert_eq!(came, expected.as_bytes());
}

#[tokio::test]
async fn keys_are_any_bytes() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    let every: Vec<u8> = (0..=255).collect();
    for key in [&every[..], b"", b"\r\n", &[0xff, 0xfe]] {
        let throttle = |key: &[u8]| crate::rig::bytes(&[b"CL.THROTTLE", key, b"1", b"1", b"3600"]);
        caller.says(&throttle(key), b"*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:3600\r\n").await;
        caller.says(&throttle(key), b"*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:7200\r\n").await;
    }
    let long = vec![b'x'; 64 << 10];
    let sent = crate::rig::bytes(&[b"CL.THROTTLE", &long, b"1", b"1", b"3600"]);
    caller.says(&sent, b"-ERR Cell error: Store error: The key is longer than 16384 bytes\r\n").await;
    caller.says(b"PING\r\n", b"+PONG\r\n").await;
}
