//! A decision for people and for programs.

use serde_json::{Value, json};
use tollgate_core::{Outcome, Span, Wait};
use tollgate_engine::{Decision, Ruling};
use tollgate_rules::ruleset::Rule;

use super::{Palette, Table, for_people, visible};

/// What was decided, in one line: `denied by per-key: retry after 1s`.
pub fn headline(decision: &Decision, palette: Palette) -> String {
    let verdict = if decision.is_allowed() { palette.good("allowed") } else { palette.bad("denied") };
    let Some((rule, outcome)) = decision.deciding_rule() else {
        let why = decision.reason().map_or("no rule decided", |reason| reason.text());
        return format!("{verdict}: {why}");
    };
    let detail = match (decision.retry_after(), outcome) {
        (Wait::None, Some(outcome)) => room(outcome),
        (Wait::None, None) => "no limit".to_owned(),
        (wait, _) => wait_text(wait),
    };
    let delay = match decision.delay() {
        Span::ZERO => String::new(),
        delay => format!(", after waiting {}", for_people(delay)),
    };
    format!("{verdict} by {}: {detail}{delay}", palette.strong(&rule.name))
}

/// What one rule said, in one line: `per-key allowed (4 of 5 left)`.
pub fn ruling_text(decision: &Decision, ruling: &Ruling) -> String {
    let name = decision.rule(ruling).map_or("?", |rule| rule.name.as_str());
    let said = match &ruling.outcome {
        None => "sets no limit".to_owned(),
        Some(outcome) if outcome.allowed => format!("allowed ({})", room(outcome)),
        Some(outcome) => format!("denied ({}; {})", room(outcome), wait_text(outcome.wait)),
    };
    let shadow = if ruling.enforced { "" } else { ", only in shadow" };
    visible(&format!("{name} {said}{shadow}"))
}

fn room(outcome: &Outcome) -> String {
    format!("{} of {} left", outcome.remaining, outcome.limit)
}

fn wait_text(wait: Wait) -> String {
    match wait {
        Wait::None => "now".to_owned(),
        Wait::For(span) => format!("retry after {}", for_people(span)),
        Wait::Never => "can never pass, the cost exceeds the limit".to_owned(),
    }
}

/// The whole decision: the headline, the numbers of the deciding rule, every rule's outcome.
pub fn decision_text(decision: &Decision, palette: Palette) -> String {
    let mut text = headline(decision, palette) + "\n";
    if !decision.rulings().is_empty() {
        text.push('\n');
        text.push_str(&rulings_table(decision, palette).to_string());
    }
    let facts = format!("mode {}, rules generation {}", decision.mode.name(), decision.generation());
    text.push_str(&format!("\n{}\n", palette.faint(&facts)));
    text
}

fn rulings_table(decision: &Decision, palette: Palette) -> Table {
    let heading = ["", "RULE", "OUTCOME", "LIMIT", "REMAINING", "RETRY AFTER", "RESET AFTER", ""];
    let mut table = Table::new(heading, |text| palette.faint(text));
    let deciding = decision.deciding().map(|ruling| ruling.rule);
    for ruling in decision.rulings() {
        let plain = |text: String| (text.clone(), visible(&text));
        let number = |number: Option<u64>| plain(number.map_or_else(|| "-".to_owned(), |number| number.to_string()));
        let outcome = ruling.outcome.as_ref();
        let retry = match outcome.map(|outcome| outcome.wait) {
            None | Some(Wait::None) => "-".to_owned(),
            Some(Wait::For(span)) => for_people(span),
            Some(Wait::Never) => "never".to_owned(),
        };
        let verdict = match (outcome, ruling.refused()) {
            (_, true) => ("denied".to_owned(), palette.bad("denied")),
            (None, _) => ("unlimited".to_owned(), palette.good("unlimited")),
            (Some(_), false) => ("allowed".to_owned(), palette.good("allowed")),
        };
        let mark = if deciding == Some(ruling.rule) { ">" } else { " " };
        let delay = outcome.map(|outcome| outcome.delay).filter(|delay| !delay.is_zero());
        let shadow = (!ruling.enforced).then(|| "shadow: does not deny".to_owned());
        let note =
            shadow.or_else(|| delay.map(|delay| format!("queued for {}", for_people(delay)))).unwrap_or_default();
        table.row([
            (mark.to_owned(), palette.strong(mark)),
            plain(decision.rule(ruling).map(label).unwrap_or_default()),
            verdict,
            number(outcome.map(|outcome| outcome.limit)),
            number(outcome.map(|outcome| outcome.remaining)),
            plain(retry),
            plain(outcome.map_or_else(|| "-".to_owned(), |outcome| for_people(outcome.reset_after))),
            (note.clone(), palette.warn(&note)),
        ]);
    }
    table
}

/// A rule's name; one that was made up for it is no help without the place of the rule.
fn label(rule: &Rule) -> String {
    match rule.spec.name {
        Some(_) => rule.name.clone(),
        None => format!("{} (line {})", rule.name, rule.spec.at.line),
    }
}

/// The decision with the fields of the HTTP interface.
pub fn decision_json(decision: &Decision) -> Value {
    let deciding = decision.deciding_rule();
    let reset_after = deciding.and_then(|(_, outcome)| outcome).map(|outcome| outcome.reset_after);
    let wait = Waiting::of(decision.retry_after());
    let rules: Vec<Value> = decision.rulings().iter().map(|ruling| ruling_json(decision, ruling)).collect();
    json!({
        "allowed": decision.is_allowed(),
        "limit": decision.limit(),
        "remaining": decision.remaining(),
        "reset_at": reset_after.map(|span| decision.now.after(span).secs_ceil()),
        "retry_after": wait.secs,
        "retry_after_ms": wait.millis,
        "never": wait.never,
        "delay_ms": decision.delay().millis_ceil(),
        "rule": deciding.map(|(rule, _)| &rule.name),
        "mode": decision.mode.name(),
        "generation": decision.generation(),
        "reason": decision.reason().map(|reason| reason.text()),
        "rules": rules,
    })
}

fn ruling_json(decision: &Decision, ruling: &Ruling) -> Value {
    let rule = decision.rule(ruling);
    let outcome = ruling.outcome.as_ref();
    let wait = Waiting::of(outcome.map_or(Wait::None, |outcome| outcome.wait));
    json!({
        "rule": rule.map(|rule| &rule.name),
        "resource": rule.map(|rule| &rule.resource),
        "enforced": ruling.enforced,
        "mode": ruling.mode.name(),
        "allowed": !ruling.refused(),
        "limit": outcome.map(|outcome| outcome.limit),
        "remaining": outcome.map(|outcome| outcome.remaining),
        "used": outcome.map(|outcome| outcome.used),
        "reset_at": outcome.map(|outcome| decision.now.after(outcome.reset_after).secs_ceil()),
        "retry_after": wait.secs,
        "retry_after_ms": wait.millis,
        "never": wait.never,
        "delay_ms": outcome.map(|outcome| outcome.delay.millis_ceil()),
    })
}

/// A wait in the units of the interface: null when there is none, and when none would help.
struct Waiting {
    secs: Option<u64>,
    millis: Option<u64>,
    never: bool,
}

impl Waiting {
    fn of(wait: Wait) -> Waiting {
        let span = if let Wait::For(span) = wait { Some(span) } else { None };
        Waiting { secs: span.map(Span::secs_ceil), millis: span.map(Span::millis_ceil), never: wait == Wait::Never }
    }
}
