//! The settings of what is compatible with envoyproxy/ratelimit.

use super::{Kind, Section, Setting};

pub(super) static ENVOY: &[Setting] = &[
    Setting {
        name: "envoy_config",
        value_name: "DIR",
        section: Section::Rules,
        help: "Rules as envoyproxy/ratelimit keeps them: every YAML file in this directory, one domain each, loaded again when they change",
        absent: "none",
        kind: Kind::Path(|config| &mut config.envoy.config),
    },
    Setting {
        name: "envoy_merge_domains",
        value_name: "BOOL",
        section: Section::Rules,
        help: "Several of the files of envoy_config may add to one domain, instead of that being an error",
        absent: "",
        kind: Kind::Switch(|config| &mut config.envoy.merge_domains),
    },
];
