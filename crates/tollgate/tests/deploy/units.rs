//! The systemd units: their flags exist, their limits fit the defaults, and they are hardened.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tollgate_config::{Config, Setting};

/// The units, and the command that each of them runs.
const UNITS: [(&str, &str); 2] = [("tollgate.service", "serve"), ("tollgate-gateway.service", "gateway")];

fn unit(name: &str) -> String {
    super::text(name)
}

/// The values of a key of `[Service]`, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let service = unit.split("[Service]").nth(1).unwrap().split("\n[").next().unwrap();
    let lines = service.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    lines.filter(|(name, _)| *name == key).map(|(_, value)| value).collect()
}

#[test]
fn starts_the_server_with_flags_that_exist() {
    for (name, command) in UNITS {
        let unit = unit(name);
        let [start] = values(&unit, "ExecStart")[..] else { panic!("one ExecStart in {name}") };
        let mut words = start.split(' ');
        assert_eq!((words.next(), words.next()), (Some("/usr/local/bin/tollgate"), Some(command)));
        for flag in words.clone().filter_map(|word| word.strip_prefix("--")) {
            let flag = flag.split('=').next().unwrap();
            assert!(flag == "config" || Setting::named(&flag.replace('-', "_")).is_some(), "--{flag} is no setting");
        }
        let files: Vec<&str> = words.filter(|word| word.starts_with('/')).collect();
        assert!(!files.is_empty() && files.iter().all(|file| file.starts_with("/etc/tollgate/")), "{files:?}");
        assert_eq!(values(&unit, "ExecReload"), ["/bin/sh -c \"kill -HUP $MAINPID\""]);
        assert_eq!(values(&unit, "EnvironmentFile"), ["-/etc/default/tollgate"]);
    }
}

#[test]
fn limits_fit_the_defaults_of_the_server() {
    let config = Config::default();
    for unit in UNITS.map(|(name, _)| unit(name)) {
        let number =
            |key: &str, unit_of: &str| -> u64 { values(&unit, key)[0].strip_suffix(unit_of).unwrap().parse().unwrap() };
        assert!(Duration::from_secs(number("TimeoutStopSec", "s")) > config.net.drain_timeout + Duration::from_secs(1));
        assert!(number("LimitNOFILE", "") > 2 * config.net.max_connections as u64);
        let bounded = config.max_memory + config.net.max_in_transit as u64;
        assert!(number("MemoryMax", "M") << 20 > bounded + (256 << 20));
    }
}

#[test]
fn is_hardened() {
    let wanted = [
        ("DynamicUser", "yes"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("ProtectKernelTunables", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("RestrictNamespaces", "yes"),
        ("SystemCallArchitectures", "native"),
        ("SystemCallFilter", "@system-service"),
        ("LimitCORE", "0"),
        ("Restart", "on-failure"),
    ];
    for (name, unit) in UNITS.map(|(name, _)| (name, unit(name))) {
        for (key, value) in wanted {
            assert_eq!(values(&unit, key).first(), Some(&value), "{key} of {name}");
        }
    }
}

/// systemd verifies the units.
#[test]
fn systemd_verifies_the_units() {
    for (name, _) in UNITS {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(name);
        // The verification also checks that the program exists.
        fs::write(&path, unit(name).replace("/usr/local/bin/tollgate", env!("CARGO_BIN_EXE_tollgate"))).unwrap();
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output();
        fs::remove_dir_all(&dir).unwrap();
        let output =
            output.unwrap_or_else(|error| panic!("systemd-analyze is missing ({error}): script/setup installs it"));
        // Messages about other units, and about machines without a running systemd, are ignored.
        let told = String::from_utf8_lossy(&output.stderr);
        let about_ours: Vec<&str> = told.lines().filter(|line| line.contains(name)).collect();
        assert!(about_ours.is_empty(), "{about_ours:#?}");
    }
}
