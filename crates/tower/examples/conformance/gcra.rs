//! The vectors of the algorithm.

use serde_json::{Value, json};
use tollgate_tower::engine::core::{Algorithm, Ask, Effect, Gcra, Span, Tat, Time, Wait};

/// A new bucket, step by step.
pub fn steps(line: &Value) -> Option<Value> {
    let limit = &line["limit"];
    let gcra =
        Gcra::new(whole(&limit["count"])?, Span::from_nanos(whole(&limit["period_ns"])?), whole(&limit["burst"])?);
    let (gcra, mut bucket) = (gcra.ok()?, Tat::default());
    let results = line["steps"].as_array()?.iter().map(|step| {
        let (now, ask) = (Time::from_nanos(whole(&step["now_ns"])?), Ask::Consume(whole(&step["cost"])?));
        let allowed = gcra.admits(&bucket, now, &ask);
        let effect = if allowed { Effect::Charge } else { Effect::Refuse };
        let granted = gcra.record(&mut bucket, now, &ask, effect);
        let outcome = gcra.view(&bucket, now, &ask, allowed, granted);
        let wait = match outcome.wait {
            Wait::None => json!("0"),
            Wait::For(wait) => json!(wait.nanos().to_string()),
            Wait::Never => Value::Null,
        };
        Some(json!({
            "allowed": allowed,
            "limit": outcome.limit.to_string(),
            "remaining": outcome.remaining.to_string(),
            "retry_after_ns": wait,
            "reset_after_ns": outcome.reset_after.nanos().to_string(),
        }))
    });
    Some(json!({ "results": results.collect::<Option<Vec<Value>>>()? }))
}

fn whole(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}
