//! The measurement of the promise: 200 streams at once against one budget. Prints by how much it was overrun, and by how
//! much counting after the fact would have.

use tokio::task::JoinSet;

use crate::app::App;
use crate::llm::{budgets, routes, send, stream, text_bytes};
use crate::rig::{Rig, until, within};

const BUDGET: u64 = 2_000_000;
const STREAMS: u64 = 200;
const STEP: u64 = 256;
/// Tokens of one event; models send fewer, which only makes more of them.
const EVENT_TOKENS: u64 = 64;
const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Say hello."}]}"#;

/// Tokens that a stream would have if nothing ended it: 8,000 to 16,000.
fn wanted(stream: u64) -> u64 {
    (8_000 + stream * 8_000 / STREAMS) / EVENT_TOKENS * EVENT_TOKENS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_do_not_overrun_their_budget() {
    let app = App::start().await;
    let rig = Rig::routed(&budgets(BUDGET), &routes(&app, &format!("{{ step: {STEP} }}")));
    let mut streams = JoinSet::new();
    for index in 0..STREAMS {
        let mut caller = rig.connect().await;
        streams.spawn(async move {
            let (pieces, tokens) = (wanted(index) / EVENT_TOKENS, wanted(index));
            let fields =
                format!("X-Pieces: {pieces}\r\nX-Pause: 0\r\nX-Bytes: {}\r\nX-Tokens: {tokens}\r\n", EVENT_TOKENS * 4);
            send(&mut caller, "/v1/chat/completions", &fields, BODY).await;
            let text = stream(&mut caller).await;
            let ended = text.contains("\"finish_reason\":\"length\"");
            assert_ne!(ended, text.contains("\"finish_reason\":\"stop\""), "one end, in form");
            assert!(text.ends_with("data: [DONE]\n\n"));
            (text_bytes(&text) as u64 / 4, ended)
        });
    }
    let mut begun = 0;
    until(async || {
        begun += app.seen().len() as u64;
        begun == STREAMS
    })
    .await;
    app.released.send_replace(1);
    let all = within(streams.join_all()).await;
    let passed: u64 = all.iter().map(|(tokens, _)| tokens).sum();
    let ended = all.iter().filter(|(_, ended)| *ended).count();
    // Counted after the fact, every stream was admitted while the budget was not spent, and runs to its end.
    let counted_after: u64 = (0..STREAMS).map(wanted).sum();
    let row = |name: &str, tokens: u64| {
        let over = tokens.saturating_sub(BUDGET);
        println!("{name:<24}{tokens:>12}{BUDGET:>12}{over:>10}{:>8.2} %", over as f64 * 100.0 / BUDGET as f64);
    };
    println!("{:<24}{:>12}{:>12}{:>10}{:>10}", "tokens", "passed on", "budget", "overrun", "");
    row("reserved step by step", passed);
    row("counted after the fact", counted_after);
    println!("{ended} of {STREAMS} streams ended early; unused: {}", BUDGET.saturating_sub(passed));
    assert!(ended > 0, "the budget was spent");
    assert!(passed <= BUDGET + BUDGET / 200, "an overrun of at most 0.5 %: {passed}");
    assert!(passed <= BUDGET, "every token was reserved before it was passed on: {passed}");
    let unused = ended as u64 * (STEP + EVENT_TOKENS);
    assert!(passed + unused >= BUDGET, "at most a step of each stream that ended is left: {passed}");
}
