//! The fault proxy does to bytes what its mode says.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_lab::fault_proxy::{Direction, FaultProxy, LinkMode};
use tollgate_lab::patience::{self, Watch};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// An echo server for one connection at a time; ends when it receives `end`.
struct Echo {
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    if &buffer[..length] == b"end" {
                        return;
                    }
                    let _ = stream.write_all(&buffer[..length]);
                }
            }
        });
        Echo { port, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap().write_all(b"end").unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(ms(5000))).unwrap();
    stream
}

/// How long it takes to hear `text` back.
fn round(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Duration> {
    let watch = Watch::start();
    stream.write_all(text)?;
    let mut heard = vec![0; text.len()];
    stream.read_exact(&mut heard)?;
    assert_eq!(heard, text);
    Ok(watch.elapsed())
}

#[test]
fn passes_delays_and_counts() {
    let (echo, mut took) = (Echo::start(), Vec::new());
    let proxy = FaultProxy::start(echo.port);
    let mut stream = connect(&proxy);
    round(&mut stream, b"hello").unwrap();
    assert_eq!((proxy.bytes(Direction::Requests), proxy.bytes(Direction::Replies)), (5, 5));
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
    proxy.set(LinkMode::Delay(ms(60)));
    took.push(round(&mut stream, b"hello").unwrap());
    proxy.set(LinkMode::Pass);
    proxy.set_only(Direction::Requests, LinkMode::Delay(ms(120)));
    took.push(round(&mut stream, b"hello").unwrap());
    assert!(took.iter().all(|took| (ms(120)..ms(1000)).contains(took)), "{took:?}");
    drop(stream);
    patience::until("the end is passed on", ms(5000), || proxy.open() == 0);
}

#[test]
fn a_delay_is_not_a_queue() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    proxy.set_only(Direction::Requests, LinkMode::Delay(ms(1000)));
    let mut stream = connect(&proxy);
    let watch = Watch::start();
    for _ in 0..10 {
        stream.write_all(b"x").unwrap();
        patience::pause(ms(5));
    }
    stream.read_exact(&mut [0; 10]).unwrap();
    assert!(watch.elapsed() < ms(5000), "ten pieces on the way at once: {:?}", watch.elapsed());
}

#[test]
fn jitter_differs_and_keeps_the_order() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    proxy.set_only(Direction::Replies, LinkMode::Jitter(ms(50)));
    let mut stream = connect(&proxy);
    let mut took: Vec<Duration> = (0..20).map(|_| round(&mut stream, b"in order").unwrap()).collect();
    took.sort();
    assert!(took[19] > took[0] + ms(15) && took[19] < ms(1000), "{took:?}");
}

#[test]
fn a_black_hole_says_nothing_and_gives_back_what_it_swallowed() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    let mut stream = connect(&proxy);
    proxy.set_only(Direction::Replies, LinkMode::Drop);
    stream.set_read_timeout(Some(ms(200))).unwrap();
    let error = round(&mut stream, b"lost").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    assert_eq!(proxy.bytes(Direction::Requests), 4, "the request has arrived: E11");
    proxy.set(LinkMode::Pass);
    stream.set_read_timeout(Some(ms(5000))).unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
}

#[test]
fn a_reset_cuts_a_reply_in_half() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    let mut stream = connect(&proxy);
    proxy.set_only(Direction::Replies, LinkMode::Reset);
    stream.write_all(b"12345678").unwrap();
    let mut heard = Vec::new();
    let error = stream.read_to_end(&mut heard).unwrap_err();
    assert_eq!((error.kind(), heard.as_slice()), (ErrorKind::ConnectionReset, &b"1234"[..]));
    proxy.set(LinkMode::Pass);
    round(&mut connect(&proxy), b"again").unwrap();
    patience::until("nothing is left open", ms(5000), || proxy.open() == 0);
}

#[test]
fn trickles_and_cuts() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    let mut stream = connect(&proxy);
    proxy.set_only(Direction::Replies, LinkMode::Trickle(50));
    assert!(round(&mut stream, b"0123456789").unwrap() >= ms(160));
    proxy.set_only(Direction::Replies, LinkMode::CutAfter(7));
    stream.write_all(b"01234").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    stream.write_all(b"56789").unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"56");
}

#[test]
fn refuses_and_admits() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    let mut stream = connect(&proxy);
    round(&mut stream, b"hello").unwrap();
    proxy.refuse();
    let error = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(round(&mut stream, b"hello").is_err(), "open connections are reset");
    proxy.admit();
    round(&mut connect(&proxy), b"hello").unwrap();
}

#[test]
fn goes_with_all_its_connections() {
    let echo = Echo::start();
    let proxy = FaultProxy::start(echo.port);
    let port = proxy.port();
    let mut stream = connect(&proxy);
    round(&mut stream, b"hello").unwrap();
    proxy.set(LinkMode::Drop);
    stream.write_all(b"held").unwrap();
    drop(proxy);
    assert!(stream.read_exact(&mut [0; 1]).is_err());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
