//! The settings of the RESP listener.

use super::{Kind, Section, Setting};

pub(super) static RESP: &[Setting] = &[
    Setting {
        name: "resp",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve RESP here, for clients of Redis: CL.THROTTLE, THROTTLE, TG.CHECK; or `off`",
        absent: "",
        kind: Kind::Address(|config| &mut config.resp.address),
    },
    Setting {
        name: "resp_password_file",
        value_name: "FILE",
        section: Section::Listening,
        help: "The password that callers of RESP must give with AUTH",
        absent: "no password",
        kind: Kind::Path(|config| &mut config.resp.password_file),
    },
];
