//! The measurement of the promise: 200 callers at once against one budget of tokens, each with one stream after the other
//! until the budget is spent. By how much it is overrun, and by how much when tokens are counted after the fact.
//! `script/llm-overrun` does it with a larger budget than the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tollgate_config::StoreSettings;
use tollgate_lab::redis::RedisServer;

use crate::app::App;
use crate::llm::{budgets, send};
use crate::model::LETTER;
use crate::rig::{Caller, PATIENCE, Rig, until};

const CALLERS: usize = 200;
const STEP: u64 = 256;
/// Tokens of one event. Most models send fewer, which only makes more events of the same text.
const EVENT_TOKENS: u64 = 64;
/// The budget of the test.
const BUDGET: u64 = 400_000;
/// Another budget, for a longer run.
const BUDGET_VARIABLE: &str = "TOLLGATE_LLM_BUDGET";

/// One way to count.
struct Case {
    name: &'static str,
    /// The `cost` of the route.
    cost: String,
    /// Bytes of text that the model makes of a token; the gateway estimates four if it is not told otherwise.
    bytes_of_token: u64,
    api: Api,
    gateways: usize,
    /// The largest overrun that the counting allows, as a share of the budget.
    overrun_max: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    /// Reports at the end of a stream.
    Chat,
    /// Reports in every event.
    Gemini,
}

impl Api {
    fn path(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Gemini => "/v1beta/models/m:streamGenerateContent?alt=sse",
        }
    }

    fn body(self) -> &'static str {
        match self {
            Api::Chat => r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Say hello."}]}"#,
            Api::Gemini => r#"{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}"#,
        }
    }

    /// What the last event of a stream says that its budget ended.
    fn ended(self) -> &'static str {
        match self {
            Api::Chat => "\"finish_reason\":\"length\"",
            Api::Gemini => "\"finishReason\":\"MAX_TOKENS\"",
        }
    }
}

fn cases() -> Vec<Case> {
    let exact = || Case {
        name: "step by step, in memory",
        cost: format!("{{ llm: {{ reserve: {STEP}, step: {STEP} }} }}"),
        bytes_of_token: 4,
        api: Api::Chat,
        gateways: 1,
        overrun_max: 0.0,
    };
    let told = format!("{{ llm: {{ reserve: {STEP}, step: {STEP}, bytes_per_token: 3 }} }}");
    // A quarter of what streams in flight have generated is not estimated, and not reported yet.
    let longest = CALLERS as f64 * 3.0 / 1_000.0;
    vec![
        exact(),
        Case { name: "step by step, two gateways on Redis", gateways: 2, ..exact() },
        Case {
            name: "step by step, tokens of 3 bytes estimated as 4",
            bytes_of_token: 3,
            overrun_max: longest / 4.0,
            ..exact()
        },
        Case {
            name: "the same, from a provider that reports in every event",
            bytes_of_token: 3,
            api: Api::Gemini,
            ..exact()
        },
        Case { name: "the same, with `bytes_per_token: 3`", bytes_of_token: 3, cost: told, ..exact() },
        Case {
            name: "counted after the fact, in memory",
            cost: "{ output_tokens: { response: { header: x-usage }, estimate: 1 } }".to_owned(),
            overrun_max: longest,
            ..exact()
        },
    ]
}

/// What became of one run.
#[derive(Debug, Default)]
struct Figures {
    streams: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    /// Tokens of the text that callers got, as the model makes them.
    passed: AtomicU64,
}

impl Figures {
    fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    fn row(&self, name: &str, budget: u64) -> String {
        let over = self.passed().saturating_sub(budget);
        let unused = budget.saturating_sub(self.passed());
        let share = |tokens: u64| format!("{:.2} %", tokens as f64 * 100.0 / budget as f64);
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            "| {name} | {} | {} | {} | {} | {over} | {} | {} |",
            of(&self.streams),
            of(&self.ended),
            of(&self.refused),
            self.passed(),
            share(over),
            share(unused)
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_do_not_overrun_their_budget() {
    let budget = std::env::var(BUDGET_VARIABLE).map_or(BUDGET, |budget| budget.parse().expect("a number of tokens"));
    println!("| counted | streams | ended early | refused | tokens passed on | overrun | of the budget | unused |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for case in cases() {
        let figures = case.run(budget).await;
        println!("{}", figures.row(case.name, budget));
        let most = budget as f64 * (1.0 + case.overrun_max);
        assert!(figures.passed() as f64 <= most, "{}: {figures:?}", case.name);
        let is_stepwise = case.cost.contains("llm");
        let spent = if is_stepwise { budget - CALLERS as u64 * (STEP + EVENT_TOKENS) } else { budget };
        assert!(figures.passed() >= spent, "the budget was spent, but for a step of each: {}: {figures:?}", case.name);
        assert_eq!(figures.ended.load(Ordering::Relaxed) > 0, is_stepwise, "{}: {figures:?}", case.name);
    }
}

impl Case {
    async fn run(&self, budget: u64) -> Figures {
        let app = App::start().await;
        let redis = (self.gateways > 1).then(RedisServer::start);
        let mut rigs = Vec::new();
        for _ in 0..self.gateways {
            rigs.push(Arc::new(self.gateway(&app, redis.as_ref(), budget).await));
        }
        let figures = Arc::new(Figures::default());
        let mut callers = JoinSet::new();
        for index in 0..CALLERS {
            let (rig, figures) = (rigs[index % rigs.len()].clone(), figures.clone());
            callers.spawn(calls(rig, self.api, self.bytes_of_token, budget, index as u64, figures));
        }
        let mut begun = 0;
        until(async || {
            begun += app.seen().len();
            begun >= CALLERS
        })
        .await;
        app.released.send_replace(1); // all of them at once
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
            app.seen();
        }
        for rig in &rigs {
            let metrics = rig.metrics().await;
            let fallen = metrics.lines().filter(|line| line.starts_with("tollgate_fallback_decisions_total{"));
            assert!(
                fallen.clone().all(|line| line.ends_with(" 0")),
                "the store decided: {:?}",
                fallen.collect::<Vec<_>>()
            );
        }
        Arc::into_inner(figures).unwrap()
    }

    async fn gateway(&self, app: &App, redis: Option<&RedisServer>, budget: u64) -> Rig {
        let (url, cost) = (app.url(), &self.cost);
        let routes = format!(
            "upstreams: {{ api: {{ servers: {url}, ejection: {{ after: 0 }}, timeouts: {{ connect: 10m, first_byte: 10m, idle: 10m }} }} }}\n\
             routes: [{{ upstream: api, cost: {cost} }}]\n"
        );
        let store = redis.map(|redis| {
            let place = redis.url().parse().expect("a URL");
            StoreSettings { place, timeout: PATIENCE, decision_deadline: PATIENCE, ..StoreSettings::default() }
        });
        Rig::open(&budgets(budget), |config, dir| {
            let path = dir.join("routes.yaml");
            std::fs::write(&path, routes).unwrap();
            config.gateway.routes = Some(path);
            config.store = store.unwrap_or_else(|| config.store.clone());
        })
        .await
    }
}

/// One caller: a stream, and the next one, until the budget is spent.
async fn calls(rig: Arc<Rig>, api: Api, bytes_of_token: u64, budget: u64, index: u64, figures: Arc<Figures>) {
    let mut caller = rig.connect().await;
    let mut random = index;
    loop {
        // From a thousandth of the budget to three of them, in whole events.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = (budget / 1_000 + (random >> 33) % (budget / 500)) / EVENT_TOKENS * EVENT_TOKENS;
        let (pieces, bytes) = (wanted / EVENT_TOKENS, EVENT_TOKENS * bytes_of_token);
        let fields = format!("X-Pieces: {pieces}\r\nX-Pause: 0\r\nX-Bytes: {bytes}\r\nX-Tokens: {wanted}\r\n");
        send(&mut caller, api.path(), &fields, api.body()).await;
        let response = whole_response(&mut caller).await;
        if response.starts_with(b"HTTP/1.1 429 ") {
            return Figures::add(&figures.refused, 1);
        }
        let text = String::from_utf8(response).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        let (_, streamed) = text.split_once("\r\n\r\n").unwrap();
        let letters = streamed.matches(LETTER).count() as u64;
        assert_eq!(letters % bytes, 0, "whole events");
        Figures::add(&figures.streams, 1);
        Figures::add(&figures.passed, letters / bytes * EVENT_TOKENS);
        if text.contains(api.ended()) {
            return Figures::add(&figures.ended, 1);
        }
        assert_eq!(letters / bytes, pieces, "a stream that was not ended is whole");
    }
}

/// A response, with its framing: the only one that the connection carries, so that it ends with what is read.
async fn whole_response(caller: &mut Caller) -> Vec<u8> {
    let mut read = Vec::new();
    while !is_whole(&read) {
        assert_ne!(caller.stream.read_buf(&mut read).await.unwrap(), 0, "the connection ended");
    }
    read
}

fn is_whole(read: &[u8]) -> bool {
    if read.ends_with(b"\r\n0\r\n\r\n") {
        return true;
    }
    let Some(end) = read.windows(4).take(4_096).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(str::to_owned);
    length.is_some_and(|length| read.len() >= end + 4 + length.parse::<usize>().unwrap())
}
