//! The client of the suite: one line of JSON in, one out.

use std::collections::HashMap;
use std::io::Write as _;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tollgate_tower::client::{
    Attribute, CallError, Client, RemoteDecision, RemoteReservation, RemoteSettlement, Request, RequestRejected,
    SlotGuard,
};

use crate::{AnyError, gcra, retry, settings};

/// Slots that the program holds, by receipt.
type HeldSlots = HashMap<String, SlotGuard>;

/// Answers until standard input ends.
pub async fn answer_lines() -> Result<(), AnyError> {
    let client = settings::client()?;
    let mut slots = HeldSlots::new();
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let line: Value = serde_json::from_str(&line)?;
        let answer =
            answer(&client, &mut slots, &line).await.ok_or_else(|| format!("this line is not known: {line}"))?;
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

async fn answer(client: &Client, slots: &mut HeldSlots, line: &Value) -> Option<Value> {
    match line["call"].as_str()? {
        "check" => {
            let lists = Lists::read(&line["request"])?;
            Some(either(client.check(&lists.request()?).await.map(|decision| json_of(&decision))))
        }
        "check_batch" => {
            let lists: Vec<Lists> = line["requests"].as_array()?.iter().map(Lists::read).collect::<Option<_>>()?;
            let requests: Vec<Request<'_>> = lists.iter().map(Lists::request).collect::<Option<_>>()?;
            let results = client.check_batch(&requests).await;
            let results: Vec<Value> =
                results.into_iter().map(|result| either(result.map(|decision| json_of(&decision)))).collect();
            Some(json!({ "results": results }))
        }
        "reserve" => {
            let lists = Lists::read(&line["request"])?;
            Some(either(client.reserve(&lists.request()?).await.map(|(decision, reservation)| {
                let ttl = reservation.as_ref().and_then(RemoteReservation::ttl);
                let receipt = reservation.as_ref().map(RemoteReservation::receipt);
                with_receipt(json_of(&decision), "reservation", receipt, ttl.map(|ttl| ttl.millis_ceil()))
            })))
        }
        "acquire_slot" => {
            let lists = Lists::read(&line["request"])?;
            Some(either(client.acquire_slot(&lists.request()?).await.map(|(decision, guard)| {
                let answer = with_receipt(json_of(&decision), "slot", guard.as_ref().map(SlotGuard::receipt), None);
                slots.extend(guard.map(|guard| (guard.receipt().to_owned(), guard)));
                answer
            })))
        }
        "usage" => {
            let lists = Lists::read(&line["client"])?;
            Some(result(client.usage(&lists.request()?).await))
        }
        "gcra" => gcra::steps(line),
        "retry" => retry::play(line),
        call => receipts(client, slots, call, line).await,
    }
}

/// The calls about a receipt.
async fn receipts(client: &Client, slots: &mut HeldSlots, call: &str, line: &Value) -> Option<Value> {
    let costs: Vec<(&str, u64)> = line["costs"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(meter, amount)| Some((meter.as_str(), amount.as_u64()?)))
        .collect::<Option<_>>()?;
    match call {
        "extend" => {
            let mut reservation = RemoteReservation::from_receipt(line["reservation"].as_str()?);
            let extended = client.extend(&mut reservation, &costs).await;
            Some(result(extended.map(|decision| {
                let receipt = decision.allowed.then(|| reservation.receipt());
                with_receipt(json_of(&decision), "reservation", receipt, None)
            })))
        }
        "settle" => {
            let reservation = RemoteReservation::from_receipt(line["reservation"].as_str()?);
            let settled = client.settle(&reservation, &costs).await;
            Some(result(settled.map(|RemoteSettlement { settled, refunded, extended, .. }| {
                json!({ "settled": settled, "refunded": refunded, "extended": extended })
            })))
        }
        "release_slot" => match slots.remove(line["slot"].as_str()?) {
            Some(guard) => Some(result(guard.release().await.map(|released| json!({ "released": released })))),
            None => Some(json!({ "released": false })),
        },
        _ => None,
    }
}

fn either(result: Result<Value, RequestRejected>) -> Value {
    result.unwrap_or_else(|rejected| json!({ "error": rejected.code }))
}

fn result(result: Result<Value, CallError>) -> Value {
    result.unwrap_or_else(|error| match error {
        CallError::Rejected(rejected) => json!({ "error": rejected.code }),
        CallError::Outage(_) => json!({ "error": "unreachable" }),
    })
}

fn with_receipt(mut answer: Value, name: &str, receipt: Option<&str>, ttl_ms: Option<u64>) -> Value {
    if let (Some(object), Some(receipt)) = (answer.as_object_mut(), receipt) {
        object.insert(name.to_owned(), Value::from(receipt));
        object.extend(ttl_ms.map(|ttl| ("ttl_ms".to_owned(), Value::from(ttl))));
    }
    answer
}

/// As the server's JSON spells it.
fn json_of(decision: &RemoteDecision) -> Value {
    let mut object = json!({
        "allowed": decision.allowed,
        "limit": decision.limit,
        "remaining": decision.remaining,
        "reset_at": decision.reset_at,
        "retry_after": decision.retry_after.map(|wait| wait.secs_ceil()),
        "retry_after_ms": decision.retry_after.map(|wait| wait.millis_ceil()),
        "rule": decision.rule,
        "mode": decision.mode,
        "generation": decision.generation,
    });
    if decision.never {
        object["never"] = Value::Bool(true);
    }
    if let Some(code) = &decision.error_code {
        object["error_code"] = Value::from(code.as_str());
    }
    if let Some(violated) = &decision.violated_rule {
        let (name, scope) = (&violated.name, &violated.scope);
        let window = violated.window_seconds;
        object["violated_rule"] =
            json!({ "name": name, "scope": scope, "limit": violated.limit, "window_seconds": window });
    }
    object
}

/// The texts and lists that a request borrows.
struct Lists<'a> {
    object: &'a Map<String, Value>,
    custom: Vec<(&'a str, &'a str)>,
    costs: Vec<(&'a str, u64)>,
}

impl<'a> Lists<'a> {
    fn read(request: &'a Value) -> Option<Lists<'a>> {
        let object = request.as_object()?;
        let members = |name: &str| object.get(name).and_then(Value::as_object).into_iter().flatten();
        let custom = members("attributes").map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let costs = members("costs").map(|(meter, amount)| Some((meter.as_str(), amount.as_u64()?)));
        Some(Lists { object, custom: custom.collect::<Option<_>>()?, costs: costs.collect::<Option<_>>()? })
    }

    fn request(&'a self) -> Option<Request<'a>> {
        let mut request = Request::new().with_custom(&self.custom).with_costs(&self.costs);
        for (name, value) in self.object {
            match (Attribute::from_name(name), name.as_str()) {
                (Some(attribute), _) => request.set(attribute, value.as_str()?),
                (None, "namespace") => request = request.in_namespace(value.as_str()?),
                (None, "cost") => request = request.cost(value.as_u64()?),
                (None, "peek") if value == &Value::Bool(true) => request = request.peek(),
                _ => {}
            }
        }
        Some(request)
    }
}
