//! The binary as a server, on ports of its own, gone when dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A server that listens.
#[allow(dead_code, reason = "not every test binary looks at everything")]
pub struct Server {
    child: Child,
    /// What it said when it was ready, without the line to try.
    pub announced: String,
    /// The lines `listening on …`, without these words.
    pub urls: Vec<String>,
    /// Where metrics are.
    pub admin: String,
}

impl Server {
    /// Starts `tollgate serve` in the directory of `command`, which says nothing but where.
    pub fn start(mut command: Command, args: &[&str]) -> Server {
        command.args(["serve", "--admin", "127.0.0.1:0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("try: ")).collect();
        let after = |start: &str| -> Vec<String> {
            said.iter().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
        };
        let urls = after("listening on ");
        assert!(!urls.is_empty(), "the server did not start: {said:?}");
        let admin = after("admin on ")[0].split(',').next().unwrap().to_owned();
        Server { child, announced: said.join("\n"), urls, admin }
    }

    /// The first address.
    pub fn url(&self) -> &str {
        &self.urls[0]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
