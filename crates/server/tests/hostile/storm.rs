//! F56: whatever bytes arrive on whichever port, the process stays up, stays small and answers the others.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tollgate_net::NetLimits;

use crate::caller::{Caller, within};
use crate::flood::resident_kib;
use crate::frames::begin;
use crate::rig::{Rig, ms};

/// Strings on each kind of port. A fuzzer looks for more; this looks whether sockets change anything.
const STORM: usize = 1500;

/// Numbers that are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    /// A seed with a few bytes changed, a piece repeated, or an end cut off; or nothing but noise.
    fn mutate(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.roll(seeds.len())].clone();
        if bytes.is_empty() || self.roll(8) == 0 {
            return (0..self.roll(600)).map(|_| self.roll(256) as u8).collect();
        }
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len());
            match self.roll(4) {
                0 => bytes[at] = self.roll(256) as u8,
                1 => bytes[at] = b"\r\n\0 :;,0{}[]\"\\"[self.roll(14)],
                2 => bytes.truncate(at + 1),
                _ => {
                    let end = (at + 1 + self.roll(40)).min(bytes.len());
                    bytes.extend_from_within(at..end);
                }
            }
        }
        bytes
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_end_nothing_but_their_own_connection() {
    let rig = Rig::open(NetLimits { head_timeout: ms(500), body_timeout: ms(500), ..NetLimits::default() });
    let before = resident_kib();
    let texts = seeds();
    let frames: Vec<Vec<u8>> = texts.iter().map(|text| text.iter().copied().take(200).collect()).collect();
    let (preface, framed) = (begin(&[]), [framed()]);
    tokio::join!(
        storm(&rig, rig.data, &texts, b"", 1),
        storm(&rig, rig.admin, &texts, b"", 2),
        storm(&rig, rig.data, &frames, &preface, 3),
        storm(&rig, rig.data, &framed, &preface, 4),
    );
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB for {} connections that are gone", 4 * STORM);
    rig.answers_others().await;
}

async fn storm(rig: &Rig, at: SocketAddr, seeds: &[Vec<u8>], before: &[u8], seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for number in 0..STORM {
        let bytes = dice.mutate(seeds);
        let mut caller = Caller::connect(at).await;
        let _ = caller.send([before, &bytes].concat()).await; // it may be refused before it has all arrived
        let _ = caller.stream.shutdown().await;
        within(async { while caller.bytes().await.is_ok_and(|some| !some.is_empty()) {} }).await;
        if number % 250 == 0 {
            rig.answers_others().await;
        }
    }
}

/// Everything that ever had to be refused is a start.
fn seeds() -> Vec<Vec<u8>> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let files = std::fs::read_dir(std::path::PathBuf::from(here).join("tests/fixtures/http")).unwrap();
    let mut files: Vec<_> =
        files.map(|file| file.unwrap().path()).filter(|file| file.extension().unwrap() == "bin").collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Frames that mean something, to be made to mean something else.
fn framed() -> Vec<u8> {
    use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, PING, WINDOW_UPDATE, block, frame, get};
    let post = frame(HEADERS, END_HEADERS, 3, &block(3, b"/v1/check"));
    let body = frame(DATA, END_STREAM, 3, b"{\"client_key\":\"payer\"}");
    let rest = [frame(PING, 0, 0, b"12345678"), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0])].concat();
    [get(0, "/live"), post, body, rest].concat()
}
