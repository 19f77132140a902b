//! The settings of the control plane.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::setting::{Section, Setting, SettingKind};

pub(super) static CONTROL: &[Setting] = &[
    Setting {
        name: "db",
        value_name: "DB",
        section: Section::Control,
        help: "Where rules, overrides, clients and tokens are kept: `sqlite` in state_dir, sqlite:PATH, postgres://… for a fleet, or `off`",
        absent: "",
        kind: SettingKind::Db(|config| &mut config.control.db),
    },
    Setting {
        name: "db_password_file",
        value_name: "FILE",
        section: Section::Control,
        help: "The password of the database, so that its URL needs none",
        absent: "no password but the URL's",
        kind: SettingKind::Path(|config| &mut config.control.password_file),
    },
    Setting {
        name: "db_migrate",
        value_name: "BOOL",
        section: Section::Control,
        help: "Bring the tables to this version at the start; without it, `tollgate db migrate` does",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.control.migrate),
    },
    Setting {
        name: "db_poll_interval",
        value_name: "DURATION",
        section: Section::Control,
        help: "How often the database is polled for changes without a notification",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.control.poll_interval, POLL_INTERVALS),
    },
    Setting {
        name: "state_dir",
        value_name: "DIR",
        section: Section::Control,
        help: "Where this node keeps what must outlive it: its own database, or a copy of the last rules of the fleet's",
        absent: "`$STATE_DIRECTORY`, `$XDG_DATA_HOME/tollgate` or `~/.local/share/tollgate`",
        kind: SettingKind::Path(|config| &mut config.control.state_dir),
    },
    Setting {
        name: "violations_retention",
        value_name: "DURATION",
        section: Section::Control,
        help: "How long violations are kept",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.control.violations_retention, RETENTIONS),
    },
    Setting {
        name: "violations_plain_keys",
        value_name: "BOOL",
        section: Section::Control,
        help: "Store the client keys of violations in plain text, instead of as digests under the site's key",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.control.violations_plain_keys),
    },
    Setting {
        name: "usage_retention",
        value_name: "DURATION",
        section: Section::Control,
        help: "How long the usage of quotas is kept in the database after its period has ended",
        absent: "",
        kind: SettingKind::Duration(|config| &mut config.control.usage_retention, USAGE_RETENTIONS),
    },
    Setting {
        name: "usage_plain_keys",
        value_name: "BOOL",
        section: Section::Control,
        help: "Store the client keys of usage in plain text, instead of as digests under the site's key",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.control.usage_plain_keys),
    },
    Setting {
        name: "admin_tls_cert",
        value_name: "FILE",
        section: Section::Control,
        help: "Serve the admin API over TLS with this certificate chain (PEM); needs admin_tls_key",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.control.tls_cert),
    },
    Setting {
        name: "admin_tls_key",
        value_name: "FILE",
        section: Section::Control,
        help: "The private key of admin_tls_cert (PEM)",
        absent: "plain text",
        kind: SettingKind::Path(|config| &mut config.control.tls_key),
    },
    Setting {
        name: "admin_client_ca",
        value_name: "FILE",
        section: Section::Control,
        help: "Admin clients must show a certificate that an authority in this file (PEM) signed",
        absent: "no certificate is asked for",
        kind: SettingKind::Path(|config| &mut config.control.client_ca),
    },
    Setting {
        name: "admin_client_names",
        value_name: "NAMES",
        section: Section::Control,
        help: "Names of which the certificate of an admin client must have one",
        absent: "any name",
        kind: SettingKind::Names(|config| &mut config.control.client_names),
    },
    Setting {
        name: "allowed_hosts",
        value_name: "NAMES",
        section: Section::Control,
        help: "Names under which the admin port may be called, beside localhost and its address",
        absent: "no others",
        kind: SettingKind::Names(|config| &mut config.control.allowed_hosts),
    },
    Setting {
        name: "insecure_admin",
        value_name: "BOOL",
        section: Section::Control,
        help: "Serve the admin API without TLS on addresses that other machines can reach",
        absent: "",
        kind: SettingKind::Switch(|config| &mut config.control.insecure),
    },
];

/// At most 30 s: after a lost notification, a new rule must not stay unenforced for long.
const POLL_INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);
/// At least a day, so that no period is deleted before it was billed by a nightly job; at most ten years.
const USAGE_RETENTIONS: RangeInclusive<Duration> = Duration::from_secs(86_400)..=Duration::from_secs(3660 * 86_400);
const RETENTIONS: RangeInclusive<Duration> = Duration::from_secs(3600)..=Duration::from_secs(366 * 86_400);
