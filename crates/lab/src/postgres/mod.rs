//! PostgreSQL servers, started on free ports and stopped with the test.
//!
//! Starting a server takes longer than creating a database: most tests use a database of the [`shared`] server. A test
//! that stops or kills the server, or counts its connections, starts a [`PostgresServer`] of its own.

mod children;
mod program;
mod server;
mod template;

use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub use server::{PostgresServer, Shutdown};

/// The server that all tests of this process share. It does not wait for the disk: no test ends it and looks what is left,
/// and a disk that stalls would run into the timeouts of statements.
pub fn shared() -> &'static PostgresServer {
    static SHARED: OnceLock<PostgresServer> = OnceLock::new();
    SHARED.get_or_init(|| PostgresServer::start_with(&["fsync=off"]))
}

/// A fresh, empty database on the [`shared`] server: its URL.
pub fn database() -> String {
    shared().database()
}

/// Runs SQL in the database at this URL, several statements as one transaction. Returns the rows, one line each, with `|`
/// between the columns. Panics with the server's error.
pub fn run_sql(url: &str, text: &str) -> String {
    try_run_sql(url, text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// [`run_sql`] that returns the server's error.
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
