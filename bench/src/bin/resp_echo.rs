//! The floor of `script/bench wire` for RESP: Tokio and nothing behind it. It reads commands and answers five numbers
//! that never change.
//!
//! Everything that is not the limiter is as in Tollgate: commands are cut into their arguments, everything that came in
//! one read is answered in one write, `TCP_NODELAY`, Tokio's threads, the same allocator, an answer of the same size.

use std::io::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ANSWER: &[u8] = b"*5\r\n:0\r\n:1000001\r\n:1000000\r\n:-1\r\n:1\r\n";
/// Most arguments of a command.
const ARGUMENTS_MAX: usize = 64;
/// Longest of them, and what is kept of commands that are not all there.
const BUFFER: usize = 64 << 10;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{}", listener.local_addr()?)?;
        out.flush()?;
        tokio::spawn(accept(listener)).await?
    })
}

async fn accept(listener: TcpListener) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream));
    }
}

/// What ends a connection: its client has hung up, or says something else.
struct Over;

async fn serve(mut stream: TcpStream) -> Result<(), Over> {
    let (mut buffer, mut kept) = (vec![0; BUFFER], 0);
    let mut out = Vec::new();
    loop {
        let room = buffer.get_mut(kept..).filter(|room| !room.is_empty()).ok_or(Over)?;
        kept += stream.read(room).await.ok().filter(|read| *read > 0).ok_or(Over)?;
        let mut used = 0;
        while let Some(length) = command(buffer.get(used..kept).unwrap_or_default())? {
            used += length;
            out.extend_from_slice(ANSWER);
        }
        buffer.copy_within(used..kept, 0);
        kept -= used;
        stream.write_all(&out).await.map_err(|_| Over)?;
        out.clear();
    }
}

/// Bytes of the command at the front, once it is all there.
fn command(bytes: &[u8]) -> Result<Option<usize>, Over> {
    let Some((count, mut at)) = number(bytes, b'*')? else { return Ok(None) };
    let mut arguments = [(0, 0); ARGUMENTS_MAX];
    let arguments = arguments.get_mut(..count).ok_or(Over)?;
    for argument in arguments.iter_mut() {
        let Some((length, head)) = number(bytes.get(at..).unwrap_or_default(), b'$')? else { return Ok(None) };
        *argument = (at + head, at + head + length);
        at += head + length + 2;
    }
    let key = arguments.get(1).and_then(|(from, to)| bytes.get(*from..*to));
    std::hint::black_box(key);
    Ok((at <= bytes.len()).then_some(at))
}

/// The number of a line that begins so, and the bytes of the line, once it is all there.
fn number(bytes: &[u8], mark: u8) -> Result<Option<(usize, usize)>, Over> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    if *first != mark {
        return Err(Over);
    }
    let mut number: usize = 0;
    for (place, byte) in rest.iter().enumerate() {
        match byte {
            b'0'..=b'9' if number < BUFFER => number = number * 10 + usize::from(byte - b'0'),
            b'\r' => return Ok(rest.get(place + 1).map(|_| (number, place + 3))),
            _ => return Err(Over),
        }
    }
    Ok(None)
}
