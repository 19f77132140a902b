//! The settings of forward-auth.

use crate::setting::{Section, Setting, SettingKind};

pub(super) static AUTH: &[Setting] = &[
    Setting {
        name: "auth_source",
        value_name: "SOURCE",
        section: Section::Auth,
        help: "Answer proxies at /v1/auth, and take the original request from X-Forwarded-Method and -Uri, from X-Original-Method and -URI, or from the path below /v1/auth",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.auth.source),
    },
    Setting {
        name: "auth_deny_status",
        value_name: "STATUS",
        section: Section::Auth,
        help: "HTTP status of a refusal to a proxy; 403 for an nginx that is not told what 429 means",
        absent: "",
        kind: SettingKind::Status(|config| &mut config.auth.deny_status, &["429", "403"]),
    },
    Setting {
        name: "auth_closed_status",
        value_name: "STATUS",
        section: Section::Auth,
        help: "HTTP status of a refusal because the store is away (`on_fail: deny`); 429 or 403 for a proxy that lets requests pass on 503",
        absent: "",
        kind: SettingKind::Status(|config| &mut config.auth.closed_status, &["503", "429", "403"]),
    },
    Setting {
        name: "auth_attributes",
        value_name: "ATTRIBUTES",
        section: Section::Auth,
        help: "Attributes from headers, as ATTRIBUTE=HEADER joined by commas, or `off`; the proxy must overwrite these headers",
        absent: "",
        kind: SettingKind::FromHeaders(|config| &mut config.auth.attributes),
    },
    Setting {
        name: "auth_cost_header",
        value_name: "HEADER",
        section: Section::Auth,
        help: "Take the cost of a request from this header, which the proxy must overwrite, or `off`",
        absent: "",
        kind: SettingKind::Header(|config| &mut config.auth.cost_header),
    },
    Setting {
        name: "auth_namespace",
        value_name: "NAME",
        section: Section::Auth,
        help: "The namespace of requests that proxies ask about",
        absent: "default",
        kind: SettingKind::Name(|config| &mut config.auth.namespace),
    },
    Setting {
        name: "trusted_proxies",
        value_name: "NETWORKS",
        section: Section::Auth,
        help: "Trust the client addresses that proxies in these networks send, or `off`; proxies on a Unix socket are always trusted",
        absent: "",
        kind: SettingKind::Networks(|config| &mut config.auth.trusted_proxies),
    },
    Setting {
        name: "trusted_hops",
        value_name: "N",
        section: Section::Auth,
        help: "How many proxies in front of this server may add to X-Forwarded-For",
        absent: "",
        kind: SettingKind::Number(|config| &mut config.auth.trusted_hops, 1..=16),
    },
];
