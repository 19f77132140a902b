//! The settings of the gRPC listener.

use super::{Kind, Section, Setting};

pub(super) static GRPC: &[Setting] = &[
    Setting {
        name: "grpc",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve gRPC here: Tollgate's own service and Envoy's rate limit service; or `off`",
        absent: "",
        kind: Kind::Address(|config| &mut config.grpc.address),
    },
    Setting {
        name: "grpc_reflection",
        value_name: "BOOL",
        section: Section::Listening,
        help: "Tell gRPC callers which services there are",
        absent: "",
        kind: Kind::Switch(|config| &mut config.grpc.reflection),
    },
];
