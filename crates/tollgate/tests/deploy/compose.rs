//! The compose file: what it names exists, and other machines reach nothing of it.

use serde_json::Value;

use super::{assert_setting, path, text, yaml};

fn services() -> Vec<(String, Value)> {
    let file = yaml(&text("compose.yaml")).remove(0);
    file["services"].as_object().unwrap().iter().map(|(name, service)| (name.clone(), service.clone())).collect()
}

fn strings<'a>(service: &'a Value, key: &str) -> Vec<&'a str> {
    service[key].as_array().map_or(Vec::new(), |list| list.iter().filter_map(Value::as_str).collect())
}

#[test]
fn names_settings_and_files_that_exist() {
    for (name, service) in services() {
        let variables = service["environment"].as_object().into_iter().flat_map(|map| map.keys());
        variables.filter(|variable| variable.starts_with("TOLLGATE_")).for_each(|variable| assert_setting(variable));
        for volume in strings(&service, "volumes") {
            let source = volume.split(':').next().unwrap();
            let is_file = source.starts_with('.');
            assert!(!is_file || path("deploy").join(source).exists(), "{name}: {source} does not exist");
        }
        if let Some(file) = service["build"]["dockerfile"].as_str() {
            assert!(path("deploy").join("..").join(file).is_file(), "{file}");
        }
    }
}

#[test]
fn publishes_ports_on_this_machine_alone_and_each_once() {
    let mut published = Vec::new();
    for (name, service) in services() {
        for port in strings(&service, "ports") {
            assert!(port.starts_with("127.0.0.1:"), "{name} publishes {port}");
            published.push(port.rsplit_once(':').unwrap().0.to_owned());
        }
    }
    let all = published.len();
    published.sort();
    published.dedup();
    assert_eq!(published.len(), all, "a port is published twice");
}

#[test]
fn images_are_pinned_and_our_containers_may_do_nothing() {
    for (name, service) in services() {
        let image = service["image"].as_str().unwrap();
        match image {
            "tollgate" => {
                assert_eq!(strings(&service, "cap_drop"), ["ALL"], "{name}");
                assert_eq!(service["read_only"], Value::Bool(true), "{name}");
            }
            image => assert!(image.contains(':') && !image.ends_with(":latest"), "{name}: pin {image}"),
        }
    }
}
