//! Settings of compatibility with envoyproxy/ratelimit.

use crate::setting::{Section, Setting, SettingKind};

pub(super) static ENVOY: &[Setting] = &[
    Setting {
        name: "envoy_config",
        value_name: "DIR",
        section: Section::Rules,
        help: "Rules as envoyproxy/ratelimit keeps them: every YAML file in this directory, one domain each, loaded again when they change",
        absent: "none",
        kind: SettingKind::Path(|config| &mut config.envoy.config),
    },
    Setting {
        name: "envoy_merge_domains",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Let several files of envoy_config be about one domain",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.merge_domains),
    },
    Setting {
        name: "envoy_allow_shrink",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Load files of envoy_config that lost more than half of their limits while the server runs, instead of taking them for cut off",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.allow_shrink),
    },
    Setting {
        name: "envoy_near_limit",
        value_name: "PERCENT",
        section: Section::Rules,
        help: "From how much of a limit on hits count as near it, in the metrics of envoy_config's rules",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.envoy.near_limit, 1..=100),
    },
    Setting {
        name: "envoy_shadow",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Deny nothing by the rules of envoy_config; what they would have done is reported and counted",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.shadow),
    },
    Setting {
        name: "envoy_headers",
        value_name: "NAMES",
        section: Section::Rules,
        help: "Three names of header fields for limit, remaining and reset, sent with every answer by envoy_config's rules",
        absent: "none are sent",
        kind: SettingKind::Names(|config| &mut config.envoy.headers),
    },
    Setting {
        name: "envoy_dynamic_metadata",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Send Envoy the domain, the descriptors and the metadata of limits that pass, as dynamic metadata, with every answer by envoy_config's rules",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.dynamic_metadata),
    },
    Setting {
        name: "envoy_stop_counting",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Once a descriptor of a request is over its limit, do not count those that are not, by envoy_config's rules",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.stop_counting),
    },
    Setting {
        name: "envoy_unknown_errors",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Answer ShouldRateLimit calls that cannot be decided with the gRPC code UNKNOWN, as envoyproxy/ratelimit does",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.envoy.unknown_errors),
    },
];
