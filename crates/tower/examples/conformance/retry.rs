//! The retry side on a clock of the table.

use http::{HeaderName, HeaderValue, Method, Response};
use serde_json::{Value, json};
use tollgate_retry::{
    Attempts, BackoffJitter, ClientThrottle, Later, NextAttempt, RetryAllowance, RetryPolicy, Span, ThrottleConfig,
    Time,
};

/// What all calls of a line share.
struct Played<'a> {
    policy: RetryPolicy,
    method: Method,
    key: Option<&'a str>,
    allowance: RetryAllowance,
    throttle: Option<ClientThrottle>,
    now: Time,
    draws: Draws<'a>,
    responses: std::slice::Iter<'a, Value>,
}

/// The draws of the table, the last one again and again.
struct Draws<'a>(&'a [Value], usize);

impl Draws<'_> {
    fn next(&mut self) -> u64 {
        let draw = self.0.get(self.1).or(self.0.last()).and_then(Value::as_f64).unwrap_or(0.0);
        self.1 += 1;
        (draw * (u64::MAX as f64)) as u64
    }
}

/// Plays one call, or several of one layer.
pub fn play(line: &Value) -> Option<Value> {
    let options = &line["options"];
    let number = |name: &str, default: u64| options[name].as_u64().unwrap_or(default);
    let mut played = Played {
        policy: RetryPolicy {
            attempts: u32::try_from(number("attempts", 3)).ok()?,
            base: Span::from_millis(number("base_ms", 100)),
            cap: Span::from_millis(number("cap_ms", 20_000)),
            jitter: if options["jitter"] == "equal" { BackoffJitter::Half } else { BackoffJitter::Full },
            deadline: Span::from_millis(number("deadline_ms", 60_000)),
        },
        method: line["method"].as_str().unwrap_or("GET").parse().ok()?,
        key: line["idempotency_key"].as_str(),
        allowance: RetryAllowance::default(),
        throttle: (options["adaptive"] == true).then(|| ClientThrottle::new(ThrottleConfig::default())),
        now: Time::ZERO.after(Span::from_millis(line["now_ms"].as_u64()?)),
        draws: Draws(line["random"].as_array()?, 0),
        responses: line["responses"].as_array()?.iter(),
    };
    let Some(calls) = line["calls"].as_u64() else { return played.call() };
    let every = Span::from_millis(line["every_ms"].as_u64().unwrap_or(0));
    let mut answers = Vec::new();
    for _ in 0..calls {
        answers.push(played.call()?);
        played.now = played.now.after(every);
    }
    Some(json!({ "calls": answers }))
}

impl Played<'_> {
    fn call(&mut self) -> Option<Value> {
        let mut attempts =
            Attempts::start(self.policy, self.method.clone(), self.key.is_some(), self.now, &self.allowance);
        let (mut waits, mut keys) = (Vec::new(), Vec::new());
        let status = loop {
            if !self.admits() {
                break 0;
            }
            keys.push(self.key);
            let response = self.responses.next()?;
            self.now = self.now.after(Span::from_millis(response["took_ms"].as_u64().unwrap_or(0)));
            let status = response["status"].as_u64()?;
            let Some(later) = self.judge(response)? else { break status };
            match self.next(&mut attempts, &later) {
                NextAttempt::After(wait) => {
                    waits.push(wait.nanos() / 1_000_000);
                    self.now = self.now.after(wait);
                }
                NextAttempt::None => break status,
            }
        };
        let mut answer = json!({ "waits_ms": waits, "status": status });
        if self.key.is_some() {
            answer["keys"] = json!(keys);
        }
        Some(answer)
    }

    /// One draw for each wait: an attempt that is not made takes none.
    fn next(&mut self, attempts: &mut Attempts, later: &Later) -> NextAttempt {
        let drawn = self.draws.1;
        let next = attempts.next(later, self.now, self.draws.next(), &self.allowance);
        if next == NextAttempt::None {
            self.draws.1 = drawn;
        }
        next
    }

    fn admits(&mut self) -> bool {
        let Some(throttle) = &mut self.throttle else { return true };
        let random = if throttle.probability(self.now) > 0.0 { self.draws.next() } else { u64::MAX };
        throttle.admits(self.now, random)
    }

    fn judge(&mut self, response: &Value) -> Option<Option<Later>> {
        let mut head = Response::builder().status(u16::try_from(response["status"].as_u64()?).ok()?);
        for (name, value) in response["headers"].as_object().into_iter().flatten() {
            let name: HeaderName = name.parse().ok()?;
            head = head.header(name, HeaderValue::from_str(value.as_str()?).ok()?);
        }
        let head = head.body(()).ok()?;
        let body = response["body"].as_str().unwrap_or_default().as_bytes();
        let later =
            Later::read(&head, self.now).or_else(|| Later::read_body(head.status(), head.headers(), body, self.now));
        if let (None, Some(throttle)) = (later, &mut self.throttle) {
            throttle.accepted(self.now);
        }
        Some(later)
    }
}
