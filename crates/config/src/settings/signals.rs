//! The settings of metrics and webhooks.

use crate::setting::{Section, Setting, SettingKind};

pub(super) static SIGNALS: &[Setting] = &[
    Setting {
        name: "metrics_bare_names",
        value_name: "BOOL",
        section: Section::Signals,
        help: "Leave out the prefix `tollgate_` of the names on /metrics",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.signals.bare_metric_names),
    },
    Setting {
        name: "otlp_endpoint",
        value_name: "URL",
        section: Section::Signals,
        help: "Export spans of decisions and metrics to this OpenTelemetry collector by OTLP over HTTP, such as http://127.0.0.1:4318",
        absent: "nothing is exported",
        kind: SettingKind::Name(|config| &mut config.signals.otlp_endpoint),
    },
    Setting {
        name: "otlp_sample",
        value_name: "PERCENT",
        section: Section::Signals,
        help: "Of the decisions without a traceparent, how many leave a span; with one, its caller decides",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.signals.otlp_sample, 0..=100),
    },
    Setting {
        name: "webhooks",
        value_name: "BOOL",
        section: Section::Signals,
        help: "Send events to the webhooks that are in the database",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.signals.webhooks),
    },
    Setting {
        name: "webhook_hosts",
        value_name: "NAMES",
        section: Section::Signals,
        help: "Hosts that webhooks may name: hooks.example.com, or *.example.com for all below",
        absent: "any host of the public internet",
        kind: SettingKind::Names(|config| &mut config.signals.webhook_hosts),
    },
    Setting {
        name: "webhook_private_networks",
        value_name: "BOOL",
        section: Section::Signals,
        help: "Let webhooks be on this machine and in private networks as well, and without TLS",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.signals.webhook_private_networks),
    },
];
