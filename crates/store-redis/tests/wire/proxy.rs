//! A proxy that injects network faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// The fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// Replies are lost, requests are not.
    DropReplies,
    /// Nothing gets through in either direction.
    Hole,
    /// Half of the next reply, then the end.
    CutReply,
    /// Replies come one byte at a time, with long pauses.
    Trickle,
    /// Requests are delayed by this much.
    DelayRequests(Duration),
    /// Requests are delayed by a random time up to this, in order.
    JitterRequests(Duration),
    /// Malformed data comes first.
    Garbage,
    /// An unexpected reply comes first.
    Extra,
    /// These bytes instead of the next reply; then the connection stays open and silent.
    Lie(Vec<u8>),
    /// Connections are closed as soon as they are made.
    HangUp,
}

pub struct Proxy {
    pub port: u16,
    upstream: Arc<AtomicU16>,
    mode: Arc<Mutex<Mode>>,
    accepted: Arc<AtomicUsize>,
}

impl Proxy {
    pub async fn start(upstream: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            upstream: Arc::new(AtomicU16::new(upstream)),
            mode: Arc::new(Mutex::new(Mode::Pass)),
            accepted: Arc::default(),
        };
        let (upstream, mode, accepted) = (proxy.upstream.clone(), proxy.mode.clone(), proxy.accepted.clone());
        tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                accepted.fetch_add(1, Ordering::SeqCst);
                if *mode.lock() == Mode::HangUp {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", upstream.load(Ordering::SeqCst))).await else {
                    continue;
                };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let (requests, replies) = (mode.clone(), mode.clone());
                tokio::spawn(async move {
                    let requests = carry_requests(from_client, to_server, requests);
                    let replies = carry_replies(from_server, to_client, replies);
                    tokio::select! { _ = requests => {}, _ = replies => {} }
                });
            }
        });
        proxy
    }

    pub fn set(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    /// Connections made from now on go to this port.
    pub fn lead_to(&self, port: u16) {
        self.upstream.store(port, Ordering::SeqCst);
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

async fn carry_requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mode: Arc<Mutex<Mode>>) -> Option<()> {
    // A delay applies to everything on the connection once.
    let (way_in, mut way_out) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let walk = async move {
        while let Some((due, bytes)) = way_out.recv().await {
            sleep_until(due).await;
            to.write_all(&bytes).await.ok()?;
        }
        Some(())
    };
    let read = async move {
        let (mut chunk, mut lot) = (vec![0; 64 << 10], u64::from(std::process::id()));
        loop {
            let length = from.read(&mut chunk).await.ok().filter(|length| *length > 0)?;
            let pause = match *mode.lock() {
                Mode::Hole => continue,
                Mode::DelayRequests(pause) => pause,
                Mode::JitterRequests(most) => {
                    lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    most * ((lot >> 32) as u32 % 1000) / 1000
                }
                _ => Duration::ZERO,
            };
            way_in.send((Instant::now() + pause, chunk[..length].to_vec())).ok()?;
        }
    };
    let (_, walked): (Option<()>, Option<()>) = tokio::join!(read, walk);
    walked
}

async fn carry_replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mode: Arc<Mutex<Mode>>) -> Option<()> {
    let mut chunk = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut chunk).await.ok().filter(|length| *length > 0)?;
        let bytes = &chunk[..length];
        let present = mode.lock().clone();
        match present {
            Mode::DropReplies | Mode::Hole => {}
            Mode::CutReply => {
                *mode.lock() = Mode::Pass;
                to.write_all(&bytes[..length / 2]).await.ok()?;
                return None;
            }
            Mode::Trickle => {
                for byte in bytes {
                    to.write_all(&[*byte]).await.ok()?;
                    sleep(Duration::from_millis(20)).await;
                }
            }
            Mode::Garbage => {
                *mode.lock() = Mode::Pass;
                to.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok()?;
            }
            Mode::Extra => {
                *mode.lock() = Mode::Pass;
                to.write_all(b"+OK\r\n").await.ok()?;
                to.write_all(bytes).await.ok()?;
            }
            Mode::Lie(lie) => {
                *mode.lock() = Mode::Pass;
                to.write_all(&lie).await.ok()?;
                std::future::pending::<()>().await; // the client is the one that ends the connection
            }
            _ => to.write_all(bytes).await.ok()?,
        }
    }
}
