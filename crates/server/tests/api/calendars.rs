//! The vectors of calendars over HTTP: checks, and the period and `reset_at` of `/v1/usage`.

use serde_json::{Value, json};
use tollgate_core::{ManualClock, Time};
use tollgate_rules::datetime;
use tollgate_testkit::vectors::{CALENDAR_AMOUNT, CalendarCharge, CalendarStep, CalendarVectors};

use crate::rig::Rig;

const VECTORS: &str = include_str!("../../../calendar/vectors/calendars.json");

fn date(time: Time) -> Value {
    json!(datetime::display(time.nanos()))
}

fn seconds(time: Time) -> Value {
    json!(time.secs_ceil())
}

async fn charge(rig: &Rig, step: &CalendarStep, charge: &CalendarCharge) {
    let attributes = json!({ "case": step.case });
    let body = json!({ "client_key": step.client, "attributes": attributes, "cost": charge.cost });
    let answer = rig.post("/v1/check", &body.to_string()).await.json();
    let expected = (&json!(charge.allowed), &json!(charge.remaining));
    assert_eq!((&answer["allowed"], &answer["remaining"]), expected, "{}: {answer}", step.client);
    if charge.within {
        let reset = step.end.map_or(Value::Null, seconds);
        assert_eq!(answer["reset_at"], reset, "{}: {answer}", step.client);
    }
}

async fn usage(rig: &Rig, step: &CalendarStep, charge: &CalendarCharge) {
    let path = format!("/v1/usage?client_key={}&case={}", step.client, step.case);
    let answer = rig.call("GET", &path, "", "").await.json();
    let [rule] = answer["rules"].as_array().map(Vec::as_slice).unwrap_or_default() else { panic!("{answer}") };
    let used = json!(CALENDAR_AMOUNT - charge.remaining);
    assert_eq!((&rule["rule"], &rule["used"]), (&json!(step.case), &used), "{answer}");
    if charge.within {
        let start = step.end.map_or(Value::Null, |_| date(step.start));
        let period = json!({ "start": start, "end": step.end.map(date) });
        assert_eq!((&rule["period"], &rule["reset_at"]), (&period, &step.end.map_or(Value::Null, seconds)), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_agree_with_the_vectors_of_calendars() {
    let vectors = CalendarVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}"));
    let clock = ManualClock::default();
    let rig = Rig::on_clock(&vectors.rules, &clock);
    let mut steps = 0;
    for step in vectors.within_reach() {
        for made in step.charges() {
            clock.set(made.now);
            charge(&rig, step, &made).await;
            usage(&rig, step, &made).await;
        }
        steps += 1;
    }
    assert_eq!(steps, 170);
}
