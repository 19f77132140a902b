//! What an idle connection takes: ten thousand callers that have asked once and stay connected.

use anyhow::ensure;

use super::field::{GatewayField, TOLLGATE};
use super::plain_client::PlainClient;
use super::servers;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::server::PeerServer;

const CONNECTIONS: usize = 10_000;

/// Opens them at every server, one server after the other.
pub fn run(field: &GatewayField<'_>, report: &mut BenchReport) {
    report.section(
        &format!("{CONNECTIONS} idle connections"),
        "Each has had one forwarded request answered and stays open. Resident memory before and with them; what the kernel \
         keeps for a socket is the same for all and not in it.",
    );
    let mut rows = Vec::new();
    for candidate in servers(field) {
        progress(&format!("  idle connections: {}", candidate.name));
        let measured = per_connection(&candidate.server);
        let each = |(before, after): &(u64, u64)| after.saturating_sub(*before) as f64 / 1024.0 / CONNECTIONS as f64;
        if candidate.name == TOLLGATE {
            let each = measured.as_ref().map_or(f64::INFINITY, each);
            report.number("KiB per idle connection", Bound::AtMost(20.0), each);
        }
        rows.push(match &measured {
            Ok(figures) => {
                let (before, after) = *figures;
                let each = format!("{:.1}", each(figures));
                vec![candidate.name.to_owned(), megabytes(before), megabytes(after), each]
            }
            Err(error) => vec![format!("{} ({error:#})", candidate.name), String::new(), String::new(), String::new()],
        });
    }
    report.table(&["server", "MB before", "MB with them", "KiB each"], &rows);
}

/// Resident bytes before and with all connections.
fn per_connection(server: &PeerServer) -> anyhow::Result<(u64, u64)> {
    let before = server.resident();
    let mut clients = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let mut client = PlainClient::open(server.address())?;
        let answer = client.get(super::field::PATH)?;
        ensure!(answer.status == 200, "status {} at connection {}", answer.status, clients.len() + 1);
        clients.push(client);
    }
    Ok((before, server.resident()))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
