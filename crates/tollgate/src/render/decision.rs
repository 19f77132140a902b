//! A decision for people and for programs.

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
