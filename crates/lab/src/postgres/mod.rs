//! Real PostgreSQL servers for tests, started on free ports and gone with the test.
//!
//! A server takes a moment to start, a database on it hardly any: tests that do nothing to the server itself take a
//! database of the [`shared`] one. Who stops, kills or counts connections starts a [`PostgresServer`] of its own.

mod children;
mod program;
mod server;
mod template;

use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub use server::{PostgresServer, Shutdown};

/// The server that all tests of this process share.
pub fn shared() -> &'static PostgresServer {
    static SHARED: OnceLock<PostgresServer> = OnceLock::new();
    SHARED.get_or_init(PostgresServer::start)
}

/// A fresh, empty database on the [`shared`] server: its URL.
pub fn database() -> String {
    shared().database()
}

/// Runs SQL in the database at this URL, as one transaction if it is several statements: the answer's rows, one line
/// each, with `|` between the columns. Panics with the server's words when they are an error.
pub fn run_sql(url: &str, text: &str) -> String {
    try_run_sql(url, text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// [`run_sql`], with the server's words when they are an error.
pub fn try_run_sql(url: &str, text: &str) -> Result<String, String> {
    let output = Command::new(program::named("psql"))
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", text])
        .env("PGCONNECT_TIMEOUT", "5")
        .stdin(Stdio::null())
        .output()
        .expect("psql runs");
    let (answer, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(answer.trim_end().to_owned()) } else { Err(error.trim_end().to_owned()) }
}
