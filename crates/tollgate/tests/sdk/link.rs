//! What stands between a program and the server: a proxy that reads requests, counts them, and takes the server away.

use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::http;

/// What happens to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkMode {
    #[default]
    Passes,
    /// It reaches the server; the connection is closed instead of answered.
    Cuts,
    /// These bytes are the answer, and the server is not asked.
    Answers(Vec<u8>),
}

#[derive(Default)]
struct State {
    mode: LinkMode,
    upstream: Option<SocketAddr>,
    /// The paths that were asked for.
    asked: Vec<String>,
    open: Vec<TcpStream>,
    is_closing: bool,
}

/// Listens on a port that stays the same, also while connections are refused.
pub struct Link {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_listening: bool,
}

impl Link {
    pub fn start(upstream: SocketAddr) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { upstream: Some(upstream), ..State::default() }));
        let mut link = Link { address, state, is_listening: false };
        link.listen(listener);
        link
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set(&mut self, mode: LinkMode) {
        self.state().mode = mode;
        if !self.is_listening {
            self.listen(TcpListener::bind(self.address).unwrap());
        }
    }

    /// Refuses connections, and closes those that are open.
    pub fn refuse(&mut self) {
        self.state().is_closing = true;
        if self.is_listening {
            let _ = TcpStream::connect(self.address); // wakes the listener, which then ends
            self.is_listening = false;
            while TcpStream::connect(self.address).is_ok() {}
        }
        self.close_connections();
    }

    /// Another server stands behind it now.
    pub fn set_upstream(&mut self, upstream: SocketAddr) {
        self.state().upstream = Some(upstream);
        self.close_connections();
    }

    /// Requests for a path, or all of them.
    pub fn asked(&self, path: Option<&str>) -> usize {
        self.state().asked.iter().filter(|asked| path.is_none_or(|path| asked.as_str() == path)).count()
    }

    /// Counts from here on.
    pub fn forget(&self) {
        self.state().asked.clear();
    }

    fn close_connections(&self) {
        for stream in self.state().open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn listen(&mut self, listener: TcpListener) {
        self.is_listening = true;
        self.state().is_closing = false;
        let state = Arc::clone(&self.state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut locked = lock(&state);
                if locked.is_closing {
                    return;
                }
                locked.open.push(stream.try_clone().unwrap());
                drop(locked);
                let state = Arc::clone(&state);
                thread::spawn(move || serve(stream, &state));
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// The requests of one connection, one after the other. Errors end it: the program under test sees a closed connection.
fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut replies = stream.try_clone().ok()?;
    let mut requests = BufReader::new(stream);
    let mut server: Option<BufReader<TcpStream>> = None;
    while let Ok(Some(request)) = http::read(&mut requests, true) {
        let (mode, upstream) = {
            let mut state = lock(state);
            let target = request.start.split(' ').nth(1)?;
            state.asked.push(target.split('?').next()?.to_owned());
            (state.mode.clone(), state.upstream?)
        };
        if let LinkMode::Answers(bytes) = mode {
            replies.write_all(&bytes).ok()?;
            continue;
        }
        if server.is_none() {
            let upstream = TcpStream::connect(upstream).ok()?;
            lock(state).open.push(upstream.try_clone().ok()?);
            server = Some(BufReader::new(upstream));
        }
        let server = server.as_mut()?;
        server.get_mut().write_all(&request.bytes).ok()?;
        let reply = http::read(server, !request.start.starts_with("HEAD "));
        if mode == LinkMode::Cuts {
            break;
        }
        replies.write_all(&reply.ok()??.bytes).ok()?;
    }
    replies.shutdown(Shutdown::Both).ok()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
