//! The settings of the gateway.

use crate::setting::{Section, Setting, SettingKind};

pub(super) static GATEWAY: &[Setting] = &[
    Setting {
        name: "listen",
        value_name: "ADDR",
        section: Section::Gateway,
        help: "Forward requests that arrive here, within the limits; or `off`. `tollgate gateway` listens on 127.0.0.1:8000",
        absent: "",
        kind: SettingKind::Address(|config| &mut config.gateway.listen),
    },
    Setting {
        name: "proxy_protocol",
        value_name: "NETWORKS",
        section: Section::Gateway,
        help: "Connections to the gateway from these networks begin with a PROXY header (version 2) that names the client, or `off`",
        absent: "",
        kind: SettingKind::Networks(|config| &mut config.gateway.proxy_protocol),
    },
    Setting {
        name: "upstream",
        value_name: "URLS",
        section: Section::Gateway,
        help: "Forward everything to these servers, joined by commas: http://HOST:PORT, https://HOST:PORT, or h2c://HOST:PORT",
        absent: "the routes file says where",
        kind: SettingKind::Names(|config| &mut config.gateway.upstream),
    },
    Setting {
        name: "routes",
        value_name: "FILE",
        section: Section::Gateway,
        help: "The routes file: hosts, paths, upstreams and identities; loaded again whenever it changes",
        absent: "`upstream` says where",
        kind: SettingKind::Path(|config| &mut config.gateway.routes),
    },
    Setting {
        name: "shadow",
        value_name: "BOOL",
        section: Section::Gateway,
        help: "Forward what limits refuse as well: the gateway decides, counts and logs only",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.gateway.shadow),
    },
    Setting {
        name: "access_log",
        value_name: "FILE",
        section: Section::Gateway,
        help: "Write a line for every request to the gateway into this file, to standard output for `-`, or `off`",
        absent: "",
        kind: SettingKind::Sink(|config| &mut config.gateway.access_log),
    },
    Setting {
        name: "access_log_format",
        value_name: "FORMAT",
        section: Section::Gateway,
        help: "How lines of the access log are written",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.gateway.access_log_format),
    },
    Setting {
        name: "access_log_sample",
        value_name: "PERCENT",
        section: Section::Gateway,
        help: "Of the requests that were forwarded and answered, how many are logged; refusals and failures always are",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.gateway.access_log_sample, 0..=100),
    },
];
