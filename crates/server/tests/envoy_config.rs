//! A directory of envoyproxy/ratelimit files under a running server: read as it lies, followed while it changes.
#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_core::{ManualClock, Request, Time};
use tollgate_engine::Engine;
use tollgate_rules::envoy::Duplicates;
use tollgate_ruleset::{CompileOptions, RuleSet};

use tollgate_config::Config;
use tollgate_server::rule_sources::{
    Apply, EnvoyDirectory, EnvoyDomains, Pace, Reloader, RuleSourceError, RuleSourceState, Unreadable, WatchConfig,
};
use tollgate_server::run::Server;
use tollgate_store::Memory;

const PACE: Pace =
    Pace { poll: Duration::from_millis(5), settle: Duration::from_millis(20), settle_max: Duration::from_millis(200) };

/// The file of a domain whose only limit is `requests` per hour for each user.
fn domain(name: &str, requests: u64) -> String {
    format!(
        "domain: {name}\ndescriptors:\n- key: user\n  rate_limit: {{ unit: hour, requests_per_unit: {requests} }}\n"
    )
}

fn directory(path: &Path) -> EnvoyDirectory {
    let (duplicates, options) = (Duplicates::Refuse, CompileOptions::reproducible());
    EnvoyDirectory { path: path.to_owned(), duplicates, allow_shrink: false, options }
}

fn compile(domains: &EnvoyDomains) -> RuleSet {
    RuleSet::assemble_with(&[], &domains.domains, &CompileOptions::reproducible()).unwrap()
}

struct Rig {
    engine: Arc<Engine<Memory>>,
    reloader: Reloader,
}

impl Rig {
    fn over(path: &Path) -> Rig {
        let source = directory(path);
        let (domains, mark) = source.load().unwrap();
        let engine = Arc::new(Engine::in_memory(compile(&domains)));
        let swapped = engine.clone();
        let apply: Apply<EnvoyDomains> = Arc::new(move |domains| Ok(swapped.swap_rules(compile(&domains))));
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)));
        let in_force = Some((mark, 1));
        Rig { engine, reloader: Reloader::start(WatchConfig { source, pace: PACE, clock, apply, in_force }) }
    }

    async fn until(&self, wanted: impl Fn(&RuleSourceState) -> bool) -> RuleSourceState {
        let mut state = self.reloader.state();
        let found = tokio::time::timeout(Duration::from_secs(30), state.wait_for(|state| wanted(state))).await;
        match found {
            Ok(found) => found.unwrap().clone(),
            Err(_) => panic!("waited in vain; the feed is at {:?}", self.reloader.state().borrow()),
        }
    }

    /// The limit of a user in a domain, if there is one.
    fn limit(&self, namespace: &str) -> Option<u64> {
        let entries = [("user", "1")];
        let request = Request::new().in_namespace(namespace).with_custom(&entries).peek();
        self.engine.decide_now(&request).rulings().first().map(|ruling| ruling.requests)
    }
}

#[tokio::test]
async fn files_are_found_where_that_service_finds_them() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    fs::create_dir_all(place("below/deeper")).unwrap();
    fs::create_dir(place(".hidden")).unwrap();
    fs::write(place("a.yaml"), domain("a", 1)).unwrap();
    fs::write(place("b.yml"), domain("b", 2)).unwrap();
    fs::write(place("below/deeper/c.yaml"), domain("c", 3)).unwrap();
    for other in [".a.yaml", ".hidden/d.yaml", "README.md", "a.yaml~", "below/a.yaml.swp"] {
        fs::write(place(other), "not: [a domain").unwrap();
    }
    let (domains, _) = directory(dir.path()).load().unwrap();
    let names: Vec<&str> = domains.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_change_is_loaded_and_a_mistake_leaves_what_is_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("edge.yaml");
    fs::write(&file, domain("edge", 1)).unwrap();
    let rig = Rig::over(dir.path());
    fs::write(dir.path().join("more.yaml"), domain("more", 7)).unwrap();
    rig.until(|state| state.reloads == 2).await;
    assert_eq!((rig.limit("edge"), rig.limit("more")), (Some(1), Some(7)));

    fs::write(&file, "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: fortnight }\n").unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    let told = state.error.unwrap();
    assert!(told.contains("edge.yaml:4:23: descriptors[0].rate_limit.unit is `fortnight` [unknown-value]"), "{told}");
    assert_eq!((rig.limit("edge"), rig.limit("more")), (Some(1), Some(7)));

    fs::write(&file, domain("more", 2)).unwrap();
    let state = rig.until(|state| state.failures == 2).await;
    assert!(state.error.unwrap().contains("the domain `more` is also in"));

    fs::write(&file, domain("edge", 2)).unwrap();
    let state = rig.until(|state| state.reloads == 3).await;
    assert_eq!((rig.limit("edge"), state.error), (Some(2), None));
    fs::remove_file(dir.path().join("more.yaml")).unwrap();
    rig.until(|state| state.reloads == 4).await;
    assert_eq!(rig.limit("more"), None, "a file that is gone takes its domain along");
}

/// Whoever is in the way may go without the files changing.
#[tokio::test]
async fn a_conflict_is_told_once_and_ends_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("edge.yaml"), domain("edge", 1)).unwrap();
    let free = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let gate = free.clone();
    let apply: Apply<EnvoyDomains> = Arc::new(move |_| match gate.load(std::sync::atomic::Ordering::Relaxed) {
        true => Ok(5),
        false => Err(RuleSourceError::Conflict("somebody has that name".to_owned())),
    });
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)));
    let (source, in_force) = (directory(dir.path()), None);
    let reloader = Reloader::start(WatchConfig { source, pace: PACE, clock, apply, in_force });
    let mut state = reloader.state();
    let within = Duration::from_secs(30);
    let told = tokio::time::timeout(within, state.wait_for(|state| state.failures == 1 && state.looks > 20)).await;
    assert_eq!(told.unwrap().unwrap().error.as_deref(), Some("somebody has that name"));
    free.store(true, std::sync::atomic::Ordering::Relaxed);
    let loaded = tokio::time::timeout(within, state.wait_for(|state| state.reloads == 1)).await;
    let loaded = loaded.unwrap().unwrap().clone();
    assert_eq!((loaded.generation, loaded.error, loaded.failures), (Some(5), None, 1));
}

/// A ConfigMap: files are links into `..data`, which is a link to a directory that is swapped.
fn config_map(dir: &TempDir, version: u64, name: &str) -> PathBuf {
    let data = dir.path().join(format!("..{version}"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join(name), domain("edge", version)).unwrap();
    data
}

fn swap(link: &Path, target: &Path) {
    let new = link.parent().unwrap().join(".being-swapped");
    symlink(target, &new).unwrap();
    fs::rename(&new, link).unwrap();
}

#[tokio::test]
async fn a_swapped_link_is_one_reload() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("..data");
    symlink(config_map(&dir, 1, "edge.yaml"), &link).unwrap();
    symlink("..data/edge.yaml", dir.path().join("edge.yaml")).unwrap();
    let rig = Rig::over(dir.path());
    assert_eq!(rig.limit("edge"), Some(1));
    swap(&link, &config_map(&dir, 2, "edge.yaml"));
    rig.until(|state| state.reloads == 2).await;
    assert_eq!(rig.limit("edge"), Some(2));
}

/// The way of RUNTIME_ROOT: the directory itself is a link.
#[tokio::test]
async fn a_swapped_root_is_one_reload() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("current");
    swap(&root, &config_map(&dir, 1, "one.yaml"));
    let rig = Rig::over(&root);
    swap(&root, &config_map(&dir, 2, "two.yaml"));
    rig.until(|state| state.reloads == 2).await;
    assert_eq!(rig.limit("edge"), Some(2));
    fs::remove_file(&root).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    assert_eq!((state.error.as_deref(), rig.limit("edge")), (Some("there is no such directory"), Some(2)));
}

/// A mount that is gone, or a pipeline that wrote nothing: no limit at all is hardly what was meant.
#[tokio::test]
async fn an_emptied_directory_leaves_what_is_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("edge.yaml");
    fs::write(&file, domain("edge", 3)).unwrap();
    let rig = Rig::over(dir.path());
    fs::remove_file(&file).unwrap();
    let state = rig.until(|state| state.failures > 0).await;
    assert_eq!(state.error.as_deref(), Some("there is no *.yaml or *.yml in it any more"));
    assert_eq!(rig.limit("edge"), Some(3));
    fs::write(&file, domain("edge", 4)).unwrap();
    rig.until(|state| state.error.is_none()).await;
    assert_eq!(rig.limit("edge"), Some(4));
}

#[test]
fn what_is_no_directory_of_files_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let reason = |path: &Path| match directory(path).load() {
        Err(RuleSourceError::Unreadable(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let file = dir.path().join("edge.yaml");
    fs::write(&file, domain("edge", 1)).unwrap();
    assert_eq!(reason(&file), Unreadable::NotDirectory);
    assert_eq!(reason(&dir.path().join("nowhere")), Unreadable::NoDirectory);
    fs::create_dir(dir.path().join("folder.yaml")).unwrap();
    assert!(directory(dir.path()).load().is_ok(), "a directory is looked into, whatever it is called");
    symlink("/dev/null", dir.path().join("pipe.yaml")).unwrap();
    let told = reason(dir.path()).to_string();
    assert!(told.ends_with("pipe.yaml: it is not a regular file"), "{told}");
}

fn serve(dir: &Path, rules: Option<&str>) -> anyhow::Result<Server> {
    let rules = rules.map(|text| {
        let path = dir.join("rules.txt");
        fs::write(&path, text).unwrap();
        path
    });
    let mut config = Config { rules, ..Config::for_test() };
    config.envoy.config = Some(dir.to_owned());
    Server::bind(config, None)
}

#[tokio::test]
async fn a_server_starts_with_both_kinds_of_files_and_not_with_one_that_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("edge.yaml"), domain("edge", 1)).unwrap();
    let rules =
        |namespace: &str| format!("namespace: {namespace}\nrules: [{{ limit: {{ requests: 1, window: 1s }} }}]");
    assert!(serve(dir.path(), Some(&rules("native"))).is_ok());
    let told = serve(dir.path(), None).unwrap().startup_banner();
    let from = format!("1 limit of 1 domain from {}, read again when they change\n", dir.path().display());
    assert!(told.contains(&from) && !told.contains("no rules"), "{told}");
    let body = r#"/json -d '{"descriptors":[{"entries":[{"key":"user","value":"1"}]}],"domain":"edge"}'"#;
    assert!(told.contains(body), "{told}");
    let error = serve(dir.path(), Some(&rules("edge"))).err().unwrap().to_string();
    assert!(error.starts_with("`edge` is the namespace of the rules file and a domain of Envoy's files"), "{error}");
    let mut config = Config::for_test();
    config.envoy.config = Some(dir.path().to_owned());
    config.envoy.headers = vec!["a".to_owned(), "b".to_owned()];
    let error = Server::bind(config, None).err().unwrap().to_string();
    assert_eq!(error, "envoy_headers has 2 names: name three header fields, for limit, remaining and reset");
    fs::write(dir.path().join("wrong.yaml"), "domain: ''\n").unwrap();
    let error = serve(dir.path(), None).err().unwrap().to_string();
    assert!(error.starts_with("error[blank]: domain is empty") && error.contains("wrong.yaml:1:9"), "{error}");
}
