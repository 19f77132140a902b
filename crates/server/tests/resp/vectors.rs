//! The published vectors, over the wire, on a clock that the test moves.

use serde_json::Value;
use tollgate_config::RespRounding;
use tollgate_core::Time;

use crate::rig::{Rig, command, five};

fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn time(step: &Value) -> Time {
    Time::from_nanos(step["now_ns"].as_u64().unwrap())
}

async fn throttles_as(rounding: RespRounding, field: &str) {
    let (rig, clock) = Rig::on_clock(|config, _| config.resp.rounding = rounding);
    let mut caller = rig.caller().await;
    let mut steps = 0;
    for case in cases(include_str!("../../../testkit/vectors/cl_throttle.json")) {
        for step in case["steps"].as_array().unwrap() {
            clock.set(time(step));
            let numbers = step["args"].as_array().unwrap()[1..].iter().map(Value::to_string);
            let words: Vec<String> =
                ["CL.THROTTLE".to_owned(), case["name"].to_string()].into_iter().chain(numbers).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let expected: Vec<i64> = step[field].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
            caller.says(&command(&words), &five(expected.try_into().unwrap())).await;
            steps += 1;
        }
    }
    assert!(steps > 20);
}

#[tokio::test]
async fn cl_throttle_answers_as_the_vectors_say() {
    throttles_as(RespRounding::Strict, "reply").await;
}

#[tokio::test]
async fn cl_throttle_rounds_as_redis_cell_where_that_is_asked_for() {
    throttles_as(RespRounding::RedisCell, "reply_redis_cell_rounding").await;
}

/// GCRA by either command. Cases without a bound are redis-cell's, and not ours.
#[tokio::test]
async fn both_commands_are_the_gcra_of_the_vectors() {
    const SECOND: u64 = 1_000_000_000;
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    let mut steps = 0;
    for case in cases(include_str!("../../../testkit/vectors/gcra.json")) {
        let mut config = case["config"].clone();
        let is_plain = |step: &Value| step["mode"].is_null() && step["now_ns"].is_u64();
        let burst = |config: &Value| config["burst"].as_u64().unwrap();
        if config["clamp"] == false {
            continue;
        }
        if burst(&config) == 0 || !case["steps"].as_array().unwrap().iter().all(is_plain) {
            continue; // no limit over RESP, or asked in a way that there is none for
        }
        for step in case["steps"].as_array().unwrap() {
            if let Some(changed) = step["reconfigure"].as_object() {
                config = case["config"].clone();
                changed.iter().for_each(|(name, value)| config[name] = value.clone());
            }
            clock.set(time(step));
            let period = config["period_ns"].as_u64().unwrap();
            assert_eq!(period % SECOND, 0);
            let cell = steps % 2 == 0; // both are one bucket
            let (name, burst) = if cell { ("CL.THROTTLE", burst(&config) - 1) } else { ("THROTTLE", burst(&config)) };
            let numbers = [burst, config["count"].as_u64().unwrap(), period / SECOND, step["cost"].as_u64().unwrap()];
            let numbers = numbers.map(|number| number.to_string());
            let key = case["name"].to_string();
            let words: Vec<&str> = [name, &key].into_iter().chain(numbers.iter().map(String::as_str)).collect();
            let expect = &step["expect"];
            let secs = |field: &str| expect[field].as_u64().map_or(-1, |nanos| nanos.div_ceil(SECOND) as i64);
            let number = |field: &str| expect[field].as_i64().unwrap();
            let allowed = expect["allowed"] == true;
            let (retry, reset) = (secs("retry_after_ns"), secs("reset_after_ns"));
            caller
                .says(
                    &command(&words),
                    &five(match cell {
                        true => {
                            let retry = if allowed { -1 } else { retry };
                            [i64::from(!allowed), number("limit"), number("remaining"), retry, reset]
                        }
                        false => [i64::from(allowed), number("limit"), number("remaining"), reset, retry],
                    }),
                )
                .await;
            steps += 1;
        }
    }
    assert!(steps > 40, "{steps}");
}

/// P20: a limit of one per second is not blocked for an hour because the clock stepped back by one.
#[tokio::test]
async fn a_clock_that_steps_back_blocks_no_key_for_longer_than_its_bucket() {
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    let ask = |name: &'static str| command(&[name, "key", "4", "1", "1"]);
    caller.says(&command(&["CL.THROTTLE", "key", "4", "1", "1", "5"]), &five([0, 5, 0, -1, 5])).await;
    clock.set(Time::from_secs(1_700_000_000 - 3600));
    caller.says(&ask("CL.THROTTLE"), &five([1, 5, 0, 1, 5])).await;
    clock.set(Time::from_secs(1_700_000_000 - 3599));
    caller.says(&ask("CL.THROTTLE"), &five([0, 5, 0, -1, 5])).await;
}
