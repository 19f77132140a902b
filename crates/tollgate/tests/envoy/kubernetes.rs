//! The guide "moving from envoyproxy/ratelimit on Kubernetes": what the manifest says is started, its ConfigMap laid out as
//! the kubelet does, with a store and a real Envoy; the commands of the page print what the page says, but for numbers. To
//! write the page anew: `UPDATE_PAGES=1 cargo test -p tollgate --test envoy kubernetes`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tollgate_lab::redis::{Flavour, RedisServer};
use tollgate_lab::{patience, program};

use crate::rig::{Tollgate, call, envoy};

const PAGE: &str = "docs/guide/envoy-kubernetes.md";
const MANIFEST: &str = "deploy/kubernetes/envoy-ratelimit.yaml";
const PATIENCE: Duration = Duration::from_secs(30);

/// Addresses of a page that is read at a desk, with the ports forwarded.
const HTTP: &str = "127.0.0.1:8080";
const DEBUG: &str = "127.0.0.1:6070";

#[test]
fn the_manifest_serves_envoy_and_the_page_shows_what_happens() {
    let store = RedisServer::of(Flavour::Valkey);
    let tollgate = start(&store);
    let path = root(PAGE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(tollgate.directory().join("edge.yaml"), &files()[0].1).unwrap();
    let mut commands = 0;
    let parts =
        text.split("```").enumerate().map(|(index, part)| match index % 2 == 1 && part.starts_with("console\n") {
            true => {
                let lines = part.lines().filter_map(|line| line.strip_prefix("$ "));
                let played = lines.map(|line| {
                    commands += 1;
                    format!("$ {line}\n{}", run(&tollgate, line))
                });
                format!("console\n{}", played.collect::<String>())
            }
            false => part.to_owned(),
        });
    let played = parts.collect::<Vec<_>>().join("```");
    assert!(commands >= 7, "{PAGE} shows hardly anything");
    match std::env::var_os("UPDATE_PAGES") {
        Some(_) => fs::write(&path, played).unwrap(),
        None => assert_eq!(masked(&text), masked(&played)),
    }

    // The limits of the map hold behind Envoy: two exports a day, one of which the page has taken.
    let proxy = envoy(tollgate.grpc, |config| config.replace("descriptor_key: endpoint", "descriptor_key: path"));
    let export = || call(proxy.address(), "/export", "x-api-key: gold\r\n");
    let first = export();
    assert_eq!((first.status, first.field("ratelimit-remaining")), (200, Some("0")), "{first:?}");
    assert_eq!(export().status, 429);
    assert_eq!(call(proxy.address(), "/orders", "x-api-key: gold\r\n").status, 200);
}

/// As the kubelet does it: a new directory, and one link that is swapped.
#[test]
fn a_changed_config_map_is_in_force_without_a_restart() {
    let store = RedisServer::of(Flavour::Valkey);
    let tollgate = start(&store);
    let config = tollgate.directory().join("limits/config");
    let rlconfig = || call(([127, 0, 0, 1], tollgate.metrics).into(), "/rlconfig", "").body;
    assert!(rlconfig().contains("requests_per_unit=600"), "{}", rlconfig());
    let changed: Vec<(String, String)> = files()
        .into_iter()
        .map(|(name, text)| (name, text.replace("requests_per_unit: 600", "requests_per_unit: 700")))
        .collect();
    lay_out(&config, "..2026_11_20_second", &changed);
    patience::until("the new map is in force", PATIENCE, || rlconfig().contains("requests_per_unit=700"));
}

/// What its probes ask is answered, and its variables are those of the original or settings of ours.
#[test]
fn the_manifest_asks_for_what_there_is() {
    let store = RedisServer::of(Flavour::Valkey);
    let tollgate = start(&store);
    let container = container();
    for probe in ["readinessProbe", "livenessProbe"] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["port"], "http");
        let answer = call(([127, 0, 0, 1], tollgate.http).into(), asked["path"].as_str().unwrap(), "");
        assert_eq!(answer.status, 200, "{probe}: {answer:?}");
    }
    let told = fs::read_to_string(tollgate.directory().join("log")).unwrap();
    assert!(!told.contains("ignored") && !told.contains("not supported"), "{told}");
    let ports: Vec<(&str, u64)> = container["ports"].as_array().unwrap().iter().map(port).collect();
    assert_eq!(ports, [("grpc", 8081), ("http", 8080), ("debug", 6070)]);
}

fn port(port: &Value) -> (&str, u64) {
    (port["name"].as_str().unwrap(), port["containerPort"].as_u64().unwrap())
}

/// Starts the container's command with its variables and the files of the map; paths and addresses are those of the test.
fn start(store: &RedisServer) -> Tollgate {
    let container = container();
    assert_eq!(container["args"], serde_json::json!(["envoy-compat"]));
    let mounted = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let mut variables = Vec::new();
    let mut place = PathBuf::new();
    for entry in container["env"].as_array().unwrap() {
        let (name, value) = (entry["name"].as_str().unwrap(), entry["value"].as_str().unwrap());
        match name {
            "RUNTIME_ROOT" => place.push(value),
            "RUNTIME_SUBDIRECTORY" => place.push(value),
            "REDIS_URL" => variables.push((name.to_owned(), store.address())),
            _ => variables.push((name.to_owned(), value.to_owned())),
        }
    }
    assert_eq!(place.join("config"), Path::new(mounted), "the map is mounted where it is read");
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let tollgate = Tollgate::compat_in(|config| lay_out(config, "..2026_11_20_first", &files()), &variables);
    patience::until("the files are read", PATIENCE, || {
        call(([127, 0, 0, 1], tollgate.metrics).into(), "/rlconfig", "").body.contains("edge.api_key_gold")
    });
    tollgate
}

/// Files of a ConfigMap: links to those of `..data`, which is a link to a directory of this name.
fn lay_out(config: &Path, directory: &str, files: &[(String, String)]) {
    use std::os::unix::fs::symlink;
    fs::create_dir_all(config.join(directory)).unwrap();
    for (name, text) in files {
        fs::write(config.join(directory).join(name), text).unwrap();
        if !config.join(name).exists() {
            symlink(Path::new("..data").join(name), config.join(name)).unwrap();
        }
    }
    symlink(directory, config.join("..data_tmp")).unwrap();
    fs::rename(config.join("..data_tmp"), config.join("..data")).unwrap();
}

/// What a shell prints for a command of the page.
fn run(tollgate: &Tollgate, command: &str) -> String {
    let at = |port: u16| format!("127.0.0.1:{port}");
    let command = command.replace(HTTP, &at(tollgate.http)).replace(DEBUG, &at(tollgate.metrics));
    let programs = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{{ {command}; }} 2>&1")).env("PATH", path).current_dir(tollgate.directory());
    let text = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
}

fn container() -> Value {
    let deployment = documents().into_iter().find(|document| document["kind"] == "Deployment").unwrap();
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

/// Names and texts of the ConfigMap.
fn files() -> Vec<(String, String)> {
    let map = documents().into_iter().find(|document| document["kind"] == "ConfigMap").unwrap();
    let data = map["data"].as_object().unwrap();
    data.iter().map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
}

fn documents() -> Vec<Value> {
    let script = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";
    let output = Command::new(program::named("python")).args(["-c", script]).arg(root(MANIFEST)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Without its numbers.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if masked.ends_with('0') => {}
            true => masked.push('0'),
            false => masked.push(letter),
        }
    }
    masked
}
