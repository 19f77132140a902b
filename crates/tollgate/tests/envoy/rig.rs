//! A backend, Tollgate and Envoy, on free ports.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tollgate_lab::closing::read_to_close;
use tollgate_lab::process::{self, Process};
use tollgate_lab::proxies::{ProxyKind, ProxyOptions, ProxyServer};
use tollgate_lab::{patience, ports};

/// Envoy's configuration from the guide.
pub const CONFIG: &str = include_str!("../../../../deploy/proxies/envoy-rls.yaml");
/// The rules for that configuration.
pub const RULES: &str = include_str!("../../../../deploy/proxies/envoy-rls-rules.yaml");

const PATIENCE: Duration = Duration::from_secs(30);

/// Tollgate, with its files in a temporary directory.
pub struct Tollgate {
    pub process: Process,
    pub grpc: u16,
    pub http: u16,
    pub metrics: u16,
    _directory: tempfile::TempDir,
}

impl Tollgate {
    /// Starts `tollgate serve` with a rules file.
    pub fn serve(rules: &str) -> Tollgate {
        Tollgate::start(
            |directory| std::fs::write(directory.join("rules.yaml"), rules).unwrap(),
            |directory, [grpc, http, metrics]| {
                let at = |port: &u16| format!("127.0.0.1:{port}");
                let rules = directory.join("rules.yaml").display().to_string();
                let mut args: Vec<String> =
                    ["serve", "--admin", "off", "--db", "off", "--rules"].map(str::to_owned).into();
                args.extend([rules, "--grpc".to_owned(), at(grpc), "--http".to_owned(), at(http)]);
                args.extend(["--metrics".to_owned(), at(metrics)]);
                (args, Vec::new())
            },
        )
    }

    /// Starts `tollgate envoy-compat` with files of a runtime directory.
    pub fn compat(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Tollgate {
        let write = |config: &Path| {
            for (name, text) in files {
                std::fs::write(config.join(name), text).unwrap();
            }
        };
        Tollgate::compat_in(write, variables)
    }

    /// Starts `tollgate envoy-compat` with a runtime directory whose `config` is filled by `fill`.
    pub fn compat_in(fill: impl Fn(&Path), variables: &[(&str, &str)]) -> Tollgate {
        Tollgate::start(
            |directory| {
                std::fs::create_dir_all(directory.join("limits/config")).unwrap();
                fill(&directory.join("limits/config"));
            },
            |directory, [grpc, http, metrics]| {
                let own = [
                    ("RUNTIME_ROOT", directory.display().to_string()),
                    ("RUNTIME_SUBDIRECTORY", "limits".to_owned()),
                    ("HOST", "127.0.0.1".to_owned()),
                    ("GRPC_HOST", "127.0.0.1".to_owned()),
                    ("DEBUG_HOST", "127.0.0.1".to_owned()),
                    ("GRPC_PORT", grpc.to_string()),
                    ("PORT", http.to_string()),
                    ("DEBUG_PORT", metrics.to_string()),
                ];
                let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
                let more = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                (vec!["envoy-compat".to_owned()], own.chain(more).collect())
            },
        )
    }

    fn start(
        prepare: impl Fn(&Path),
        order: impl Fn(&Path, &[u16; 3]) -> (Vec<String>, Vec<(String, String)>),
    ) -> Tollgate {
        let directory = process::directory();
        prepare(directory.path());
        let all = [ports::free(), ports::free(), ports::free()];
        let (args, variables) = order(directory.path(), &all);
        let process = Process::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), |command| {
            command.args(&args).envs(variables).current_dir(directory.path());
            command.stdout(Stdio::null()).stderr(std::fs::File::create(directory.path().join("log")).unwrap());
        });
        let mut process = process.unwrap();
        let mut up = false;
        patience::try_until(PATIENCE, || {
            up = all.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok());
            up || process.ended().is_some()
        });
        let said = || std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        assert!(up, "Tollgate does not listen: {}", said());
        let [grpc, http, metrics] = all;
        Tollgate { process, grpc, http, metrics, _directory: directory }
    }

    /// The directory of its files.
    pub fn directory(&self) -> &Path {
        self._directory.path()
    }
}

/// Envoy in front of a backend, with a configuration changed by `change`.
pub fn envoy(grpc: u16, change: impl FnOnce(String) -> String) -> ProxyServer {
    // A busy machine must not cause timeouts, except in the test of timeouts.
    let config = change(CONFIG.replace("timeout: 0.05s", "timeout: 20s"));
    ProxyOptions::new(ProxyKind::Envoy, &config).listens(10000).finds(8081, grpc).finds(3000, service()).start()
}

/// A backend that answers every request, and reports seven used tokens. Runs until the test ends.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut line = String::new();
        let mut some = false;
        while reader.read_line(&mut line).unwrap_or(0) > 0 && line != "\r\n" {
            line.clear();
            some = true;
        }
        let answer = b"HTTP/1.1 200 OK\r\nX-Tokens-Used: 7\r\nContent-Length: 5\r\n\r\nhello";
        if !some || writer.write_all(answer).is_err() {
            return;
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// A header by its lower-case name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// One HTTP/1.1 call on a new connection.
pub fn call(at: SocketAddr, path: &str, fields: &str) -> Answer {
    send(at, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"))
}

/// Sends a request, and reads to the end.
pub fn send(at: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let text = String::from_utf8(read_to_close(&mut stream).unwrap()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}
