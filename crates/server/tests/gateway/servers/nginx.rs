//! nginx, which reads whole bodies and passes them to a server of its own, as it does in front of applications.

use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_lab::proxies::{ProxyKind, ProxyOptions, ProxyServer};

use crate::rig::until;

const CONFIG: &str = r#"
events {}
http {
  log_format seen escape=json '{"line":"$request","host":"$http_host","body":"$request_body","status":"$status"}';
  server {
    listen 127.0.0.1:8001;
    access_log seen.log seen;
    client_max_body_size 16m;
    client_body_buffer_size 1m;
    location / { proxy_pass http://127.0.0.1:8002; }
  }
  server {
    listen 127.0.0.1:8002;
    location / { return 200 "from nginx"; }
  }
}
"#;

pub struct NginxApi {
    server: ProxyServer,
    /// Lines of the log that were read.
    read: AtomicUsize,
}

impl NginxApi {
    pub fn start() -> NginxApi {
        let server = ProxyOptions::new(ProxyKind::Nginx, CONFIG).listens(8001).listens(8002).start();
        NginxApi { server, read: AtomicUsize::new(0) }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port(8001))
    }

    pub async fn seen(&self, count: usize) -> Vec<String> {
        let unread = || {
            let log = self.server.file("seen.log");
            // What ends without a line end is still being written; a connection without a request has an empty one.
            let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n') && !is_broken_off(line));
            whole.skip(self.read.load(Ordering::Relaxed)).map(str::to_owned).collect::<Vec<String>>()
        };
        until(async || unread().len() >= count).await;
        let lines = unread();
        self.read.fetch_add(lines.len(), Ordering::Relaxed);
        lines.iter().map(|line| as_text(line)).collect()
    }
}

/// Whether nginx gave up on a request, because its connection ended before its body did.
fn is_broken_off(line: &str) -> bool {
    line.contains("\"status\":\"400\"") || line.contains("\"status\":\"499\"")
}

fn as_text(line: &str) -> String {
    let seen: serde_json::Value = serde_json::from_str(line).unwrap();
    let text = |name: &str| seen[name].as_str().unwrap().to_owned();
    format!("{}\r\nhost: {}\r\n\r\n{}", text("line"), text("host"), text("body"))
}
