//! Values that are read, and the places and words of mistakes.

use tollgate_core::Span;
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml;

use super::*;
use crate::adaptive::{AdaptiveAlgorithm, AdaptiveConfig};
use crate::priority::{Priorities, Priority};
use crate::wait_queue::{QueueConfig, QueueDiscipline};

fn read_with<T>(text: &str, read: impl Fn(FieldValue<'_>, &mut Problems) -> T) -> (T, Vec<String>) {
    let node = yaml::parse(text).expect("YAML");
    let root = FieldPath::Root("file");
    let mut problems = Problems::default();
    let value = read(FieldValue { node: &node, path: FieldPath::Field(&root, "here") }, &mut problems);
    let (kept, _) = problems.into_parts();
    let one = |problem: tollgate_rules::Problem| {
        let help = problem.help.unwrap_or_default();
        format!("{}:{} {} {}: {}; {help}", problem.line, problem.column, problem.code, problem.field, problem.message)
    };
    (value, kept.into_iter().map(one).collect())
}

#[track_caller]
fn good<T>(text: &str, read: impl Fn(FieldValue<'_>, &mut Problems) -> T) -> T {
    let (value, problems) = read_with(text, read);
    assert_eq!(problems, [""; 0], "{text}");
    value
}

#[track_caller]
fn bad<T>(text: &str, read: impl Fn(FieldValue<'_>, &mut Problems) -> T) -> String {
    let (_, problems) = read_with(text, read);
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn empty_maps_are_the_defaults() {
    assert_eq!(good("{}", read_queue), QueueConfig::default());
    assert_eq!(good("{}", read_concurrency), AdaptiveConfig::default());
    assert_eq!(good("{}", read_breaker), crate::BreakerConfig::default());
    assert_eq!(good("{}", read_throttle), crate::ThrottleConfig::default());
    assert_eq!(good("{}", read_ejection), crate::OutlierConfig::default());
    assert_eq!(good("{}", read_shed), ShedSpec::default());
    assert_eq!(good("{}", read_retries).attempts, 1);
}

#[test]
fn reads_every_field() {
    let limit = good("{ algorithm: vegas, initial: 30, min: 5, max: 500, window: 2s }", read_concurrency);
    assert_eq!((limit.algorithm, limit.initial, limit.min, limit.max), (AdaptiveAlgorithm::Vegas, 30, 5, 500));
    assert_eq!(limit.window.unwrap().length, Span::from_secs(2));
    assert_eq!(good("250", read_concurrency), AdaptiveConfig::fixed(250));
    assert_eq!(good("{ algorithm: fixed, max: 250 }", read_concurrency), AdaptiveConfig::fixed(250));
    let queue = good("{ max: 7, max_wait: 1s, overload: lifo, target: 20ms, interval: 200ms }", read_queue);
    assert_eq!((queue.max, queue.max_wait, queue.discipline), (7, Span::SECOND, QueueDiscipline::Lifo));
    assert_eq!((queue.target, queue.interval), (Span::from_millis(20), Span::from_millis(200)));
    let shed = good("{ reserved: 10%, good: 60%, bad: 90%, wait: 10s, ramp: 1m }", read_shed);
    assert_eq!((shed.reserved_percent, shed.utilisation.good, shed.utilisation.bad), (10, 0.6, 0.9));
    assert_eq!((shed.utilisation.wait, shed.utilisation.ramp), (Span::from_secs(10), Span::from_secs(60)));
    let retries = good("{ attempts: 2, budget: 20%, burst: 3 }", read_retries);
    assert_eq!((retries.attempts, retries.budget.percent, retries.budget.burst), (2, 20, 3));
    let text = "{ failures: 4, ratio: 30%, calls: 9, window: 5s, open: 2s, open_max: 9s, probes: 2 }";
    let breaker = good(text, read_breaker);
    assert_eq!((breaker.failures, breaker.percent, breaker.calls_min, breaker.probes), (4, 30, 9, 2));
    assert_eq!([breaker.window, breaker.open, breaker.open_max], [5, 2, 9].map(Span::from_secs));
    let throttle = good("{ k: 1.5, window: 1m, cap: 90% }", read_throttle);
    assert_eq!((throttle.k, throttle.window, throttle.cap), (1.5, Span::from_secs(60), 0.9));
    let ejection = good("{ after: 3, for: 1s, max: 1m, share: 30% }", read_ejection);
    assert_eq!((ejection.after, ejection.share_percent), (3, 30));
    assert_eq!([ejection.duration, ejection.duration_max], [1, 60].map(Span::from_secs));
}

#[test]
fn classes_are_read_and_named() {
    let classes = good("[gold, silver]", read_priorities);
    assert_eq!(classes.names().collect::<Vec<_>>(), ["gold", "silver"]);
    assert_eq!(good("silver", |value, problems| read_priority(value, &classes, problems)), Priority::LOWEST);
    assert_eq!(
        bad("sliver", |value, problems| read_priority(value, &classes, problems)),
        "1:1 unknown-value here: here is `sliver`, which is no class of priority; did you mean `silver`? allowed: gold, silver, health"
    );
    assert!(bad("[a, a]", read_priorities).contains("bad-priorities here: here: `a` is named twice"));
    assert!(bad("gold", read_priorities).contains("wrong-type here: here should be a list of classes"));
    assert_eq!(good("[critical, default, sheddable, test]", read_priorities), Priorities::default());
}

#[test]
fn mistakes_have_their_place_and_their_remedy() {
    assert_eq!(
        bad("{ max: 5, max_wiat: 1s }", read_queue),
        "1:11 unknown-field here.max_wiat: unknown field `max_wiat` in here; did you mean `max_wait`? allowed: max, max_wait, \
         overload, target, interval"
    );
    assert_eq!(
        bad("{ algorithm: gradiant }", read_concurrency),
        "1:14 unknown-value here.algorithm: here.algorithm is `gradiant`; did you mean `gradient`? allowed: fixed, aimd, \
         vegas, gradient2, gradient, envoy"
    );
    assert!(bad("{ max_wait: 50ms }", read_queue).ends_with("allowed: 100ms to 1m"));
    assert!(bad("{ min: 3000 }", read_concurrency).contains("`min` is above `max`"));
    assert!(bad("{ min: 30, initial: 20 }", read_concurrency).ends_with("allowed: 30 to 1000"));
    assert!(bad("{ algorithm: fixed }", read_concurrency).contains("missing-field"));
    assert!(bad("{ algorithm: fixed, max: 3, min: 2 }", read_concurrency).contains("a fixed limit has no `min`"));
    assert!(bad("0", read_concurrency).contains("out-of-range"));
    assert!(bad("{ good: 90% }", read_shed).contains("`good` is above `bad`"));
    assert!(bad("{ open: 10s, open_max: 5s }", read_breaker).contains("`open` is above `open_max`"));
    assert!(bad("{ budget: 10 }", read_retries).contains("bad-percent"));
    for k in ["1", "101", "-2", "1e1", "inf", "NaN"] {
        assert!(bad(&format!("{{ k: {k} }}"), read_throttle).contains("out-of-range"), "{k}");
    }
}

#[test]
fn the_sample_of_the_guide_is_read_and_says_the_defaults() {
    let guide = include_str!("../../../../docs/guide/overload.md");
    let sample = guide.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a sample");
    let node = yaml::parse(sample).expect("YAML");
    let root = FieldPath::Root("file");
    let mut problems = Problems::default();
    let allowed = &["priorities", "shed", "concurrency", "queue", "retries", "breaker", "throttle", "ejection"];
    let fields = FieldValue { node: &node, path: root }.fields(allowed, "", &mut problems);
    let field = |name| fields.get(name).expect(name);
    assert_eq!(read_priorities(field("priorities"), &mut problems), Priorities::default());
    assert_eq!(read_shed(field("shed"), &mut problems), ShedSpec::default());
    let limit = read_concurrency(field("concurrency"), &mut problems);
    assert_eq!(limit, AdaptiveConfig { max: 200, ..AdaptiveConfig::default() });
    assert_eq!(read_queue(field("queue"), &mut problems), QueueConfig::default());
    assert_eq!(read_retries(field("retries"), &mut problems), RetrySpec { attempts: 1, ..RetrySpec::default() });
    assert_eq!(read_breaker(field("breaker"), &mut problems), crate::BreakerConfig::default());
    assert_eq!(read_throttle(field("throttle"), &mut problems), crate::ThrottleConfig::default());
    assert_eq!(read_ejection(field("ejection"), &mut problems), crate::OutlierConfig::default());
    assert!(problems.is_empty(), "{problems:?}");
}
