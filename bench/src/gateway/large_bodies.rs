//! What a large body takes: it has to pass in constant memory, in both directions.

use anyhow::ensure;

use super::field::{GatewayField, PATH, TOLLGATE};
use super::plain_client::PlainClient;
use super::servers;
use crate::process;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::lineup::Candidate;
use crate::servers::server::PeerServer;

const BYTES: u64 = 1_000_000_000;
/// What warms a server up: code and buffers that it has not used before are not what a large body takes.
const SMALL_BYTES: u64 = 1_000_000;
/// How much a gigabyte may take at its peak, in MB: less than a hundredth.
const GROWTH_MAX: f64 = 8.0;

/// What a gigabyte took at one server, to the upstream and from it.
#[derive(Debug)]
pub struct BodyGrowth {
    name: &'static str,
    upload: anyhow::Result<u64>,
    download: anyhow::Result<u64>,
}

/// Sends a gigabyte through every server, and receives one.
pub fn measure(field: &GatewayField<'_>) -> Vec<BodyGrowth> {
    let measure = |candidate: &Candidate| {
        progress(&format!("  large bodies: {}", candidate.name));
        let server = &candidate.server;
        BodyGrowth { name: candidate.name, upload: growth(server, upload), download: growth(server, download) }
    };
    servers(field).map(measure).collect()
}

/// A table, and the goals.
pub fn tell(growths: Vec<BodyGrowth>, report: &mut BenchReport) {
    report.section(
        "A body of 1 GB",
        "One request alone, before all other runs and behind one with a body of 1 MB. Growth is the peak of the resident \
         memory while the body passes, over what was resident before; the client reads and writes 16 KiB at a time, the \
         upstream 64.",
    );
    let mut rows = Vec::new();
    for BodyGrowth { name, upload, download } in growths {
        if name == TOLLGATE {
            for (what, grown) in [("to the upstream", &upload), ("from the upstream", &download)] {
                let grown = grown.as_ref().map_or(f64::INFINITY, |bytes| *bytes as f64 / 1e6);
                report.number(&format!("MB that 1 GB {what} takes at its peak"), Bound::AtMost(GROWTH_MAX), grown);
            }
        }
        rows.push(vec![name.to_owned(), shown(upload), shown(download)]);
    }
    report.table(&["server", "to the upstream, MB", "from the upstream, MB"], &rows);
}

fn upload(client: &mut PlainClient, bytes: u64) -> anyhow::Result<()> {
    let answer = client.post(PATH, bytes)?;
    let said = String::from_utf8_lossy(&answer.body);
    ensure!(said == format!("{{\"received\":{bytes}}}"), "status {}: {said}", answer.status);
    Ok(())
}

fn download(client: &mut PlainClient, bytes: u64) -> anyhow::Result<()> {
    let answer = client.get(&format!("/bytes/{bytes}"))?;
    ensure!((answer.status, answer.bytes) == (200, bytes), "status {}: {} bytes", answer.status, answer.bytes);
    Ok(())
}

/// By how many bytes the resident memory grows at its peak.
fn growth(server: &PeerServer, pass: fn(&mut PlainClient, u64) -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let mut client = PlainClient::open(server.address())?;
    pass(&mut client, SMALL_BYTES)?;
    process::reset_peak(server.id())?;
    let before = server.resident();
    pass(&mut client, BYTES)?;
    Ok(process::peak(server.id()).saturating_sub(before))
}

fn shown(growth: anyhow::Result<u64>) -> String {
    match growth {
        Ok(bytes) => format!("{:.1}", bytes as f64 / 1e6),
        Err(error) => format!("{error:#}"),
    }
}
