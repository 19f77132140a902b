//! Every setting from every source, every kind of error with its whole text, and invalid files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_net::Address;
use tollgate_rules::yaml;

use super::*;

/// Three values that a setting accepts and shows unchanged; neighbours differ.
fn samples(setting: &Setting) -> [String; 3] {
    let own = |texts: [&str; 3]| texts.map(str::to_owned);
    match (&setting.kind, setting.words()) {
        (SettingKind::Words(..), _) => own(["draft-11", "github", "off"]),
        (_, [first, second, rest @ ..]) => own([second, first, rest.last().unwrap_or(second)]),
        (SettingKind::Addresses(_) | SettingKind::Address(_), _) => own(["0.0.0.0:1", "[::1]:2", "unix:/run/a b.sock"]),
        (SettingKind::Path(_) | SettingKind::Sink(_), _) => own(["a.yaml", "/etc/b: c", "\u{1b}#\"\\\u{200b}é"]),
        (SettingKind::Name(_), _) => own(["node-1", "~", "#3"]),
        (SettingKind::Duration(_, range), _) if *range.end() < Duration::from_secs(3600) => {
            own(["150ms", "400ms", "900ms"])
        }
        (SettingKind::Duration(_, range), _) if *range.start() >= Duration::from_secs(24 * 3600) => {
            own(["2d", "30d", "90d"])
        }
        (SettingKind::Duration(_, range), _) if *range.start() >= Duration::from_secs(3600) => {
            own(["2h", "30h", "90d"])
        }
        (SettingKind::Duration(..), _) => own(["177ms", "21s", "1h"]),
        (SettingKind::MaybeDuration(..), _) => own(["70s", "21m", "off"]),
        (SettingKind::Store(_), _) => own(["rediss://a:1", "redis-clusters://b:2,c:3", "redis-sentinels://d:4/m"]),
        (SettingKind::Db(_), _) => own(["off", "sqlite:/a b.db", "postgres://me@db:5432/limits"]),
        (SettingKind::Names(_), _) => own(["a.example", "b.example", "c"]),
        (SettingKind::Mode(_), _) => own(["0660", "0600", "0777"]),
        (SettingKind::Header(_), _) => own(["x-cost", "x-weight", "cost"]),
        (SettingKind::FromHeaders(_), _) => own(["user_id=x-user-id", "tier=x-tier", "off"]),
        (SettingKind::Networks(_), _) => own(["192.0.2.0/24", "2001:db8::/32", "off"]),
        (SettingKind::Number(..) | SettingKind::MaybeNumber(..), _) => own(["11", "12", "13"]),
        (SettingKind::Size(..), _) => own(["8KiB", "9999", "1MiB"]),
        (SettingKind::LargeSize(..), _) => own(["1MiB", "1TiB", "9999999"]),
        (SettingKind::Switch(_), _) => own(["true", "false", "true"]),
        (SettingKind::Jitter(_), _) => own(["20%", "5s", "off"]),
        (SettingKind::Status(..) | SettingKind::Choice(_), _) => unreachable!("{} lists its words", setting.name),
    }
}

/// The settings that another one requires.
fn partner(setting: &Setting) -> Option<&'static str> {
    match setting.name {
        "tls_cert" => Some("tls_key: other"),
        "tls_key" => Some("tls_cert: other"),
        "tls_client_ca" => Some("tls_cert: a\ntls_key: b"),
        "tls_client_names" => Some("tls_client_ca: c\ntls_cert: a\ntls_key: b"),
        "admin_tls_cert" => Some("admin_tls_key: other"),
        "admin_tls_key" => Some("admin_tls_cert: other"),
        "admin_client_ca" => Some("admin_tls_cert: a\nadmin_tls_key: b"),
        "admin_client_names" => Some("admin_client_ca: c\nadmin_tls_cert: a\nadmin_tls_key: b"),
        "metrics_tls_cert" => Some("metrics_tls_key: other"),
        "metrics_tls_key" => Some("metrics_tls_cert: other"),
        "store_ca" | "store_insecure_tls" | "store_password_file" | "store_skip_hostname" => {
            Some("store: rediss://a:1")
        }
        "store_cert" => Some("store: rediss://a:1\nstore_key: other"),
        "store_key" => Some("store: rediss://a:1\nstore_cert: other"),
        _ => None,
    }
}

fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("tollgate.yaml");
        fs::write(&path, text).unwrap();
        path
    }

    fn resolve(&self, text: impl AsRef<[u8]>) -> Result<Resolved, ConfigError> {
        Sources { file: Some(self.file(text)), ..Sources::default() }.resolve()
    }

    /// The whole text of what is wrong with a file, with a short name for it.
    fn refusal(&self, text: impl AsRef<[u8]>) -> String {
        self.shorten(&self.resolve(text).unwrap_err())
    }

    fn shorten(&self, error: &ConfigError) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn the_stronger_source_wins_for_every_setting() {
    let folder = Folder::new();
    for setting in SETTINGS {
        let [in_file, in_environment, in_flag] = samples(setting);
        let mut text = format!("{}: {}\n", setting.name, serde_json::json!(in_file));
        if let Some(partner) = partner(setting) {
            text.push_str(&format!("{partner}\n"));
        }
        let path = folder.file(text);
        let expect = |sources: &Sources, value: &str, origin: SettingOrigin| {
            let resolved = sources.resolve().unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            assert_eq!(setting.show(&resolved.config), [value], "{}", setting.name);
            assert_eq!(resolved.origin(setting), origin, "{}", setting.name);
        };
        let mut sources = Sources { file: Some(path.clone()), ..Sources::default() };
        let column = u32::try_from(setting.name.len()).unwrap() + 3;
        let place = tollgate_rules::SourcePosition { line: 1, column };
        expect(&sources, &in_file, SettingOrigin::File { file: path.to_string_lossy().into_owned(), place });
        sources.environment.insert(setting.variable(), in_environment.clone());
        expect(&sources, &in_environment, SettingOrigin::Environment(setting.variable()));
        sources.flags.insert(setting.name, vec![in_flag.clone()]);
        expect(&sources, &in_flag, SettingOrigin::Flag(format!("--{}", setting.flag())));
        sources.environment.insert(setting.variable(), String::new());
        sources.flags.clear();
        assert_eq!(setting.show(&sources.resolve().unwrap().config), [in_file], "an empty variable is not set");
    }
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let folder = Folder::new();
    for which in 0..3 {
        let flags = SETTINGS.iter().map(|setting| (setting.name, vec![samples(setting)[which].clone()]));
        let mut sources = Sources { flags: flags.collect(), ..Sources::default() };
        sources.flags.insert("admin", vec!["127.0.0.1:3".to_owned()]);
        for name in ["listen", "metrics", "grpc", "resp"] {
            sources.flags.insert(name, vec!["off".to_owned()]);
        }
        let first = sources.resolve().unwrap();
        let again = folder.resolve(first.to_yaml()).unwrap_or_else(|error| panic!("{error}\n{}", first.to_yaml()));
        assert_eq!(again.config, first.config, "{}", first.to_yaml());
    }
    let defaults = folder.resolve(Resolved::default().to_yaml()).unwrap();
    assert_eq!(defaults.config, Config::default());
}

#[test]
fn the_template_sets_nothing_and_its_values_work() {
    let folder = Folder::new();
    let template = template();
    assert_eq!(folder.resolve(&template).unwrap().config, Config::default());
    let lines = template.lines().filter(|line| !line.starts_with("##"));
    let used: String = lines.map(|line| format!("{}\n", line.trim_start_matches("# "))).collect();
    let used =
        used.replace(": N ", ": 1 ").replace(": MODE ", ": 660 ").replace("store: memory", "store: rediss://a:1");
    let resolved = folder.resolve(&used).unwrap_or_else(|error| panic!("{error}"));
    assert!(SETTINGS.iter().all(|setting| resolved.origin(setting) != SettingOrigin::Default));
}

#[test]
fn names_are_spelled_alike_everywhere() {
    let mut seen = Vec::new();
    for setting in SETTINGS {
        let Setting { name, help, .. } = setting;
        assert!(!seen.contains(name), "{name} is listed twice");
        seen.push(name);
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(!name.starts_with("service_") && !name.starts_with("port"), "{name}: Kubernetes sets such variables");
        assert!(help.len() > 10 && !help.ends_with('.') && !help.contains('|'), "{name}: {help}");
        assert!(!setting.value_name.is_empty(), "{name}");
        assert_eq!(setting.default_text().is_empty(), !setting.absent.is_empty(), "{name}: what holds by default?");
    }
    assert!(SETTINGS.iter().is_sorted_by_key(|setting| setting.section), "sections stay together");
    let setting = Setting::named("max_connections").unwrap();
    assert_eq!((setting.flag().as_str(), setting.variable().as_str()), ("max-connections", "TOLLGATE_MAX_CONNECTIONS"));
}

#[test]
fn every_field_has_a_setting() {
    let mut flags: BTreeMap<_, _> = SETTINGS.iter().map(|each| (each.name, vec![samples(each)[0].clone()])).collect();
    flags.insert("admin", vec!["off".to_owned()]);
    for name in ["listen", "metrics", "grpc", "resp"] {
        flags.insert(name, vec![format!("unix:/run/{name}.sock")]);
    }
    flags.insert("db_migrate", vec!["false".to_owned()]);
    let set = Sources { flags, ..Sources::default() }.resolve().unwrap().config;
    let (set, plain) = (format!("{set:#?}"), format!("{:#?}", Config::default()));
    let values = plain.lines().filter(|line| line.contains(": ") && line.ends_with(','));
    let unchanged: Vec<&str> = values.filter(|line| set.contains(*line)).collect();
    assert_eq!(unchanged, [""; 0], "these fields have no line in SETTINGS");
}

#[test]
fn defaults_pass_their_own_checks() {
    for setting in SETTINGS {
        let mut config = Config::default();
        let shown = setting.show(&config);
        if !shown.is_empty() {
            setting.set(&mut config, &shown.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        }
        assert_eq!(config, Config::default(), "{}", setting.name);
    }
    for config in [Config::default(), Config::for_test()] {
        assert_eq!(config.conflicts(), []);
        assert_eq!(config.check_exposure(), Ok(()));
    }
}

#[test]
fn the_reference_page_is_fresh() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md");
    assert!(
        fs::read_to_string(page).unwrap_or_default() == reference(),
        "docs/guide/configuration.md is stale; write it with\n  \
         cargo run -p tollgate -- config --reference > docs/guide/configuration.md"
    );
}

#[test]
fn the_example_of_the_reference_page_works() {
    let page = reference();
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let resolved = Folder::new().resolve(example).unwrap();
    assert_eq!(resolved.config.http.len(), 2);
    assert!(yaml::parse(example).is_ok());
}

#[test]
fn lists_come_in_three_spellings() {
    let folder = Folder::new();
    let expected = vec![Address::loopback(1), Address::loopback(2)];
    for text in [
        "http: [127.0.0.1:1, localhost:2]",
        "http:\n  - 127.0.0.1:1\n  - 127.0.0.1:2",
        "http: 127.0.0.1:1, 127.0.0.1:2",
    ] {
        assert_eq!(folder.resolve(text).unwrap().config.http, expected, "{text}");
    }
    let environment = environment(&[("TOLLGATE_HTTP", "127.0.0.1:1, 127.0.0.1:2")]);
    assert_eq!(Sources { environment, ..Sources::default() }.resolve().unwrap().config.http, expected);
    let flags = BTreeMap::from([("http", vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()])]);
    assert_eq!(Sources { flags, ..Sources::default() }.resolve().unwrap().config.http, expected);
}

#[test]
fn the_file_may_be_named_by_a_variable_and_better_by_a_flag() {
    let folder = Folder::new();
    let path = folder.file("threads: 3");
    let environment = environment(&[("TOLLGATE_CONFIG", path.to_str().unwrap())]);
    let mut sources = Sources { environment, ..Sources::default() };
    assert_eq!(sources.resolve().unwrap().config.threads, Some(3));
    sources.file = Some(folder.0.path().join("none.yaml"));
    let error = sources.resolve().unwrap_err();
    assert_eq!(
        folder.shorten(&error),
        "--config: cannot read none.yaml: there is no such file; name a file that this user can read\n"
    );
}

#[test]
fn all_errors_of_all_sources_are_reported_at_once() {
    let folder = Folder::new();
    let file = Some(folder.file("# a comment\nmax-connections: 5\nhead_timeout: 60\nhttp: [127.0.0.1:1, \":2\"]\n"));
    let environment = environment(&[("TOLLGATE_HTTP", "here"), ("TOLLGATE_MAX_BODY", "1KB")]);
    let flags = BTreeMap::from([("threads", vec!["0".to_owned()])]);
    let error = Sources { file, environment, flags, ..Sources::default() }.resolve().unwrap_err();
    assert_eq!(folder.shorten(&error), include_str!("tests/mistakes.txt"));
}

#[test]
fn halves_of_a_pair_are_refused_where_they_stand() {
    let folder = Folder::new();
    assert_eq!(
        folder.refusal("threads: 1\ntls_cert: cert.pem\n"),
        "error[conflict]: tls_cert: tls_cert is set and tls_key is not\n --> tollgate.yaml:2:11\n  |\n\
         2 | tls_cert: cert.pem\n  |           ^\n  = help: TLS needs both, and plain text neither\n\n\
         1 problem in tollgate.yaml\n"
    );
    let environment = environment(&[("TOLLGATE_TLS_KEY", "key.pem")]);
    assert_eq!(
        Sources { environment, ..Sources::default() }.resolve().unwrap_err().to_string(),
        "TOLLGATE_TLS_KEY: tls_key is set and tls_cert is not; TLS needs both, and plain text neither\n"
    );
}

#[test]
fn one_address_serves_one_thing() {
    let with = |name, value: &str| {
        let flags = BTreeMap::from([(name, vec![value.to_owned()])]);
        Sources { flags, ..Sources::default() }.resolve().map_err(|error| error.to_string())
    };
    let advice = "give each listener an address of its own\n";
    assert_eq!(
        with("admin", "127.0.0.1:8080").unwrap_err(),
        format!("--admin: 127.0.0.1:8080 is also the address of http; {advice}")
    );
    assert_eq!(
        with("http", "127.0.0.1:1,127.0.0.1:1").unwrap_err(),
        format!("--http: 127.0.0.1:1 is given twice; {advice}")
    );
    assert!(with("http", "127.0.0.1:0,127.0.0.1:0").is_ok(), "two free ports are two");
    let many: Vec<String> = (1..=17).map(|port| format!("127.0.0.1:{port}")).collect();
    assert_eq!(
        with("http", &many.join(",")).unwrap_err(),
        "--http: 17 addresses are too many; at most 16 are served\n"
    );
}

#[test]
fn exposure_needs_an_explicit_setting() {
    let open: Address = "0.0.0.0:8080".parse().unwrap();
    let http = Config { http: vec![Address::loopback(1), open.clone()], ..Config::default() };
    let admin = Config { admin: Some(open.clone()), ..Config::default() };
    let metrics = Config { metrics: Some("[::]:9".parse().unwrap()), ..Config::default() };
    for (config, said) in [
        (&http, "http 0.0.0.0:8080: reachable from other machines without a token; set token_file"),
        (&admin, "admin 0.0.0.0:8080: reachable from other machines without TLS: tokens would travel in the clear"),
        (&metrics, "metrics [::]:9: reachable from other machines, and /metrics there asks for no token"),
    ] {
        let text = config.check_exposure().unwrap_err().to_string();
        assert!(text.starts_with(said), "{text}");
    }
    let tls = ControlSettings { tls_cert: Some("c".into()), tls_key: Some("k".into()), ..ControlSettings::default() };
    let insecure = ControlSettings { insecure: true, ..ControlSettings::default() };
    for (config, fine) in [
        (Config { token_file: Some("tokens".into()), ..http.clone() }, true),
        (Config { allow_anonymous: true, ..http }, true),
        (Config { token_file: Some("tokens".into()), ..admin.clone() }, false),
        (Config { allow_anonymous: true, ..admin.clone() }, false),
        (Config { control: tls, ..admin.clone() }, true),
        (Config { control: insecure, ..admin }, true),
        (Config { allow_anonymous: true, ..metrics }, true),
    ] {
        assert_eq!(config.check_exposure().is_ok(), fine, "{config:?}");
    }
}

#[test]
fn what_is_exposed_on_purpose_is_still_named() {
    let open: Address = "0.0.0.0:8081".parse().unwrap();
    assert_eq!(Config::default().exposures(), [""; 0], "nothing but loopback");
    let mut config = Config { http: vec![open.clone()], allow_anonymous: true, ..Config::default() };
    let said = config.exposures();
    assert!(said[0].starts_with("http 0.0.0.0:8081 is reachable from other machines without TLS: client keys travel"));
    assert!(said[1].starts_with("http 0.0.0.0:8081 is open to all who reach it"), "{said:?}");
    (config.tls_cert, config.token_file) = (Some("c".into()), Some("t".into()));
    assert_eq!(config.exposures(), [""; 0]);
    let control = ControlSettings { insecure: true, ..ControlSettings::default() };
    let said = Config { admin: Some(open), control, ..Config::default() }.exposures();
    assert_eq!(said.len(), 1, "the admin API always asks for tokens: {said:?}");
    assert!(said[0].contains("tokens, passwords and client keys travel in the clear; set admin_tls_cert"), "{said:?}");
}

#[test]
fn resp_without_a_password_is_named_where_others_ask_for_tokens() {
    let mut config = Config { require_token: true, ..Config::default() };
    assert_eq!(config.exposures(), [""; 0], "RESP is off");
    config.resp.address = Some("127.0.0.1:6380".parse().unwrap());
    let said = config.exposures();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("resp 127.0.0.1:6380 asks for no password"), "{said:?}");
    assert!(said[0].ends_with("set resp_password_file"), "{said:?}");
    config.resp.password_file = Some("p".into());
    assert_eq!(config.exposures(), [""; 0]);
    config.resp.password_file = None;
    config.require_token = false;
    assert_eq!(config.exposures(), [""; 0], "nothing on this machine asks for anything");
}

#[test]
fn the_collector_is_shown_without_its_login() {
    let setting = Setting::named("otlp_endpoint").unwrap();
    let shown = |url: &str| {
        let mut config = Config::default();
        config.signals.otlp_endpoint = Some(url.to_owned());
        setting.show(&config)
    };
    assert_eq!(shown("http://collector:4318/v1"), ["http://collector:4318/v1"]);
    assert_eq!(shown("https://me:s3cr@t@collector:4318/a@b"), ["https://***@collector:4318/a@b"]);
    assert_eq!(shown("https://token@collector"), ["https://***@collector"]);
}

#[test]
fn unknown_variables_are_told_with_what_was_meant() {
    let environment = environment(&[
        ("TOLLGATE_HTPP", "x"),
        ("TOLLGATE_CONFIG", ""),
        ("TOLLGATE_RULES", "rules.yaml"),
        ("TOLLGATE_MAXCONNECTIONS", "x"),
        ("TOLLGATE_ZZZZZZZZ", "x"),
        ("TOLLGATE_SERVICE_HOST", "10.0.0.1"),
        ("TOLLGATE_URL", "http://127.0.0.1:8080"),
        ("TOLLGATE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
    ]);
    let resolved = Sources { environment, ..Sources::default() }.resolve().unwrap();
    let shown: Vec<String> = resolved.unknown_environment.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "TOLLGATE_HTPP is not a setting; did you mean TOLLGATE_HTTP?",
            "TOLLGATE_MAXCONNECTIONS is not a setting; did you mean TOLLGATE_MAX_CONNECTIONS?",
            "TOLLGATE_ZZZZZZZZ is not a setting",
        ]
    );
}

#[test]
fn zero_and_too_much_are_refused_for_everything_with_bounds() {
    for setting in SETTINGS.iter().filter(|setting| setting.bounds().is_some()) {
        let unit =
            if matches!(setting.kind, SettingKind::Duration(..) | SettingKind::MaybeDuration(..)) { "s" } else { "" };
        let bounds = setting.bounds().unwrap();
        let zero = setting.check(&format!("0{unit}")).map_err(|mistake| mistake.to_string());
        let refused = format!("`0{unit}` is zero, and must be more; allowed: {bounds}");
        let wanted = if bounds.starts_with("0s to ") || bounds.starts_with("0 to ") { Ok(()) } else { Err(refused) };
        assert_eq!(zero, wanted, "{}", setting.name);
        let much = setting.check(&format!("999999999{}", if unit == "s" { "s" } else { "9999999" })).unwrap_err();
        assert!(much.message.ends_with("is out of range"), "{}: {much}", setting.name);
        let (low, high) = bounds.split_once(" to ").unwrap();
        assert_eq!((setting.check(low), setting.check(high)), (Ok(()), Ok(())), "{}", setting.name);
    }
}

#[test]
fn invalid_values_are_rejected_with_advice() {
    let cases = [
        ("max_connections", "10_000", "`10_000` is not a number; did you mean 10000?"),
        ("max_connections", "-1", "`-1` is not a number; write a whole number"),
        ("max_connections", "99999999999999999999999", "is out of range; allowed: 1 to 1000000"),
        ("head_timeout", "10", "`10` has no unit"),
        ("retry_jitter", "0%", "`0%` is out of range; write off"),
        ("retry_jitter", "10", "`10` has no unit; write off, a percentage"),
        ("headers", "draft-12", "`draft-12` is not known; did you mean `draft-11`?"),
        ("headers", "off,draft-11", "`off` is named with others"),
        ("headers", "github,github", "`github` is named twice"),
        ("headers", "", "`` is not known"),
        ("refused_status", "403", "`403` is not known; allowed: 200, 429"),
        ("log_format", "jsn", "did you mean `json`? allowed: people, json"),
        ("allow_anonymous", "yes", "`yes` is neither true nor false"),
        ("node", "a b", "`a b` is not a name"),
        ("rules", "", "is not the name of a file"),
    ];
    for (name, value, words) in cases {
        let fault = Setting::named(name).unwrap().check(value).expect_err(name).to_string();
        assert!(fault.contains(words), "{name}: {fault}");
    }
    for setting in SETTINGS {
        if let Err(fault) = setting.check(&"9".repeat(1 << 20)) {
            assert!(fault.to_string().len() < 500, "{}: {} bytes of advice", setting.name, fault.to_string().len());
        }
    }
}

#[test]
fn invalid_files_are_rejected() {
    let folder = Folder::new();
    for empty in ["", "\n", "# nothing\n", "---\n", "{}"] {
        assert_eq!(folder.resolve(empty).unwrap().config, Config::default(), "{empty:?}");
    }
    let cases: &[(&[u8], &str)] = &[
        (
            b"- a\n- b\n",
            "error[wrong-type]: the file should be a map of settings, found a list\n --> tollgate.yaml:1:1",
        ),
        (b"hello", "error[wrong-type]: the file should be a map of settings, found a plain value"),
        (b"threads: 1\nthreads: 2\n", "error[duplicate-key]"),
        (b"node: caf\xe9\n", "error[not-utf8]: the file is not UTF-8 from here on\n --> tollgate.yaml:1:10"),
        (b"\xff\xfeh\0", "error[not-utf8]: the file is UTF-16"),
        (b"threads:\n", "error[blank]: threads is blank"),
        (b"threads: [1]\n", "error[wrong-type]: threads should be one value, found a list"),
        (b"http: []\n", "error[wrong-type]: http should be one value, found a list"),
        (
            b"http: [[127.0.0.1:1]]\n",
            "error[wrong-type]: http should be one value, found a list\n --> tollgate.yaml:1:8",
        ),
        (b"http: { a: b }\n", "error[wrong-type]: http should be one value, found a map"),
        (b"rules:\n  - limit: { requests: 1, window: 1s }\n", "help: this looks like a rules file"),
        (b"threads: &a 1\nnode: *a\n", "error["),
        (b"threads: !!int 1\n", "error["),
        (b"\"th\\u001breads\": 1\n", "error[unknown-field]: unknown setting `th\\u{1b}reads`"),
        (b"a: [", "error["),
    ];
    for (text, words) in cases {
        let shown = folder.refusal(text);
        assert!(shown.contains(words), "{}:\n{shown}", String::from_utf8_lossy(text));
    }
    let many: String = (0..110_000).map(|number| format!("k{number}: 1\n")).collect();
    let shown = folder.refusal(&many.as_bytes()[..1_000_000]);
    assert!(shown.len() < 20_000 && shown.contains("... and "), "{} bytes", shown.len());
}

#[test]
fn paths_that_are_not_regular_files_are_rejected() {
    let folder = Folder::new();
    let path = folder.0.path().join("thing");
    let refusal = |path: &Path| {
        let error = Sources { file: Some(path.to_owned()), ..Sources::default() }.resolve().unwrap_err();
        folder.shorten(&error)
    };
    fs::create_dir(&path).unwrap();
    assert_eq!(refusal(&path), "--config: thing is a directory; name a file in it\n");
    fs::remove_dir(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(refusal(&path), "--config: thing is not a regular file; name a file that can be read twice\n");
    assert_eq!(
        refusal(Path::new("/dev/zero")),
        "--config: /dev/zero is not a regular file; name a file that can be read twice\n"
    );
    fs::remove_file(&path).unwrap();
    fs::write(&path, " ".repeat(2 << 20)).unwrap();
    assert_eq!(refusal(&path), "--config: thing is too large; at most 1048576 bytes are read\n");
    std::os::unix::fs::symlink("loop", folder.0.path().join("loop")).unwrap();
    assert!(refusal(&folder.0.path().join("loop")).starts_with("--config: cannot read loop: "));
}
