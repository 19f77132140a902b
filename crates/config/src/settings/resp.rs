//! The settings of the RESP listener.

use std::time::Duration;

use crate::setting::{Section, Setting, SettingKind};

pub(super) static RESP: &[Setting] = &[
    Setting {
        name: "resp",
        value_name: "ADDR",
        section: Section::Listening,
        help: "Serve RESP here, for clients of Redis: CL.THROTTLE, THROTTLE, TG.CHECK; or `off`",
        absent: "",
        kind: SettingKind::Address(|config| &mut config.resp.address),
    },
    Setting {
        name: "resp_password_file",
        value_name: "FILE",
        section: Section::Listening,
        help: "The password that callers of RESP must give with AUTH",
        absent: "no password",
        kind: SettingKind::Path(|config| &mut config.resp.password_file),
    },
    Setting {
        name: "resp_rounding",
        value_name: "HOW",
        section: Section::Listening,
        help: "How CL.THROTTLE and THROTTLE make whole seconds of waits: `strict` is always enough, `redis-cell` drops what is below a millisecond",
        absent: "",
        kind: SettingKind::Choice(|config| &mut config.resp.rounding),
    },
    Setting {
        name: "resp_idle_timeout",
        value_name: "DURATION",
        section: Section::Listening,
        help: "How long a RESP connection may stay open without a command, or `off`",
        absent: "",
        kind: SettingKind::MaybeDuration(
            |config| &mut config.resp.idle_timeout,
            Duration::from_secs(1)..=Duration::from_secs(86_400),
        ),
    },
    Setting {
        name: "resp_one_database",
        value_name: "BOOL",
        section: Section::Listening,
        help: "Refuse SELECT of any database but 0 over RESP, instead of answering OK",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.resp.one_database),
    },
];
