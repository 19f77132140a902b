//! Settings of the store.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::setting::{Section, Setting, SettingKind};

pub(super) static STORED: &[Setting] = &[
    Setting {
        name: "store",
        value_name: "STORE",
        section: Section::Store,
        help: "Where buckets live: `memory`, or what a fleet shares: redis://, rediss:// (TLS), redis-sentinel://, redis-cluster://",
        absent: "",
        kind: SettingKind::Store(|config| &mut config.store.place),
    },
    Setting {
        name: "durable",
        value_name: "DURABLE",
        section: Section::Store,
        help: "Usage of quotas in memory survives a restart, in a journal beside the database or in state_dir",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.store.durable),
    },
    Setting {
        name: "store_password_file",
        value_name: "FILE",
        section: Section::Store,
        help: "The password of the store, so that its URL needs none",
        absent: "no password but the URL's",
        kind: SettingKind::Path(|config| &mut config.store.password_file),
    },
    Setting {
        name: "store_ca",
        value_name: "FILE",
        section: Section::Store,
        help: "Trust the authorities in this file (PEM) to name the servers of the store",
        absent: "this machine's authorities",
        kind: SettingKind::Path(|config| &mut config.store.ca),
    },
    Setting {
        name: "store_cert",
        value_name: "FILE",
        section: Section::Store,
        help: "The certificate that the servers of the store are shown (PEM), for those that want one",
        absent: "none is shown",
        kind: SettingKind::Path(|config| &mut config.store.cert),
    },
    Setting {
        name: "store_key",
        value_name: "FILE",
        section: Section::Store,
        help: "The private key of `store_cert` (PEM)",
        absent: "none",
        kind: SettingKind::Path(|config| &mut config.store.key),
    },
    Setting {
        name: "store_skip_hostname",
        value_name: "BOOL",
        section: Section::Store,
        help: "Do not compare the names in certificates of the store with its hosts; their signatures are still checked",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.store.skip_hostname),
    },
    Setting {
        name: "store_insecure_tls",
        value_name: "BOOL",
        section: Section::Store,
        help: "Take any certificate from the servers of the store; for tests",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.store.insecure_tls),
    },
    Setting {
        name: "store_timeout",
        value_name: "DURATION",
        section: Section::Store,
        help: "Longest time for an answer of the store, before a decision is made by policy",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.store.timeout, CALL_TIMEOUTS),
    },
    Setting {
        name: "decision_deadline",
        value_name: "DURATION",
        section: Section::Store,
        help: "Longest time for a decision, whatever the store does",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.store.decision_deadline, CALL_TIMEOUTS),
    },
    Setting {
        name: "store_connections",
        value_name: "N",
        section: Section::Store,
        help: "Connections to each server of the store",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.store.connections, 1..=64),
    },
    Setting {
        name: "require_noeviction",
        value_name: "BOOL",
        section: Section::Store,
        help: "Refuse to start on a store that evicts buckets when it is full; without it, only warn",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.store.require_noeviction),
    },
    Setting {
        name: "nodes",
        value_name: "N",
        section: Section::Store,
        help: "How many nodes share the limits: each takes one part while the store is away",
        absent: "counted in the store",
        kind: SettingKind::MaybeNumber(|config| &mut config.store.nodes, 1..=10_000),
    },
    Setting {
        name: "new_keys_per_second",
        value_name: "N",
        section: Section::Store,
        help: "New buckets that each namespace may make, by this node, while the store's memory is nearly full; more share overflow buckets; 0 for any number",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.store.new_keys_per_second, 0..=1_000_000_000),
    },
    Setting {
        name: "deny_cache_ttl",
        value_name: "DURATION",
        section: Section::Store,
        help: "Longest time a refusal is answered without asking the store again",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.store.deny_cache_ttl, CALL_TIMEOUTS),
    },
    Setting {
        name: "lease_ttl",
        value_name: "DURATION",
        section: Section::Store,
        help: "How long this node may spend what it leased; for rules with `consistency: leased`",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.store.lease_ttl, LEASE_TTLS),
    },
    Setting {
        name: "async_interval",
        value_name: "DURATION",
        section: Section::Store,
        help: "How often local decisions are sent to the store; for rules with `consistency: async`",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.store.async_interval, ASYNC_INTERVALS),
    },
];

/// A caller does not wait longer than this for a decision.
const CALL_TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
const LEASE_TTLS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
const ASYNC_INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(1);
