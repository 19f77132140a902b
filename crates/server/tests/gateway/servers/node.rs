//! Express on Node.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tollgate_lab::process::Process;
use tollgate_lab::program;

use crate::rig::{until, within};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gateway/servers/node_api.js");
pub const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/node/node_modules");

pub struct NodeApi {
    port: u16,
    _process: Process,
}

impl NodeApi {
    pub async fn start() -> NodeApi {
        assert!(Path::new(PACKAGES).join("express").is_dir(), "Express is not here: script/setup installs it");
        let started = Process::start(&program::named("node"), |command| {
            command.arg(SCRIPT).env("NODE_PATH", PACKAGES).stdout(Stdio::piped());
        });
        let mut process = started.unwrap();
        let output = process.stdout().unwrap();
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).map(|_| line)
        });
        let line = within(line).await.unwrap().unwrap();
        NodeApi { port: line.trim().parse().expect("node prints its port"), _process: process }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub async fn seen(&self, count: usize) -> Vec<String> {
        let mut seen = Vec::new();
        until(async || {
            seen.extend(self.ask().await);
            seen.len() >= count
        })
        .await;
        seen
    }

    async fn ask(&self) -> Vec<String> {
        let mut stream = within(TcpStream::connect(("127.0.0.1", self.port))).await.unwrap();
        within(stream.write_all(b"GET /seen HTTP/1.0\r\n\r\n")).await.unwrap();
        let mut text = String::new();
        within(stream.read_to_string(&mut text)).await.unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}
