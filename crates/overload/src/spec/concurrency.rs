//! `concurrency`: how many requests may be in flight.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;
use tollgate_rules::yaml::YamlKind;

use super::{MS, SECOND, above, set_number};
use crate::adaptive::{AdaptiveAlgorithm, AdaptiveConfig};

const FIELDS: &[&str] = &["algorithm", "initial", "min", "max", "window"];
const ALGORITHMS: [(&str, AdaptiveAlgorithm); 6] = [
    ("fixed", AdaptiveAlgorithm::Fixed),
    ("aimd", AdaptiveAlgorithm::Aimd),
    ("vegas", AdaptiveAlgorithm::Vegas),
    ("gradient2", AdaptiveAlgorithm::Gradient2),
    ("gradient", AdaptiveAlgorithm::Gradient),
    ("envoy", AdaptiveAlgorithm::Envoy),
];
/// Most requests in flight at one upstream.
const LIMIT_MAX: u32 = 1_000_000;

/// Reads `{ algorithm: gradient, min: 3, max: 200 }`, or a number.
pub fn read_concurrency(value: FieldValue<'_>, problems: &mut Problems) -> AdaptiveConfig {
    if let YamlKind::Scalar { .. } = value.node.kind {
        let limit = value.integer(1..=u64::from(LIMIT_MAX), problems);
        return AdaptiveConfig::fixed(limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(1));
    }
    let fields = value.fields(FIELDS, "{ algorithm: gradient, min: 3, max: 200 }", problems);
    let algorithm = fields.get("algorithm").and_then(|value| value.choice(&ALGORITHMS, problems));
    let mut config = AdaptiveConfig::of(algorithm.unwrap_or(AdaptiveConfig::DEFAULT));
    if config.algorithm == AdaptiveAlgorithm::Fixed {
        if let Some(max) = fields.required("max", "write `{ algorithm: fixed, max: 100 }`", problems) {
            let limit = max.integer(1..=u64::from(LIMIT_MAX), problems).and_then(|limit| u32::try_from(limit).ok());
            config = AdaptiveConfig::fixed(limit.unwrap_or(1));
        }
        for name in ["initial", "min", "window"] {
            if let Some(value) = fields.get(name) {
                let message = format!("a fixed limit has no `{name}`");
                problems.push(value.problem("out-of-range", message).help("leave it out, or choose another algorithm"));
            }
        }
        return config;
    }
    set_number(&mut config.min, &fields, "min", 1..=LIMIT_MAX, problems);
    set_number(&mut config.max, &fields, "max", 1..=LIMIT_MAX, problems);
    if config.min > config.max {
        above(&fields, "min", "max", problems);
        return config;
    }
    config.initial = config.initial.clamp(config.min, config.max);
    set_number(&mut config.initial, &fields, "initial", config.min..=config.max, problems);
    if let Some(length) = fields.get("window").and_then(|value| value.duration(10 * MS..=60 * SECOND, problems)) {
        let mut window = config.window.unwrap_or_default();
        window.length = tollgate_core::Span::from_nanos(length);
        config.window = Some(window);
    }
    config
}
