//! Reads the section.

use tollgate_rules::key::is_attribute;
use tollgate_rules::problem::{Problem, Problems, quote};
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml::YamlKind;

use super::llm::read_llm;
use super::meter::read_meter_cost;
use super::{CostSource, CostSpec, MeterCost};
use crate::amounts::AMOUNT_MAX;
use crate::llm::LlmSpec;

/// Most meters of a route, as of a request.
const METERS_MAX: usize = tollgate_rules::check::METERS_MAX;

const HELP: &str = "write `cost: llm`, a number of requests, or meters: `cost: { bytes: { request: bytes } }`";

impl CostSpec {
    /// Reads the value of `cost`; what is wrong is a problem, and left out.
    pub fn read(value: &FieldValue<'_>, problems: &mut Problems) -> CostSpec {
        match &value.node.kind {
            YamlKind::Scalar { text, .. } if text == "llm" => {
                CostSpec { llm: Some(LlmSpec::default()), ..CostSpec::default() }
            }
            YamlKind::Scalar { text, quoted: false } if text.starts_with(|first: char| first.is_ascii_digit()) => {
                let amount = value.integer(0..=AMOUNT_MAX, problems).unwrap_or(1);
                let sources = vec![CostSource::fixed(amount)];
                CostSpec { meters: vec![MeterCost { meter: "requests".into(), sources }], llm: None }
            }
            YamlKind::Map(_) => read_meters(value, problems),
            _ => {
                problems.push(value.mismatch("`llm`, a number, or a map of meters", HELP));
                CostSpec::default()
            }
        }
    }
}

fn read_meters(value: &FieldValue<'_>, problems: &mut Problems) -> CostSpec {
    let mut spec = CostSpec::default();
    let YamlKind::Map(entries) = &value.node.kind else { return spec };
    if entries.is_empty() || entries.len() > METERS_MAX {
        let message = format!("{} has {} meters", value.path, entries.len());
        problems.push(value.problem("bad-meter", message).help(format!("name 1 to {METERS_MAX}; {HELP}")));
    }
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if key.text == "llm" {
            spec.llm = Some(read_llm(entry, problems));
            continue;
        }
        if !is_attribute(&key.text) {
            let message = format!("{} cannot be the name of a meter", quote(&key.text));
            let help = "a lower-case letter, then up to 63 of a-z, 0-9, `_`, `.` and `-`";
            problems.push(Problem::error("bad-meter", key.position(), entry.path, message).help(help));
        }
        let sources = read_meter_cost(&entry, problems);
        spec.meters.push(MeterCost { meter: key.text.as_str().into(), sources });
    }
    report_shared(&spec, value, problems);
    spec
}

/// A meter that both `llm` and the route charge would count twice.
fn report_shared(spec: &CostSpec, value: &FieldValue<'_>, problems: &mut Problems) {
    let Some(llm) = &spec.llm else { return };
    for name in llm.meters.names().filter(|name| spec.meters.iter().any(|meter| meter.meter == **name)) {
        let message = format!("{} is charged by `llm` and once more", quote(name));
        problems.push(value.problem("duplicate", message).help("remove it, or name another meter in `llm`"));
    }
}
