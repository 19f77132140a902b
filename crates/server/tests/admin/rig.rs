//! Starts the admin API on its own port and database, and calls it with tokens of every role.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tollgate_admin::{
    AdminAccess, AdminApp, AdminConfig, FileRule, FleetNodeList, ModeSwitch, NodeHooks, NodeStatus, OperatorPages,
};
use tollgate_control::record::Role;
use tollgate_control::{Author, Control, DatabaseUrl, Enforcement, Instant, TokenDraft};
use tollgate_core::{Clock, ManualClock, Secret};
use tollgate_engine::Engine;
use tollgate_lab::closing::read_to_close_async;
use tollgate_net::{
    Address, ByteBudget, ConnectionHandler, ConnectionLimiter, Drain, Listener, ListenerContext, NetLimits, accept,
};
use tollgate_outbound::Networks;
use tollgate_rules::RuleFile;
use tollgate_rules::spec::{LimitSpec, RuleSpec};
use tollgate_ruleset::RuleSet;
use tollgate_service::admin_tokens::AdminTokens;
use tollgate_service::penalties::PenaltyHolder;
use tollgate_service::render::RenderConfig;
use tollgate_service::rls::RlsConfig;
use tollgate_service::store::ConfiguredStore;
use tollgate_service::traffic::{TrafficConfig, TrafficMonitor};
use tollgate_service::violations::KeyHashing;
use tollgate_service::{Sealer, Service, ServiceConfig};
use tollgate_store::MonotonicClock;
use tollgate_telemetry::{DecisionMetrics, Scrape};
use tollgate_web::{HttpMetrics, Web};
use tollgate_webhooks::{WebhookPolicy, Webhooks};

/// A running admin API. Ends with the test.
pub struct Rig {
    pub address: SocketAddr,
    /// The database, if there is one.
    pub control: Option<Control>,
    pub clock: ManualClock,
    pub tokens: Arc<AdminTokens>,
    pub world: Arc<World>,
    /// Sees the traffic that tests make.
    pub traffic: Arc<TrafficMonitor>,
    /// What decides at this server: without rules at first.
    pub engine: Arc<Engine<ConfiguredStore>>,
    /// Whole tokens.
    pub viewer: String,
    pub operator: String,
    pub admin: String,
    _dir: TempDir,
}

/// The fake node: records signals and supplies status and file rules.
#[derive(Default)]
pub struct World {
    pub changed: AtomicUsize,
    pub files: Mutex<Arc<Vec<FileRule>>>,
    pub file: Mutex<Option<Arc<RuleFile>>>,
    pub status: Mutex<NodeStatus>,
    pub nodes: Mutex<FleetNodeList>,
    pub turned: Mutex<Vec<Enforcement>>,
    pub kept: Mutex<Vec<Enforcement>>,
}

impl World {
    /// A rule of a file, as a node would have it in force.
    fn rule(&self, namespace: &str, name: &str) -> Option<RuleSpec> {
        let files = self.files.lock().clone();
        let rule = files.iter().find(|rule| rule.namespace == namespace && rule.rule_id == name)?;
        let limit = LimitSpec {
            requests: rule.document["limit"]["requests"].as_u64()?,
            window_ns: 1_000_000_000,
            ..LimitSpec::default()
        };
        Some(RuleSpec { name: Some(name.to_owned()), limit: Some(limit), ..RuleSpec::default() })
    }
}

/// The options of a rig.
pub struct Setup {
    pub place: Option<DatabaseUrl>,
    pub hosts: Vec<String>,
    pub metrics: AdminAccess,
}

impl Rig {
    /// On SQLite.
    pub async fn start() -> Rig {
        let dir = tempfile::tempdir().expect("a directory");
        let place = DatabaseUrl::Sqlite(dir.path().join("tollgate.db"));
        Rig::with(dir, Setup { place: Some(place), hosts: Vec::new(), metrics: AdminAccess::Open }).await
    }

    /// On a database that is somewhere else.
    pub async fn at(place: DatabaseUrl) -> Rig {
        let dir = tempfile::tempdir().expect("a directory");
        Rig::with(dir, Setup { place: Some(place), hosts: Vec::new(), metrics: AdminAccess::Open }).await
    }

    /// With these options.
    pub async fn with(dir: TempDir, setup: Setup) -> Rig {
        let control = match &setup.place {
            Some(place) => {
                let control = Control::open(place).await.expect("a database");
                control.migrate().await.expect("tables");
                Some(control)
            }
            None => None,
        };
        let clock = ManualClock::at(MonotonicClock::new().now());
        let (tokens, world) = (Arc::new(AdminTokens::default()), Arc::new(World::default()));
        let store = ConfiguredStore::in_memory(1 << 20, Arc::new(clock.clone()));
        let engine = Arc::new(Engine::with_clock(store, RuleSet::empty(), Arc::new(clock.clone())));
        let pages = pages(engine.clone(), Arc::new(clock.clone()));
        let turned = world.clone();
        let traffic = TrafficMonitor::new(TrafficConfig {
            clock: Arc::new(clock.clone()),
            bytes: 4 << 20,
            secret: Secret::new([3; 16]),
            plain_keys: false,
            node: "a".to_owned(),
            fleet_secret: [4; 32],
        });
        traffic.show_clients_by(KeyHashing::hashed(&[9; 32]));
        let config = AdminConfig {
            control: control.clone(),
            tokens: tokens.clone(),
            mode_switch: Arc::new(ModeSwitch::new(move |mode| turned.turned.lock().push(mode))),
            node: node(&world),
            clock: Arc::new(clock.clone()),
            address: Address::loopback(0),
            allowed_hosts: setup.hosts,
            metrics: setup.metrics,
            secret: [7; 32],
            site_key: [9; 32],
            webhooks: control.clone().map(|control| webhooks(control, &clock)),
            traffic: Some(traffic.clone()),
            penalty_holder: PenaltyHolder { node: "a".to_owned(), is_store_shared: false },
        };
        let admin = AdminApp::new(pages, config);
        let (limits, drain) = (NetLimits::default(), Drain::default());
        let budget = ByteBudget::new(limits.max_in_transit);
        let context = ListenerContext { limits, drain: drain.clone(), clock: Arc::new(clock.clone()), budget };
        let listener = Listener::bind(&Address::loopback(0), None).expect("a port");
        let Ok(Address::Tcp(address)) = listener.address() else { panic!("a TCP address") };
        let handler = ConnectionHandler::new(Web::new(admin), Arc::default(), None, context);
        tokio::spawn(accept(listener, ConnectionLimiter::new(100, 100), drain, handler));
        let mut rig = Rig {
            address,
            control,
            clock,
            tokens,
            world,
            traffic,
            engine,
            viewer: String::new(),
            operator: String::new(),
            admin: String::new(),
            _dir: dir,
        };
        if rig.control.is_some() {
            rig.viewer = rig.token(Role::Viewer, None).await;
            rig.operator = rig.token(Role::Operator, None).await;
            rig.admin = rig.token(Role::Admin, None).await;
        }
        rig
    }

    /// Creates a token in the database.
    pub async fn token(&self, role: Role, namespaces: Option<&[&str]>) -> String {
        self.token_until(role, namespaces, None).await
    }

    pub async fn token_until(&self, role: Role, namespaces: Option<&[&str]>, expires_at: Option<Instant>) -> String {
        let namespaces = namespaces.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let draft = TokenDraft { name: format!("{}s", role.name()), role, namespaces, expires_at };
        let author = Author { id: "cli".to_owned(), name: "cli".to_owned() };
        let control = self.control.as_ref().expect("a database");
        let (record, token) = control.create_token(&draft, &author).await.expect("a token");
        self.tokens.add(&record);
        token
    }

    pub fn now(&self) -> Instant {
        Instant::from(self.clock.now())
    }

    /// A point in time so many seconds from now, as text.
    pub fn in_seconds(&self, seconds: i64) -> String {
        Instant(self.now().0 + seconds * 1_000_000).to_string()
    }

    pub fn changes(&self) -> usize {
        self.world.changed.load(Ordering::SeqCst)
    }

    /// Calls as an operator.
    pub async fn call(&self, method: &str, path: &str, fields: &str, body: &str) -> Answer {
        self.call_as(&self.operator, method, path, fields, body).await
    }

    pub async fn call_as(&self, token: &str, method: &str, path: &str, fields: &str, body: &str) -> Answer {
        let fields = format!("Authorization: Bearer {token}\r\n{fields}");
        self.raw(method, path, &fields, body.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "", "").await
    }

    /// Sends JSON as an operator.
    pub async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        self.call(method, path, JSON, &body.to_string()).await
    }

    /// Sends JSON as an operator, with `If-Match`.
    pub async fn send_if(&self, method: &str, path: &str, etag: &str, body: Value) -> Answer {
        self.call(method, path, &format!("{JSON}If-Match: {etag}\r\n"), &body.to_string()).await
    }

    /// Sends a request without adding a token.
    pub async fn raw(&self, method: &str, path: &str, fields: &str, body: &[u8]) -> Answer {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        talk(stream, method, path, fields, body).await
    }

    /// Opens a stream; the head of its response is an answer without a body.
    pub async fn stream(&self, path: &str, fields: &str) -> (Answer, TcpStream) {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        stream.write_all(head.as_bytes()).await.expect("a connection");
        let mut bytes = Vec::new();
        let read = async {
            while !bytes.ends_with(b"\r\n\r\n") {
                bytes.push(stream.read_u8().await?);
            }
            Ok::<(), std::io::Error>(())
        };
        timeout(Duration::from_secs(30), read).await.expect("an answer in time").expect("an answer");
        (Answer::read(&bytes), stream)
    }

    /// The head of a stream, or a refusal with its body left out.
    pub async fn head_of(&self, path: &str, fields: &str) -> Answer {
        self.stream(path, fields).await.0
    }

    /// Sends a request from another loopback address.
    pub async fn raw_from(&self, address: [u8; 4], method: &str, path: &str, fields: &str) -> Answer {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((address, 0))).expect("a loopback address");
        talk(socket.connect(self.address).await.expect("a connection"), method, path, fields, b"").await
    }
}

pub const JSON: &str = "Content-Type: application/json\r\n";
pub const YAML: &str = "Content-Type: application/yaml\r\n";

async fn talk(mut stream: TcpStream, method: &str, path: &str, fields: &str, body: &[u8]) -> Answer {
    let length = body.len();
    let host = if fields.contains("Host: ") { "" } else { "Host: localhost\r\n" };
    let head =
        format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{fields}\r\n");
    let talk = async {
        stream.write_all(head.as_bytes()).await?;
        // The server may close the connection while a refused request is still being sent.
        let _ = stream.write_all(body).await;
        read_to_close_async(&mut stream).await
    };
    let bytes = timeout(Duration::from_secs(30), talk).await.expect("an answer in time").expect("an answer");
    Answer::read(&bytes)
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let (head, body) = bytes.split_at(end + 4);
        let head = String::from_utf8(head.to_vec()).expect("ASCII");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head, body: body.to_vec() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn etag(&self) -> String {
        self.field("etag").unwrap_or_else(|| panic!("an ETag in {}", self.head)).to_owned()
    }

    /// The code of a problem.
    pub fn code(&self) -> String {
        let json = self.json();
        assert_eq!(json["status"], self.status, "{json}");
        assert_eq!(self.field("content-type"), Some("application/problem+json"));
        json["code"].as_str().expect("a code").to_owned()
    }

    /// The faults of a problem: field and code.
    pub fn faults(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let json = self.json();
        let errors = json["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| (text(&error["field"]), text(&error["code"]))).collect()
    }

    /// Asserts the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}{}", self.head, self.text());
        self
    }
}

/// Webhooks that nothing is sent to.
fn webhooks(control: Control, clock: &ManualClock) -> Webhooks {
    Webhooks {
        control,
        policy: WebhookPolicy::new(Networks::Public, &[]).expect("TLS"),
        site_key: [9; 32],
        clock: Arc::new(clock.clone()),
        node: "test".to_owned(),
        due: Arc::default(),
    }
}

fn node(world: &Arc<World>) -> NodeHooks {
    let [changed, status, nodes, files, filed, kept, rules_file] = std::array::from_fn(|_| world.clone());
    NodeHooks {
        notify_nodes: Box::new(move || _ = changed.changed.fetch_add(1, Ordering::SeqCst)),
        status: Box::new(move || status.status.lock().clone()),
        nodes: Box::new(move || nodes.nodes.lock().clone()),
        file_rules: Box::new(move || files.files.lock().clone()),
        file_plans: Box::new(Arc::default),
        rules_file: Box::new(move || rules_file.file.lock().clone()),
        file_rule: Box::new(move |namespace, name| filed.rule(namespace, name).into_iter().collect()),
        persist_mode: Box::new(move |mode, _| kept.kept.lock().push(mode)),
    }
}

fn pages(engine: Arc<Engine<ConfiguredStore>>, clock: Arc<dyn Clock>) -> OperatorPages {
    let metrics = Arc::new(DecisionMetrics::default());
    let scrape = Scrape::default();
    let http_metrics = Arc::new(HttpMetrics::new(tollgate_admin::paths().collect()));
    scrape.register(metrics.clone());
    scrape.register(http_metrics.clone());
    let service = Service::new(ServiceConfig {
        engine,
        clock,
        render: RenderConfig::default(),
        tokens: None,
        sealer: Sealer::new(b"a secret of some length", 1),
        metrics,
        rls: RlsConfig::default(),
    });
    OperatorPages {
        service: Arc::new(service),
        drain: Drain::default(),
        scrape: Arc::new(scrape),
        metrics: http_metrics,
        loads: Arc::new(|| (0, 0)),
    }
}
