//! The settings of forward-auth.

use super::{Kind, Section, Setting};

pub(super) static AUTH: &[Setting] = &[Setting {
    name: "trusted_hops",
    value_name: "N",
    section: Section::Access,
    help: "How many proxies in front of this server may add to X-Forwarded-For",
    absent: "",
    kind: Kind::Number(|config| &mut config.auth.trusted_hops, 0..=16),
}];
