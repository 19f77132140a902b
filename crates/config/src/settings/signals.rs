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
