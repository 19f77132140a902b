//! The listener of operators: what clients with one token, or none, leave for the others.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tollgate_config::DbPlace;
use tollgate_control::DatabaseUrl;
use tollgate_net::{Address, raise_descriptor_limit};

use crate::rig::{Rig, call};

const RULES: &str = "rules: [{ key_by: ip, limit: { requests: 5, window: 1m } }]";
/// From each of so many addresses: together more than the listener has connections.
const ADDRESSES: u8 = 4;
const PER_ADDRESS: usize = 150;

/// Opens a stream from a loopback address, and reads the status of its response.
async fn stream(to: SocketAddr, from: u8, token: &str) -> Option<(String, TcpStream)> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0))).expect("a loopback address");
    let mut stream = socket.connect(to).await.ok()?;
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut status = [0; 12];
    timeout(Duration::from_secs(20), stream.read_exact(&mut status)).await.ok()?.ok()?;
    Some((String::from_utf8_lossy(&status).into_owned(), stream))
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_with_one_token_leave_room_for_metrics_and_the_switch() {
    raise_descriptor_limit(2_000);
    let rig = Rig::open(RULES, |config, dir| {
        config.control.db = DbPlace::At(DatabaseUrl::Sqlite(dir.join("tollgate.db")));
        config.control.state_dir = Some(dir);
    })
    .await;
    let token = std::fs::read_to_string(rig.dir.path().join("admin-token")).expect("the first token");
    let token = token.trim();
    let Address::Tcp(admin) = rig.admin else { panic!("a TCP address") };
    let (mut open, mut refused) = (Vec::new(), 0);
    for from in 2..2 + ADDRESSES {
        for _ in 0..PER_ADDRESS {
            match stream(admin, from, token).await {
                Some((status, stream)) if status == "HTTP/1.1 200" => open.push(stream),
                Some((status, _)) if status == "HTTP/1.1 429" => refused += 1,
                other => panic!("{:?}", other.map(|(status, _)| status)),
            }
        }
    }
    assert_eq!((open.len(), refused), (32, usize::from(ADDRESSES) * PER_ADDRESS - 32));
    let fields = format!("Authorization: Bearer {token}\r\n");
    for path in ["/metrics", "/v1/mode", "/console"] {
        let answer = call(&rig.admin, "GET", path, &fields, "").await;
        assert!(answer.status < 400, "{path}: {}", answer.head);
    }
}
