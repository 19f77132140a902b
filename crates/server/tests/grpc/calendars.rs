//! The vectors of calendars over gRPC: `reset_at` is the end of the period.

use tollgate_core::ManualClock;
use tollgate_proto::v1::CheckRequest;
use tollgate_testkit::vectors::CalendarVectors;

use crate::rig::{Rig, check, with};

const VECTORS: &str = include_str!("../../../calendar/vectors/calendars.json");

#[tokio::test(flavor = "multi_thread")]
async fn quotas_agree_with_the_vectors_of_calendars() {
    let vectors = CalendarVectors::parse(VECTORS).unwrap_or_else(|error| panic!("{error}"));
    let clock = ManualClock::default();
    let rig = Rig::on_clock(&vectors.rules, &clock);
    let mut client = rig.client().await;
    let mut steps = 0;
    for step in vectors.within_reach() {
        for charge in step.charges() {
            clock.set(charge.now);
            let request = with(&[("client_key", step.client.as_str()), ("case", step.case.as_str())]);
            let answer = check(&mut client, CheckRequest { cost: Some(charge.cost), ..request }).await;
            let expected = (charge.allowed, Some(charge.remaining));
            assert_eq!((answer.allowed, answer.remaining), expected, "{}: {answer:?}", step.client);
            if charge.within {
                assert_eq!(answer.reset_at, step.end.map(|end| end.secs_ceil()), "{}: {answer:?}", step.client);
            }
        }
        steps += 1;
    }
    assert_eq!(steps, 170);
}
