//! F44–F46: a rules file that changes under a running server, by every way in which files change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_core::{ManualClock, Time};
use tollgate_engine::Engine;
use tollgate_ruleset::CompileOptions;
use tollgate_server::rule_sources::{
    Apply, BYTES_MAX, Pace, Reloader, RuleSourceError, RuleSourceState, RulesFileSource, Unreadable, WatchConfig,
    Written,
};
use tollgate_store::Memory;
use tollgate_telemetry::{Colours, Format, Lines, LogConfig, Sink};
use tracing::Level;

const PACE: Pace =
    Pace { poll: Duration::from_millis(5), settle: Duration::from_millis(20), settle_max: Duration::from_millis(200) };

/// Rules whose only limit is `requests`.
fn rules(requests: u64) -> String {
    format!("rules:\n  - name: only\n    key_by: user_id\n    limit: {{ requests: {requests}, window: 1h }}\n")
}

struct Rig {
    dir: TempDir,
    path: PathBuf,
    engine: Arc<Engine<Memory>>,
    reloader: Reloader,
}

impl Rig {
    /// Follows a file that says `rules(1)`, in force as generation 1.
    fn new() -> Rig {
        Rig::over(tempfile::tempdir().expect("a folder"), |dir| {
            let path = dir.join("rules.yaml");
            fs::write(&path, rules(1)).expect("a folder to write to");
            path
        })
    }

    fn over(dir: TempDir, place: impl FnOnce(&Path) -> PathBuf) -> Rig {
        let path = place(dir.path());
        let source = RulesFileSource { path: path.clone(), options: CompileOptions::reproducible() };
        let loaded = source.load().expect("the rules load");
        let engine = Arc::new(Engine::in_memory(loaded.written.rules));
        let swapped = engine.clone();
        let apply: Apply = Arc::new(move |written| Ok(swapped.swap_rules(written.rules)));
        let in_force = Some((loaded.mark, 1));
        let reloader = Reloader::start(WatchConfig { source, pace: PACE, clock: clock(), apply, in_force });
        Rig { dir, path, engine, reloader }
    }

    async fn until(&self, wanted: impl Fn(&RuleSourceState) -> bool) -> RuleSourceState {
        let mut state = self.reloader.state();
        let found = tokio::time::timeout(Duration::from_secs(20), state.wait_for(|state| wanted(state))).await;
        match found {
            Ok(found) => found.expect("the feed lives").clone(),
            Err(_) => panic!("waited in vain; the feed is at {:?}", self.reloader.state().borrow()),
        }
    }

    /// The feed has looked often enough to see what is there, to be sure of it, and to act upon it again if it would.
    async fn looked(&self) -> RuleSourceState {
        looked(&self.reloader).await
    }

    /// Everything that changed so far has been acted upon once this returns.
    async fn quiet(&self) -> RuleSourceState {
        self.looked().await;
        let attempts = self.reloader.state().borrow().attempts;
        self.reloader.trigger();
        self.until(|state| state.attempts > attempts).await
    }

    fn limit(&self) -> u64 {
        limit(&self.engine)
    }
}

/// One look that may have begun before, one that sees a change, two until it has settled; and all that once more.
const LOOKS: u64 = 8;

async fn looked(reloader: &Reloader) -> RuleSourceState {
    let mut state = reloader.state();
    let enough = state.borrow().looks + LOOKS;
    let found = tokio::time::timeout(Duration::from_secs(20), state.wait_for(|state| state.looks >= enough)).await;
    found.expect("the feed goes on looking").expect("the feed lives").clone()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)))
}

fn limit(engine: &Engine<Memory>) -> u64 {
    let pinned = engine.rules();
    let first = pinned.rules.rules().first().and_then(|rule| rule.limit);
    first.expect("a rule with a limit").requests()
}

#[tokio::test]
async fn f44_half_written_then_completed_is_one_failure_and_one_reload() {
    let rig = Rig::new();
    let whole = rules(2);
    fs::write(&rig.path, &whole[..whole.len() - 12]).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    let problem = state.error.unwrap();
    assert!(problem.starts_with(&format!("{}:4:", rig.path.display())), "{problem}");
    assert_eq!((state.generation, rig.limit()), (Some(1), 1), "the old rules stay");
    fs::write(&rig.path, &whole).unwrap();
    rig.until(|state| state.reloads == 2).await;
    let state = rig.quiet().await;
    assert_eq!((state.reloads, state.failures, state.generation, state.error), (2, 1, Some(2), None));
    assert_eq!((state.rules, state.loaded_at, rig.limit()), (1, Some(Time::from_secs(1_800_000_000)), 2));
}

#[tokio::test]
async fn f44_truncated_in_place_keeps_the_old_rules() {
    let rig = Rig::new();
    fs::File::options().write(true).open(&rig.path).unwrap().set_len(20).unwrap();
    rig.until(|state| state.failures == 1).await;
    assert_eq!(rig.limit(), 1);
}

#[tokio::test]
async fn f44_a_rename_over_the_file_is_one_reload() {
    let rig = Rig::new();
    for round in 2..5 {
        let new = rig.dir.path().join("new");
        fs::write(&new, rules(round)).unwrap();
        fs::rename(&new, &rig.path).unwrap();
        rig.until(|state| state.reloads == round).await;
        assert_eq!(rig.limit(), round);
    }
    let state = rig.quiet().await;
    assert_eq!((state.reloads, state.failures), (4, 0));
}

#[tokio::test]
async fn f44_a_swapped_symlink_is_one_reload() {
    let rig = Rig::over(tempfile::tempdir().unwrap(), |dir| {
        fs::write(dir.join("one"), rules(1)).unwrap();
        fs::write(dir.join("two"), rules(2)).unwrap();
        symlink("one", dir.join("rules.yaml")).unwrap();
        dir.join("rules.yaml")
    });
    symlink("two", rig.dir.path().join("next")).unwrap();
    fs::rename(rig.dir.path().join("next"), &rig.path).unwrap();
    rig.until(|state| state.reloads == 2).await;
    let state = rig.quiet().await;
    assert_eq!((state.reloads, state.failures, rig.limit()), (2, 0, 2));
}

/// `rules.yaml → ..data/rules.yaml` and `..data → ..2026_01`: only the middle link moves, and the old folder goes.
#[tokio::test]
async fn f44_a_config_map_flip_is_one_reload() {
    let version = |dir: &Path, name: &str, requests| {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("rules.yaml"), rules(requests)).unwrap();
    };
    let rig = Rig::over(tempfile::tempdir().unwrap(), |dir| {
        version(dir, "..2026_01", 1);
        symlink("..2026_01", dir.join("..data")).unwrap();
        symlink("..data/rules.yaml", dir.join("rules.yaml")).unwrap();
        dir.join("rules.yaml")
    });
    let dir = rig.dir.path();
    version(dir, "..2026_02", 2);
    symlink("..2026_02", dir.join("..data_tmp")).unwrap();
    fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
    fs::remove_dir_all(dir.join("..2026_01")).unwrap();
    rig.until(|state| state.reloads == 2).await;
    let state = rig.quiet().await;
    assert_eq!((state.reloads, state.failures, rig.limit()), (2, 0, 2));
}

#[tokio::test]
async fn a_vanished_file_is_mentioned_once_and_may_come_back() {
    let rig = Rig::new();
    fs::remove_file(&rig.path).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    assert_eq!(state.error.as_deref(), Some("there is no such file"));
    assert_eq!(rig.looked().await.failures, 1, "said once");
    fs::write(&rig.path, rules(1)).unwrap();
    let state = rig.until(|state| state.error.is_none()).await;
    assert_eq!((state.reloads, state.generation), (1, Some(1)), "the same content is no reload");
    fs::write(&rig.path, rules(2)).unwrap();
    rig.until(|state| state.reloads == 2).await;
}

/// Nobody may read this one, not even root, and looking at it does not tell.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_cannot_be_read_is_mentioned_once_and_tried_on() {
    let rig = Rig::new();
    let next = rig.dir.path().join("next");
    symlink("/proc/self/clear_refs", &next).unwrap();
    fs::rename(&next, &rig.path).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    assert_ne!(state.error.as_deref(), Some("there is no such file"));
    assert_eq!(rig.looked().await.failures, 1, "said once");
    rig.reloader.trigger(); // the error is reported again
    rig.until(|state| state.failures == 2).await;
    assert_eq!(rig.looked().await.failures, 2, "and once");
    fs::write(&next, rules(1)).unwrap();
    fs::rename(&next, &rig.path).unwrap();
    let state = rig.until(|state| state.error.is_none()).await;
    assert_eq!((state.reloads, state.failures), (1, 2), "the same content is no reload");
    symlink("/proc/self/clear_refs", &next).unwrap();
    fs::rename(&next, &rig.path).unwrap();
    rig.until(|state| state.failures == 3).await;
    fs::write(&next, rules(2)).unwrap();
    fs::rename(&next, &rig.path).unwrap();
    let state = rig.until(|state| state.reloads == 2).await;
    assert_eq!((state.failures, state.error, rig.limit()), (3, None, 2));
}

#[tokio::test]
async fn f45_invalid_content_is_reported_once_with_its_line() {
    let rig = Rig::new();
    let bad = "rules:\n  - name: only\n    limit: { requests: 10, window: 60 }\n    colour: red\n";
    fs::write(&rig.path, bad).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    let place = format!("{}:3:", rig.path.display());
    let problem = state.error.unwrap();
    assert!(problem.starts_with(&place) && problem.ends_with(", and 1 more problem"), "{problem}");
    fs::write(&rig.path, bad).unwrap(); // touched, not changed
    rig.until(|state| state.attempts == 2).await;
    assert_eq!(rig.reloader.state().borrow().failures, 1);
    rig.reloader.trigger(); // the error is reported again
    rig.until(|state| state.failures == 2).await;
    fs::write(&rig.path, rules(1)).unwrap();
    let state = rig.until(|state| state.error.is_none()).await;
    assert_eq!((state.reloads, state.generation), (1, Some(1)), "what is in force need not be loaded again");
}

#[tokio::test]
async fn what_is_no_file_is_refused_without_waiting() {
    let rig = Rig::new();
    fs::remove_file(&rig.path).unwrap();
    fs::create_dir(&rig.path).unwrap();
    rig.until(|state| state.error.as_deref().is_some_and(|text| text.contains("a directory"))).await;
    fs::remove_dir(&rig.path).unwrap();
    assert!(Command::new("mkfifo").arg(&rig.path).status().unwrap().success());
    rig.until(|state| state.error.as_deref() == Some("it is not a regular file")).await;
    for path in [rig.path.clone(), PathBuf::from("/dev/zero")] {
        let source = RulesFileSource { path, options: CompileOptions::reproducible() };
        let refused = tokio::task::spawn_blocking(move || source.load().map(|_| ()));
        let refused = tokio::time::timeout(Duration::from_secs(5), refused).await.expect("opening does not wait");
        assert_eq!(refused.unwrap(), Err(RuleSourceError::Unreadable(Unreadable::NotRegular)));
    }
    fs::remove_file(&rig.path).unwrap();
    fs::write(&rig.path, rules(2)).unwrap();
    rig.until(|state| state.reloads == 2 && state.error.is_none()).await;
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let rig = Rig::new();
    fs::File::options().write(true).open(&rig.path).unwrap().set_len(BYTES_MAX + 1).unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    assert_eq!(state.error.unwrap(), "it is too large: at most 16777216 bytes are read");
    assert_eq!(rig.limit(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f46_a_thousand_rewrites_are_few_reloads_and_end_with_the_last() {
    let rig = Rig::new();
    let (path, spare) = (rig.path.clone(), rig.dir.path().join("spare"));
    let writer = tokio::task::spawn_blocking(move || {
        for round in 2..=1001 {
            fs::write(&spare, rules(round)).unwrap();
            fs::rename(&spare, &path).unwrap();
        }
    });
    writer.await.unwrap();
    let engine = rig.engine.clone();
    rig.until(move |_| limit(&engine) == 1001).await;
    let state = rig.quiet().await;
    assert!(state.reloads <= 20, "{} reloads", state.reloads);
    assert_eq!((rig.limit(), state.failures), (1001, 0));
}

#[tokio::test]
async fn sighup_reloads_at_once_and_says_when_nothing_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    fs::write(&path, rules(1)).unwrap();
    let source = RulesFileSource { path: path.clone(), options: CompileOptions::reproducible() };
    let never = Pace { poll: Duration::from_secs(3600), ..PACE };
    let apply: Apply = Arc::new(|_| Ok(7));
    let reloader = Reloader::start(WatchConfig { source, pace: never, clock: clock(), apply, in_force: None });
    assert_eq!(reloader.state().borrow().generation, None, "not ready before the first valid content");
    let after = async |wanted: fn(&RuleSourceState) -> bool| {
        let mut state = reloader.state();
        reloader.trigger();
        let found = tokio::time::timeout(Duration::from_secs(20), state.wait_for(wanted)).await;
        found.expect("at once").unwrap().clone()
    };
    let state = after(|state| state.attempts == 1).await;
    assert_eq!((state.reloads, state.generation), (1, Some(7)));
    let state = after(|state| state.attempts == 2).await;
    assert_eq!((state.reloads, state.failures), (1, 0), "unchanged");
    fs::write(&path, rules(2)).unwrap();
    let state = after(|state| state.attempts == 3).await;
    assert_eq!(state.reloads, 2);
}

/// P22: a list that lost its rules must not become "everything is allowed".
#[tokio::test]
async fn p22_an_empty_list_of_rules_keeps_the_old_ones() {
    let rig = Rig::new();
    fs::write(&rig.path, "rules: []\n").unwrap();
    let state = rig.until(|state| state.failures == 1).await;
    let problem = state.error.unwrap();
    assert!(
        problem.contains(":1:8: the list of rules is empty [missing-field]; a file needs at least one rule"),
        "{problem}"
    );
    assert_eq!(rig.limit(), 1);
}

#[tokio::test]
async fn f68_a_panic_costs_one_reload_and_not_the_feed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.yaml");
    fs::write(&path, rules(13)).unwrap();
    let source = RulesFileSource { path: path.clone(), options: CompileOptions::reproducible() };
    let apply: Apply = Arc::new(|written: Written| match written.rules.rules()[0].limit.unwrap().requests() {
        13 => panic!("a bug, for the test"),
        other => Ok(other),
    });
    let reloader = Reloader::start(WatchConfig { source, pace: PACE, clock: clock(), apply, in_force: None });
    let mut state = reloader.state();
    let panicked = tokio::time::timeout(Duration::from_secs(20), state.wait_for(|state| state.panics == 1)).await;
    assert_eq!(panicked.unwrap().unwrap().failures, 1);
    assert_eq!(looked(&reloader).await.panics, 1, "not tried again before it changes");
    fs::write(&path, rules(14)).unwrap();
    let loaded = tokio::time::timeout(Duration::from_secs(20), state.wait_for(|state| state.reloads == 1)).await;
    assert_eq!(loaded.unwrap().unwrap().generation, Some(14));
}

#[test]
fn what_lint_would_say_is_said_when_rules_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let (rules, log) = (dir.path().join("rules.yaml"), dir.path().join("log"));
    fs::write(&rules, "rules:\n  - { name: paid, match: { tire: paid }, limit: { requests: 1, window: 1s } }\n")
        .unwrap();
    let lines = Lines::start(Sink::File(log.clone())).unwrap();
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)));
    let config = LogConfig { format: Format::People(Colours::Off), level: Level::INFO, clock };
    tracing::subscriber::with_default(config.subscriber(lines.clone()), || {
        RulesFileSource { path: rules, options: CompileOptions::reproducible() }.load().unwrap();
    });
    assert!(lines.flush(Duration::from_secs(10)));
    let said = fs::read_to_string(log).unwrap();
    assert!(said.contains("WARN a rule may not do what it was written for") && said.contains("line=2"), "{said}");
    assert!(said.contains("tire") && said.contains("tollgate rules lint"), "{said}");
}
