//! The settings of the gRPC listener.

use std::time::Duration;

use crate::setting::{Section, Setting, SettingKind};

pub(super) static GRPC: &[Setting] = &[
    Setting {
        name: "grpc",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve gRPC here: Tollgate's own service and Envoy's rate limit service; or `off`",
        absent: "",
        kind: SettingKind::Address(|config| &mut config.grpc.address),
    },
    Setting {
        name: "grpc_reflection",
        value_name: "BOOL",
        section: Section::Listening,
        help: "Tell gRPC callers which services there are",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.grpc.reflection),
    },
    Setting {
        name: "grpc_max_connection_age",
        value_name: "DURATION",
        section: Section::Listening,
        help: "How old a gRPC connection gets before its caller is asked to open another one, a tenth more or less",
        absent: "",
        kind: SettingKind::Duration(
            |config| &mut config.grpc.max_connection_age,
            Duration::from_millis(100)..=Duration::from_secs(7 * 24 * 3600),
        ),
    },
];
