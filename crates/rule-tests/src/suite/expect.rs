//! The expectations of a step, and their comparison with decisions.

use std::collections::BTreeMap;

use tollgate_core::{Span, Wait};
use tollgate_engine::{Decision, Verdict};
use tollgate_rules::duration;
use tollgate_rules::problem::Problems;
use tollgate_rules::yaml::YamlKind;
use tollgate_ruleset::RuleSet;

use super::field::SuiteField;

/// Fields of a step that state expectations.
pub const EXPECT_FIELDS: [&str; 9] =
    ["expect", "allowed", "rule", "applies", "limit", "remaining", "retry_after", "reset_after", "delay"];

/// Expectations of a step; absent ones are not checked.
#[derive(Debug, Default)]
pub struct Expectation {
    /// The verdict of every request of the step.
    verdict: Option<ExpectedVerdict>,
    /// Number of allowed requests of the step.
    pub allowed: Option<u64>,
    /// The deciding rule; `Some(None)`: none.
    rule: Option<Option<String>>,
    /// All applicable rules, sorted.
    applies: Option<Vec<String>>,
    limit: Option<u64>,
    remaining: Option<u64>,
    /// Remaining units by rule.
    remaining_at: BTreeMap<String, u64>,
    retry_after: Option<Wait>,
    reset_after: Option<Span>,
    delay: Option<Span>,
}

/// The verdict of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVerdict {
    Allow,
    Deny,
    Invalid,
}

impl ExpectedVerdict {
    /// The verdict of a decision.
    pub fn of(decision: &Decision) -> ExpectedVerdict {
        match decision.verdict {
            Verdict::Allow => ExpectedVerdict::Allow,
            Verdict::Deny => ExpectedVerdict::Deny,
            Verdict::Invalid(_) => ExpectedVerdict::Invalid,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            ExpectedVerdict::Allow => "allow",
            ExpectedVerdict::Deny => "deny",
            ExpectedVerdict::Invalid => "invalid",
        }
    }
}

/// One difference from the expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub expected: String,
    pub got: String,
}

impl Expectation {
    /// Reads one field; `None` if it is not an expectation.
    pub fn read_field(
        &mut self,
        name: &str,
        value: &SuiteField<'_>,
        rules: &RuleSet,
        namespace: &str,
        problems: &mut Problems,
    ) -> Option<()> {
        const VERDICTS: [(&str, ExpectedVerdict); 3] =
            [("allow", ExpectedVerdict::Allow), ("deny", ExpectedVerdict::Deny), ("invalid", ExpectedVerdict::Invalid)];
        let names = RuleNames { rules, namespace };
        match name {
            "expect" => self.verdict = value.choice(&VERDICTS, problems),
            "allowed" => self.allowed = value.integer(0..=u64::MAX, problems),
            "rule" => self.rule = names.read_or_none(value, problems),
            "applies" => {
                let mut applies: Vec<String> =
                    value.items(problems).iter().filter_map(|item| names.read(item, problems)).collect();
                applies.sort_unstable();
                self.applies = Some(applies);
            }
            "limit" => self.limit = value.integer(0..=u64::MAX, problems),
            "remaining" if matches!(value.node.kind, YamlKind::Map(_)) => {
                for (key, value) in value.entries(problems) {
                    names.check(&key.text, &value, problems);
                    let number = value.integer(0..=u64::MAX, problems).unwrap_or(0);
                    self.remaining_at.insert(key.text.clone(), number);
                }
            }
            "remaining" => self.remaining = value.integer(0..=u64::MAX, problems),
            "retry_after" => {
                let never = matches!(&value.node.kind, YamlKind::Scalar { text, .. } if text == "never");
                self.retry_after = if never { Some(Wait::Never) } else { value.span(problems).map(waiting) };
            }
            "reset_after" => self.reset_after = value.span(problems),
            "delay" => self.delay = value.span(problems),
            _ => return None,
        }
        Some(())
    }

    /// Checks the expectations as a whole.
    pub fn check(&self, step: &SuiteField<'_>, times: u64, problems: &mut Problems) {
        match (self.verdict, self.allowed) {
            (None, None) if is_silent(step) => {
                let help = "add `expect: allow`, `expect: deny`, or `allowed: N` for N of several";
                problems.push(step.problem("missing-field", format!("{} expects nothing", step.path)).help(help));
            }
            (Some(_), Some(_)) => {
                let help = "`expect` is about every request of the step, `allowed` about how many pass: keep one";
                let problem = step.problem("conflict", format!("{} has both `expect` and `allowed`", step.path));
                problems.push(problem.help(help));
            }
            (_, Some(allowed)) if allowed > times => {
                let message = format!("{} expects {allowed} of {times} requests to pass", step.path);
                problems.push(step.problem("out-of-range", message).help("say how many there are: `times: N`"));
            }
            _ => {}
        }
    }

    /// True if a denial is expected.
    pub fn denies(&self) -> bool {
        self.verdict == Some(ExpectedVerdict::Deny)
    }

    /// The expected verdict of every request.
    pub fn verdict(&self) -> Option<ExpectedVerdict> {
        self.verdict
    }

    /// The differences of the last decision of a step.
    pub fn mismatches(&self, decision: &Decision) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let deciding = decision.deciding_rule().map(|(rule, _)| rule.name.clone());
        let none = || "none".to_owned();
        if let Some(wanted) = self.rule.as_ref().filter(|wanted| **wanted != deciding) {
            let shown = |name: &Option<String>| format!("rule {}", name.clone().unwrap_or_else(none));
            found.push(Mismatch { expected: shown(wanted), got: shown(&deciding) });
        }
        if let Some(wanted) = &self.applies {
            let mut applied: Vec<String> = rulings(decision).map(|(name, _)| name).collect();
            applied.sort_unstable();
            if *wanted != applied {
                let shown = |names: &[String]| format!("applies [{}]", names.join(", "));
                found.push(Mismatch { expected: shown(wanted), got: shown(&applied) });
            }
        }
        let number = |number: u64| number.to_string();
        let span = |span: Span| duration::display(span.nanos());
        compare(&mut found, "limit", self.limit, decision.limit(), number);
        compare(&mut found, "remaining", self.remaining, decision.remaining(), number);
        for (rule, wanted) in &self.remaining_at {
            let got = rulings(decision).find(|(name, _)| name == rule).and_then(|(_, remaining)| remaining);
            compare(&mut found, &format!("remaining at {rule}"), Some(*wanted), got, number);
        }
        compare(&mut found, "retry_after", self.retry_after, Some(decision.retry_after()), wait_text);
        let reset_after = decision.deciding().and_then(|ruling| ruling.outcome).map(|outcome| outcome.reset_after);
        compare(&mut found, "reset_after", self.reset_after, reset_after, span);
        compare(&mut found, "delay", self.delay, Some(decision.delay()), span);
        found
    }
}

fn compare<T: PartialEq + Copy>(
    found: &mut Vec<Mismatch>,
    what: &str,
    wanted: Option<T>,
    got: Option<T>,
    text: impl Fn(T) -> String,
) {
    if let Some(wanted) = wanted.filter(|wanted| got != Some(*wanted)) {
        let got = got.map_or_else(|| "none".to_owned(), &text);
        found.push(Mismatch { expected: format!("{what} {}", text(wanted)), got: format!("{what} {got}") });
    }
}

/// True for a step without expectations, not even invalid ones.
fn is_silent(step: &SuiteField<'_>) -> bool {
    matches!(step.node.kind, YamlKind::Map(_)) && ["expect", "allowed"].iter().all(|name| step.node.get(name).is_none())
}

fn waiting(span: Span) -> Wait {
    if span.is_zero() { Wait::None } else { Wait::For(span) }
}

fn wait_text(wait: Wait) -> String {
    wait.span().map_or_else(|| "never".to_owned(), |span| duration::display(span.nanos()))
}

/// Names of the rules that applied, with their remaining units.
fn rulings(decision: &Decision) -> impl Iterator<Item = (String, Option<u64>)> + '_ {
    decision.rulings().iter().map(|ruling| {
        let name = decision.rule(ruling).map(|rule| rule.name.clone()).unwrap_or_default();
        (name, ruling.outcome.map(|outcome| outcome.remaining))
    })
}

/// The rules that a table may name.
struct RuleNames<'a> {
    rules: &'a RuleSet,
    namespace: &'a str,
}

impl RuleNames<'_> {
    fn read(&self, value: &SuiteField<'_>, problems: &mut Problems) -> Option<String> {
        let name = value.text(problems)?;
        self.check(name, value, problems);
        Some(name.to_owned())
    }

    fn read_or_none(&self, value: &SuiteField<'_>, problems: &mut Problems) -> Option<Option<String>> {
        match value.text(problems)? {
            "none" => Some(None),
            _ => self.read(value, problems).map(Some),
        }
    }

    fn check(&self, name: &str, value: &SuiteField<'_>, problems: &mut Problems) {
        let known = self.rules.rules().iter().filter(|rule| rule.namespace == self.namespace);
        let names: Vec<&str> = known.map(|rule| rule.name.as_str()).collect();
        if !names.contains(&name) {
            let message = format!("there is no rule `{name}`");
            problems.push(value.problem("unknown-rule", message).help(super::field::suggest(name, &names)));
        }
    }
}
