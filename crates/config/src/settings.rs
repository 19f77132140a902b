//! The table of all settings, in the order in which every listing shows them.

mod access;
mod auth;
mod control;
mod envoy;
mod gateway;
mod grpc;
mod resp;
mod signals;
mod store;

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::answer::HEADER_STYLES;
use crate::setting::{Section, Setting, SettingKind};

/// All settings in the order of every listing: several tables read as one.
#[derive(Clone, Copy, Debug)]
pub struct SettingTable(&'static [&'static [Setting]]);

impl SettingTable {
    /// Every setting.
    pub fn iter(self) -> impl Iterator<Item = &'static Setting> {
        self.into_iter()
    }
}

impl IntoIterator for SettingTable {
    type Item = &'static Setting;
    type IntoIter = std::iter::Flatten<std::iter::Copied<std::slice::Iter<'static, &'static [Setting]>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied().flatten()
    }
}

/// Every setting of the server.
pub static SETTINGS: SettingTable = SettingTable(&[
    SERVED,
    grpc::GRPC,
    resp::RESP,
    gateway::GATEWAY,
    RULES,
    envoy::ENVOY,
    control::CONTROL,
    store::STORED,
    access::ACCESS,
    auth::AUTH,
    signals::SIGNALS,
    OTHERS,
]);

impl Setting {
    /// The setting of this name.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

static SERVED: &[Setting] = &[
    Setting {
        name: "http",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve the data API here, or `off`; several may be given",
        absent: "",
        kind: SettingKind::Addresses(|config| &mut config.http),
    },
    Setting {
        name: "admin",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve the admin API and /metrics here, or `off`",
        absent: "",
        kind: SettingKind::Address(|config| &mut config.admin),
    },
    Setting {
        name: "metrics",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve /metrics on an address of its own as well, or `off`",
        absent: "",
        kind: SettingKind::Address(|config| &mut config.metrics),
    },
    Setting {
        name: "socket_mode",
        value_name: "MODE",
        section: Section::Listening,
        help: "Mode of Unix domain socket files, in octal: write permission allows connecting",
        absent: "as the umask has it",
        kind: SettingKind::Mode(|config| &mut config.socket_mode),
    },
];

static RULES: &[Setting] = &[
    Setting {
        name: "rules",
        value_name: "FILE",
        section: Section::Rules,
        help: "The rules file, loaded again whenever it changes",
        absent: "everything is allowed",
        kind: SettingKind::Path(|config| &mut config.rules),
    },
    Setting {
        name: "reload_interval",
        value_name: "DURATION",
        section: Section::Rules,
        help: "How often the rules file is checked for changes",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.reload_interval, Duration::from_millis(10)..=HOUR),
    },
];

static OTHERS: &[Setting] = &[
    Setting {
        name: "max_connections",
        value_name: "N",
        section: Section::Connections,
        help: "Most connections open at once",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.net.max_connections, 1..=1_000_000),
    },
    Setting {
        name: "max_connections_per_address",
        value_name: "N",
        section: Section::Connections,
        help: "Most connections from one address",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.net.max_connections_per_address, 1..=1_000_000),
    },
    Setting {
        name: "head_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time for the head of a request to arrive",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.head_timeout, TIMEOUTS),
    },
    Setting {
        name: "body_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time for the body of a request to arrive",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.body_timeout, TIMEOUTS),
    },
    Setting {
        name: "write_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time an answer waits for a client that does not read",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.write_timeout, TIMEOUTS),
    },
    Setting {
        name: "idle_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time a connection stays open without a request",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.idle_timeout, TIMEOUTS),
    },
    Setting {
        name: "tls_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time for a TLS handshake",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.tls_timeout, TIMEOUTS),
    },
    Setting {
        name: "drain_delay",
        value_name: "DURATION",
        section: Section::Connections,
        help: "How long to keep serving after SIGTERM, while health checks fail",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.drain_delay, Duration::ZERO..=HOUR),
    },
    Setting {
        name: "drain_timeout",
        value_name: "DURATION",
        section: Section::Connections,
        help: "Longest time for requests in flight to end when the server stops",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.net.drain_timeout, TIMEOUTS),
    },
    Setting {
        name: "max_head",
        value_name: "SIZE",
        section: Section::Connections,
        help: "Longest head of a request: request line and header fields",
        absent: "",
        kind: SettingKind::Size(|config| &mut config.net.max_head, 8 << 10..=1 << 20),
    },
    Setting {
        name: "max_headers",
        value_name: "N",
        section: Section::Connections,
        help: "Most header fields of a request",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.net.max_headers, 8..=1_000),
    },
    Setting {
        name: "max_body",
        value_name: "SIZE",
        section: Section::Connections,
        help: "Longest body of a request",
        absent: "",
        kind: SettingKind::Size(|config| &mut config.net.max_body, BODIES),
    },
    Setting {
        name: "max_batch_body",
        value_name: "SIZE",
        section: Section::Connections,
        help: "Longest body of a batch of requests",
        absent: "",
        kind: SettingKind::Size(|config| &mut config.net.max_batch_body, BODIES),
    },
    Setting {
        name: "max_in_transit",
        value_name: "SIZE",
        section: Section::Connections,
        help: "Most bytes of bodies and answers on their way, over all connections",
        absent: "",
        kind: SettingKind::Size(|config| &mut config.net.max_in_transit, IN_TRANSIT),
    },
    Setting {
        name: "headers",
        value_name: "STYLES",
        section: Section::Answers,
        help: "Header styles of an answer, joined by commas, or `off`",
        absent: "",
        kind: SettingKind::Words(|config| &mut config.answer.headers, HEADER_STYLES),
    },
    Setting {
        name: "retry_jitter",
        value_name: "JITTER",
        section: Section::Answers,
        help: "Spread retries by up to this much: 10% of the wait, 5s, or `off`",
        absent: "",
        kind: SettingKind::Jitter(|config| &mut config.answer.retry_jitter),
    },
    Setting {
        name: "refused_status",
        value_name: "STATUS",
        section: Section::Answers,
        help: "HTTP status of a refusal",
        absent: "",
        kind: SettingKind::Status(|config| &mut config.answer.refused_status, &["200", "429"]),
    },
    Setting {
        name: "never_status",
        value_name: "STATUS",
        section: Section::Answers,
        help: "HTTP status of a refusal that no waiting will change, where refusals have one",
        absent: "",
        kind: SettingKind::Status(|config| &mut config.answer.never_status, &["429", "403", "413"]),
    },
    Setting {
        name: "answer",
        value_name: "DETAIL",
        section: Section::Answers,
        help: "Detail in the body of a refusal by status, which proxies pass on: `public`, or `full` with mode, generation and every rule",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.answer.answer),
    },
    Setting {
        name: "decision_ids",
        value_name: "BOOL",
        section: Section::Answers,
        help: "Name the id of the decision in every response, as X-Decision-Id and decision_id, for `tollgate why`; gateways always do",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.answer.decision_ids),
    },
    Setting {
        name: "max_memory",
        value_name: "SIZE",
        section: Section::Resources,
        help: "Most memory that buckets may take",
        absent: "",
        kind: SettingKind::LargeSize(|config| &mut config.max_memory, 1 << 20..=1 << 44),
    },
    Setting {
        name: "analytics_memory",
        value_name: "SIZE",
        section: Section::Resources,
        help: "Memory for what operators see of the traffic: counts over time, the heaviest clients, the last decisions; 0 for none, else at least 1 MiB are used",
        absent: "",
        kind: SettingKind::Size(|config| &mut config.analytics_memory, 0..=1 << 34),
    },
    Setting {
        name: "threads",
        value_name: "N",
        section: Section::Resources,
        help: "Threads that serve",
        absent: "one per core",
        kind: SettingKind::MaybeNumber(|config| &mut config.threads, 1..=1_024),
    },
    Setting {
        name: "log_format",
        value_name: "FORMAT",
        section: Section::Logs,
        help: "How log lines are written",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.log_format),
    },
    Setting {
        name: "log_level",
        value_name: "LEVEL",
        section: Section::Logs,
        help: "Write log lines of this level and more severe ones",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.log_level),
    },
    Setting {
        name: "decision_log",
        value_name: "FILE",
        section: Section::Logs,
        help: "Write every decision as a line of JSON into this file, to standard output for `-`, or `off`",
        absent: "",
        kind: SettingKind::Sink(|config| &mut config.decision_log),
    },
    Setting {
        name: "debug_keys",
        value_name: "BOOL",
        section: Section::Logs,
        help: "Write keys as they are into logs, not only their digests",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.debug_keys),
    },
    Setting {
        name: "node",
        value_name: "NAME",
        section: Section::Node,
        help: "Name of this node in logs",
        absent: "the host name",
        kind: SettingKind::Name(|config| &mut config.node),
    },
    Setting {
        name: "secret_file",
        value_name: "FILE",
        section: Section::Node,
        help: "A file of 16 bytes or more that sign receipts and hide keys in logs",
        absent: "one that the nodes keep in their store, that is kept with durable quotas, or one of this process",
        kind: SettingKind::Path(|config| &mut config.secret_file),
    },
];

const HOUR: Duration = Duration::from_secs(3600);
/// Zero would reject every request, and a timeout of days is none.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=HOUR;
const BODIES: RangeInclusive<u64> = 1 << 10..=64 << 20;
const IN_TRANSIT: RangeInclusive<u64> = 8 << 10..=64 << 30;
