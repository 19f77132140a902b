//! The proxies, and the request for all of them.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tollgate_lab::program;
use tollgate_load::{LoadPlan, LoadRequest, Target};

use super::configs::{self, ProxyAddresses};
use super::plain_client::PlainClient;
use crate::cores::Cores;
use crate::servers::lineup::Lineup;
use crate::servers::server::{PeerServer, Ready, free_address};

/// The floor.
pub const HYPER: &str = "bare hyper proxy";
/// Three rules.
pub const TOLLGATE: &str = "Tollgate";
pub const NGINX: &str = "nginx";
pub const HAPROXY: &str = "HAProxy";
pub const ENVOY: &str = "Envoy";
pub const TOLLGATE_REFUSED: &str = "Tollgate, refused";
const NGINX_REFUSED: &str = "nginx, refused";
const HAPROXY_REFUSED: &str = "HAProxy, refused";
const ENVOY_REFUSED: &str = "Envoy, refused";

/// All that forward, in the order of a round.
pub const FORWARDED: [&str; 5] = [HYPER, TOLLGATE, NGINX, HAPROXY, ENVOY];
/// All that refuse.
pub const REFUSED: [&str; 4] = [TOLLGATE_REFUSED, NGINX_REFUSED, HAPROXY_REFUSED, ENVOY_REFUSED];

/// What is asked for, and what is refused.
pub const PATH: &str = "/api/orders/8a6f1e90";
const PATH_REFUSED: &str = "/api/refused";

/// How long the answers of a candidate are looked at.
const PROOF: Duration = Duration::from_millis(300);

/// The candidates before one upstream.
#[derive(Debug)]
pub struct GatewayField<'a> {
    pub lineup: Lineup<'a>,
    upstream: Rc<PeerServer>,
    /// What the upstream answers by itself.
    answer: Vec<u8>,
}

/// Starts all proxies that are available; Tollgate from this program if one is given.
pub fn start<'a>(cores: &'a Cores, tollgate: Option<&Path>) -> anyhow::Result<GatewayField<'a>> {
    raise_descriptor_limit();
    let lineup = Lineup::new(cores)?;
    let [upstream, floor] = ["upstream", "hyper_proxy"].map(|name| lineup.programs.build("tollgate-bench", name));
    let ours = lineup.programs.tollgate(tollgate);
    let upstream = lineup.upstream(Command::new(upstream?))?;
    let answer = PlainClient::open(upstream.address())?.get(PATH)?.body;
    let mut field = GatewayField { lineup, upstream, answer };
    let mut command = Command::new(floor?);
    command.arg(field.upstream.address());
    let server = field.lineup.server(HYPER, command, Ready::Says)?;
    field.join(HYPER, &server)?;
    let started = ours.and_then(|program| field.start_tollgate(&program));
    field.lineup.excuse(TOLLGATE, started);
    let started = field.start_nginx();
    field.lineup.excuse(NGINX, started);
    let started = field.start_haproxy();
    field.lineup.excuse(HAPROXY, started);
    let started = field.start_envoy();
    field.lineup.excuse(ENVOY, started);
    Ok(field)
}

impl GatewayField<'_> {
    fn start_tollgate(&mut self, program: &Path) -> anyhow::Result<()> {
        let rules = self.lineup.write("rules.yaml", configs::RULES)?;
        let mut command = Command::new(program);
        command.args(["gateway", "--listen", "127.0.0.1:0", "--admin", "off", "--db", "off", "--upstream"]);
        command.arg(format!("http://{}", self.upstream.address())).arg("--rules").arg(rules);
        command.args(["--max-connections", "20000", "--max-connections-per-address", "20000"]);
        let server = self.lineup.server(TOLLGATE, command, Ready::Says)?;
        self.join_limited(TOLLGATE, TOLLGATE_REFUSED, &server)
    }

    fn start_nginx(&mut self) -> anyhow::Result<()> {
        let program = program::find("nginx").context("not on PATH")?;
        let listen = free_address()?;
        let folder = self.lineup.folder().to_owned();
        let config = configs::nginx(ProxyAddresses { listen, upstream: self.upstream.address() }, &folder);
        let config = self.lineup.write("nginx.conf", &config)?;
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(config);
        let server = self.lineup.server(NGINX, command, Ready::Listens(listen))?;
        self.join_limited(NGINX, NGINX_REFUSED, &server)
    }

    fn start_haproxy(&mut self) -> anyhow::Result<()> {
        let program = program::find("haproxy").context("not on PATH")?;
        let listen = free_address()?;
        let config = configs::haproxy(ProxyAddresses { listen, upstream: self.upstream.address() });
        let config = self.lineup.write("haproxy.cfg", &config)?;
        let mut command = Command::new(program);
        command.args(["-db", "-f"]).arg(config);
        let server = self.lineup.server(HAPROXY, command, Ready::Listens(listen))?;
        self.join_limited(HAPROXY, HAPROXY_REFUSED, &server)
    }

    fn start_envoy(&mut self) -> anyhow::Result<()> {
        let program = program::find("envoy").context("not here: script/setup installs it")?;
        let listen = free_address()?;
        let config = configs::envoy(ProxyAddresses { listen, upstream: self.upstream.address() });
        let config = self.lineup.write("envoy.yaml", &config)?;
        let mut command = Command::new(program);
        command.args(["--concurrency", "1", "--disable-hot-restart", "-l", "warning", "-c"]).arg(config);
        let server = self.lineup.server(ENVOY, command, Ready::Listens(listen))?;
        self.join_limited(ENVOY, ENVOY_REFUSED, &server)
    }

    /// A proxy with a limit: one row for what it forwards, and one for what it refuses.
    fn join_limited(
        &mut self,
        name: &'static str,
        refused: &'static str,
        server: &Rc<PeerServer>,
    ) -> anyhow::Result<()> {
        let (target, request) = (target(server), request(PATH_REFUSED));
        // The limit holds two of them.
        let candidate = self.lineup.join_proven(refused, server, &target, request.clone(), &request)?;
        candidate.backend = Some(self.upstream.id());
        self.join(name, server)
    }

    /// A row for what a proxy forwards, once its answers are proven to be those of the upstream.
    fn join(&mut self, name: &'static str, server: &Rc<PeerServer>) -> anyhow::Result<()> {
        let answer = PlainClient::open(server.address())?.get(PATH)?;
        ensure!(answer.status == 200 && answer.body == self.answer, "its answer is not the upstream's: {answer:?}");
        let plan = LoadPlan { connections: 8, warm_up: Duration::ZERO, duration: PROOF, ..LoadPlan::default() };
        let outcome = tollgate_load::run(&Target::parse(&target(server))?, &request(PATH), &plan, &mut |_| {})?;
        let (allowed, denied, errors) = (outcome.allowed, outcome.denied, outcome.errors.total());
        ensure!(
            allowed > 0 && denied == 0 && errors == 0,
            "its answers are wrong: it forwarded {allowed}, refused {denied}, and failed {errors}"
        );
        let candidate = self.lineup.join(name, server, &target(server), request(PATH))?;
        candidate.backend = Some(self.upstream.id());
        Ok(())
    }
}

fn target(server: &PeerServer) -> String {
    format!("http://{}/", server.address())
}

/// What an application sends: seven fields with the host.
fn request(path: &str) -> LoadRequest {
    LoadRequest::get(path)
        .header("user-agent", "orders-app/4.2 (android; 14)")
        .header("accept", "application/json")
        .header("accept-language", "en-GB,en;q=0.8")
        .header("authorization", "Bearer 3f7c9a51e0d84b6f")
        .header("x-request-id", "{key}")
        .header("cookie", "session=1f0c5be2a7; theme=dark")
}

/// Ten thousand connections take as many descriptors, here and in the servers, which inherit the limit.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }); // then fewer connections can be opened
}
