//! Settings of tokens and TLS of the data listeners.

use crate::setting::{Section, Setting, SettingKind};

pub(super) static ACCESS: &[Setting] = &[
    Setting {
        name: "token_file",
        value_name: "FILE",
        section: Section::Access,
        help: "Callers must present one of the tokens in this file, or one of the database with the role `check`",
        absent: "no token is asked for",
        kind: SettingKind::Path(|config| &mut config.token_file),
    },
    Setting {
        name: "require_token",
        value_name: "BOOL",
        section: Section::Access,
        help: "Callers must present a token of the database with the role `check`; no token_file is needed",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.require_token),
    },
    Setting {
        name: "allow_anonymous",
        value_name: "BOOL",
        section: Section::Access,
        help: "Serve callers without a token on addresses that other machines can reach",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.allow_anonymous),
    },
    Setting {
        name: "tls_cert",
        value_name: "FILE",
        section: Section::Access,
        help: "Serve TLS with this certificate chain (PEM); needs tls_key",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.tls_cert),
    },
    Setting {
        name: "tls_key",
        value_name: "FILE",
        section: Section::Access,
        help: "The private key of tls_cert (PEM)",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.tls_key),
    },
    Setting {
        name: "tls_client_ca",
        value_name: "FILE",
        section: Section::Access,
        help: "Serve only callers whose certificate one of these authorities signed (PEM); on every data listener",
        absent: "callers need no certificate",
        kind: SettingKind::Path(|config| &mut config.tls_client_ca),
    },
    Setting {
        name: "tls_client_names",
        value_name: "NAMES",
        section: Section::Access,
        help: "With tls_client_ca, serve only callers whose certificate has one of these names",
        absent: "any name",
        kind: SettingKind::Names(|config| &mut config.tls_client_names),
    },
    Setting {
        name: "metrics_tls_cert",
        value_name: "FILE",
        section: Section::Access,
        help: "Serve TLS on the metrics listener with this certificate chain (PEM); needs metrics_tls_key",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.metrics_tls_cert),
    },
    Setting {
        name: "metrics_tls_key",
        value_name: "FILE",
        section: Section::Access,
        help: "The private key of metrics_tls_cert (PEM)",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.metrics_tls_key),
    },
];
