//! The Helm chart, rendered by Helm's own code, and the plain manifests made from it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tollgate_lab::program;

use super::{assert_setting, path, run, run_ok, yaml};

/// What `deploy/kubernetes/tollgate.yaml` is made with.
const PLAIN: [&str; 2] = ["store.url=redis://valkey:6379", "access.anonymous=true"];

/// Values that show every branch of the templates.
const VARIANTS: [&[&str]; 4] = [
    &PLAIN,
    &["replicas=1", "access.tokenSecret.name=tokens", "settings.log_level=debug", "podMonitor.enabled=true"],
    &[
        "mode=gateway",
        "upstream=http://api:80",
        "store.url=rediss://valkey:6379",
        "store.passwordSecret.name=store",
        "database.url=postgres://tollgate@postgres/tollgate",
        "database.passwordSecret.name=database",
        "autoscaling.enabled=true",
    ],
    &["mode=gateway", "routes=routes: []", "replicas=1", "serviceAccount.create=false", "networkPolicy.enabled=false"],
];

fn helm(arguments: &[&str]) -> Output {
    let jars = path("target/test-tools/helm");
    assert!(jars.is_dir(), "Helm's library is missing: script/setup installs it");
    let source = path("crates/lab/assets/helm/Chart.java");
    let mut command = Command::new(program::named("java"));
    command.arg("-cp").arg(jars.join("*")).arg(source).args(arguments);
    run(&mut command)
}

fn chart() -> String {
    path("deploy/helm/tollgate").display().to_string()
}

fn render(values: &[&str]) -> String {
    let chart = chart();
    let mut arguments = vec!["template", chart.as_str()];
    arguments.extend(values);
    let output = helm(&arguments);
    assert!(output.status.success(), "{values:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn passes_lint() {
    let output = helm(&["lint", &chart()]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !told.contains("[WARNING]") && !told.contains("[ERROR]"), "{told}");
}

/// With the schemas of Kubernetes itself. A PodMonitor is of the Prometheus operator, which Kubernetes does not know.
#[test]
fn renders_what_kubernetes_accepts() {
    for values in VARIANTS {
        let text = render(values);
        let known: Vec<&str> = text.split("\n---").filter(|document| !document.contains("kind: PodMonitor")).collect();
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        fs::write(file.path(), known.join("\n---")).unwrap();
        accepted(file.path());
    }
}

fn accepted(file: &Path) {
    let mut command = Command::new(program::named("kubernetes-validate"));
    run_ok(command.args(["--strict", "--kubernetes-version", "1.30"]).arg(file));
}

/// The tests of Envoy start what it says.
#[test]
fn the_manifest_in_place_of_ratelimit_is_one_that_kubernetes_accepts() {
    accepted(&path("deploy/kubernetes/envoy-ratelimit.yaml"));
}

#[test]
fn sets_variables_that_exist_and_drains_in_time() {
    for values in VARIANTS {
        let documents = yaml(&render(values));
        let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let environment = pod["containers"][0]["env"].as_array().unwrap();
        environment.iter().for_each(|entry| assert_setting(entry["name"].as_str().unwrap()));
        let seconds = |name: &str| -> u64 {
            let entry = environment.iter().find(|entry| entry["name"] == name).unwrap();
            entry["value"].as_str().unwrap().strip_suffix('s').unwrap().parse().unwrap()
        };
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace > seconds("TOLLGATE_DRAIN_DELAY") + seconds("TOLLGATE_DRAIN_TIMEOUT"));
        assert_eq!(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"], Value::Bool(true));
    }
}

#[test]
fn mistakes_are_refused_with_what_would_be_right() {
    let mistakes: [(&[&str], &str); 6] = [
        (&["access.anonymous=true"], "replicas: 1"),
        (&["replicas=1"], "access.tokenSecret.name"),
        (&["replicas=1", "mode=gateway"], "upstream: http://"),
        (&["access.anonymous=true", "store.url=redis://v:1", "database.url=sqlite"], "postgres://"),
        (&["replicas=1", "access.anonymos=true"], "anonymos"),
        (&["replicas=1", "access.anonymous=true", "store.url=memcached://v:1"], "url"),
    ];
    for (values, wanted) in mistakes {
        let chart = chart();
        let mut arguments = vec!["template", chart.as_str()];
        arguments.extend(values);
        let output = helm(&arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(wanted), "{values:?}: {told}");
    }
}

/// `UPDATE_PAGES=1` writes them.
#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    let file: PathBuf = path("deploy/kubernetes/tollgate.yaml");
    let rendered = render(&PLAIN);
    let kept = rendered.lines().filter(|line| !line.contains("managed-by: Helm") && !line.starts_with("# Source:"));
    let body: Vec<&str> = kept.collect();
    let head = "# Two nodes that share the Valkey at valkey:6379, made from deploy/helm/tollgate (a test compares them): kubectl apply -f\n";
    let wanted = format!("{head}{}\n", body.join("\n"));
    if env::var_os("UPDATE_PAGES").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), wanted, "UPDATE_PAGES=1 writes the manifests");
}
