//! The report of a run, as text and as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_load::{Errors, LoadPace, LoadPlan, LoadReport, Popularity};

use super::plot;
use tollgate_terminal::{Palette, count, grouped, short_time, visible};

/// The reported quantiles.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The target and the plan, in two lines.
pub fn heading(url: &str, plan: &LoadPlan) -> String {
    let pace = match plan.pace {
        LoadPace::Closed => "closed loop".to_owned(),
        LoadPace::Open { per_second } => format!("open loop, {}/s", grouped(per_second.round() as u64)),
    };
    let popularity = match plan.popularity {
        Popularity::Uniform => String::new(),
        Popularity::Zipf(exponent) => format!(" by Zipf's law ({exponent})"),
    };
    let pipeline = if plan.pipeline > 1 { format!(" of {} requests at once", plan.pipeline) } else { String::new() };
    format!(
        "{}\n{}{pipeline}, {pace}, {} keys{popularity}, {} after {} of warm-up",
        visible(url),
        count(plan.connections, "connection"),
        grouped(plan.keys),
        short_time(plan.duration),
        short_time(plan.warm_up),
    )
}

/// The figures and two plots.
pub fn text(outcome: &LoadReport, palette: Palette) -> String {
    let latencies = QUANTILES.map(|(name, part)| format!("{name} {}", short_time(outcome.latency.quantile(part))));
    let mut lines = vec![
        row("rate", &palette.strong(&format!("{}/s", grouped(outcome.rate.round() as u64)))),
        row("requests", &format!("{} sent, {} answered", grouped(outcome.sent), grouped(outcome.answered))),
        row("decisions", &format!("{} allowed, {} denied", grouped(outcome.allowed), grouped(outcome.denied))),
        row("latency", &format!("{}  max {}", latencies.join("  "), short_time(outcome.latency.max()))),
        row("client", &format!("{:.2} us of CPU per request", cpu_us(outcome))),
    ];
    if outcome.unsent > 0 {
        let unsent = format!("{} due and not sent: no connection had room", grouped(outcome.unsent));
        lines.push(row("unsent", &palette.warn(&unsent)));
    }
    if outcome.reconnects > 0 {
        lines.push(row("reconnects", &grouped(outcome.reconnects)));
    }
    if outcome.errors.total() > 0 {
        lines.push(row("errors", &palette.bad(&errors(&outcome.errors))));
    }
    if let Some(first) = &outcome.errors.first {
        lines.push(row("first", &visible(first)));
    }
    let mut text = lines.concat();
    if !outcome.latency.is_empty() {
        let heads = ["Latency, up to", "Rate over time"].map(|head| palette.strong(head));
        let [latency, rate] = heads;
        text.push_str(&format!(
            "\n{latency}\n{}\n{rate}\n{}",
            plot::latency(&outcome.latency),
            plot::rate(&outcome.seconds)
        ));
    }
    text
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<11} {value}\n")
}

fn errors(errors: &Errors) -> String {
    let kinds = [
        (errors.connect, "could not connect"),
        (errors.closed, "lost with a closed connection"),
        (errors.timeout, "timed out"),
        (errors.malformed, "with a malformed reply"),
    ];
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    let kinds = kinds.map(|(number, what)| format!("{} {what}", grouped(*number)));
    let statuses = errors.statuses.iter().map(|(status, number)| match status {
        0 => format!("{} refused", grouped(*number)), // RESP has no status numbers
        status => format!("{} with status {status}", grouped(*number)),
    });
    kinds.chain(statuses).collect::<Vec<_>>().join(", ")
}

fn cpu_us(outcome: &LoadReport) -> f64 {
    micros(outcome.cpu) / outcome.answered.max(1) as f64
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// The whole report.
pub fn json(url: &str, plan: &LoadPlan, outcome: &LoadReport) -> Value {
    let latency = &outcome.latency;
    let mut latencies = json!({
        "min": micros(latency.min()), "mean": micros(latency.mean()), "max": micros(latency.max()),
    });
    for (name, part) in QUANTILES {
        if let Some(fields) = latencies.as_object_mut() {
            fields.insert(name.to_owned(), json!(micros(latency.quantile(part))));
        }
    }
    let bucket = |(edge, count): &(Duration, u64)| json!({ "up_to_us": micros(*edge), "count": count });
    json!({
        "url": url,
        "plan": plan_json(plan),
        "seconds": outcome.duration.as_secs_f64(),
        "rate": outcome.rate,
        "sent": outcome.sent,
        "answered": outcome.answered,
        "allowed": outcome.allowed,
        "denied": outcome.denied,
        "unsent": outcome.unsent,
        "reconnects": outcome.reconnects,
        "errors": errors_json(&outcome.errors),
        "latency_us": latencies,
        "distribution": plot::buckets(latency).iter().map(bucket).collect::<Vec<_>>(),
        "client": { "cpu_seconds": outcome.cpu.as_secs_f64(), "cpu_us_per_request": cpu_us(outcome) },
        "series": outcome.seconds.iter().map(second_json).collect::<Vec<_>>(),
    })
}

fn plan_json(plan: &LoadPlan) -> Value {
    let rate = match plan.pace {
        LoadPace::Closed => Value::Null,
        LoadPace::Open { per_second } => json!(per_second),
    };
    let zipf = match plan.popularity {
        Popularity::Uniform => Value::Null,
        Popularity::Zipf(exponent) => json!(exponent),
    };
    json!({
        "connections": plan.connections,
        "pipeline": plan.pipeline,
        "warm_up_seconds": plan.warm_up.as_secs_f64(),
        "duration_seconds": plan.duration.as_secs_f64(),
        "rate": rate,
        "keys": plan.keys,
        "zipf": zipf,
    })
}

fn errors_json(errors: &Errors) -> Value {
    json!({
        "total": errors.total(),
        "connect": errors.connect,
        "closed": errors.closed,
        "timeout": errors.timeout,
        "malformed": errors.malformed,
        "status": errors.status(),
        "statuses": errors.statuses.iter().map(|(status, number)| (status.to_string(), json!(number))).collect::<serde_json::Map<_, _>>(),
        "first": errors.first,
    })
}

fn second_json(second: &tollgate_load::Second) -> Value {
    json!({
        "at": second.at,
        "rate": second.rate,
        "allowed": second.allowed,
        "denied": second.denied,
        "errors": second.errors,
        "p50_us": micros(second.p50),
        "p99_us": micros(second.p99),
    })
}
