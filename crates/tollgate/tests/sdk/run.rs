//! Runs the scenarios of a table, and reports all that fail.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tollgate_lab::patience::{self, Watch};

use crate::http::{self, Message};
use crate::limiter::Limiter;
use crate::link::LinkMode;
use crate::matching::{differences, text_matches};
use crate::program::Program;
use crate::scenario::{self, REQUEST, RESPONSE, Scenario};

const EVENTUALLY: Duration = Duration::from_secs(40);
/// Lengths of the texts `{letters_N}`: below and above what the server takes as a value, as a path, and as a body.
const LETTERS: [usize; 4] = [4_000, 4_200, 8_300, 100_000];

/// What one test runs.
pub enum Table {
    Client,
    /// A table of lines for the client whose answers are compared as they are.
    Lines(&'static str),
    /// The scenarios of outages without an application.
    Outages,
    /// A framework: the table of applications, and the outages with one.
    Apps(&'static str),
}

pub fn run(language: &'static str, table: &Table) {
    let scenarios: Vec<Scenario> = match table {
        Table::Client => scenario::read("client"),
        Table::Lines(name) => scenario::read(name),
        Table::Outages => scenario::read("outages").into_iter().filter(|scenario| !scenario.is_app).collect(),
        Table::Apps(_) => {
            let outages = scenario::read("outages").into_iter().filter(|scenario| scenario.is_app);
            scenario::read("apps").into_iter().chain(outages).collect()
        }
    };
    let framework = if let Table::Apps(framework) = table { Some(*framework) } else { None };
    let mut runner = Runner { language, framework, limiter: None, program: None };
    let mut failures = String::new();
    for (number, scenario) in scenarios.iter().enumerate().filter(|(_, scenario)| scenario.is_for(framework)) {
        if let Err(problem) = runner.scenario(scenario, number) {
            let _ = writeln!(failures, "  {}\n{problem}", scenario.name);
            (runner.limiter, runner.program) = (None, None); // what is left of it is not the next one's fault
        }
    }
    assert!(failures.is_empty(), "\n\n{language} {}\n{failures}", framework.unwrap_or("client"));
}

/// The processes, kept from one scenario to the next that wants the same.
struct Runner {
    language: &'static str,
    framework: Option<&'static str>,
    program: Option<Program>,
    limiter: Option<Limiter>,
}

/// Names that stand for values in one scenario.
type Names = BTreeMap<String, String>;

impl Runner {
    fn scenario(&mut self, scenario: &Scenario, number: usize) -> Result<(), String> {
        let troubled = scenario.steps.iter().any(|step| !step["server"].is_null());
        self.prepare(scenario, troubled);
        let source = Ipv4Addr::new(127, 77, (number / 200) as u8, (number % 200 + 1) as u8);
        let direct = self.limiter().url();
        let mut names = Names::from([
            ("key".to_owned(), format!("key-{number}")),
            ("source".to_owned(), source.to_string()),
            ("direct".to_owned(), direct),
        ]);
        names.extend(LETTERS.map(|count| (format!("letters_{count}"), "a".repeat(count))));
        let mut result = Ok(());
        for (index, step) in scenario.steps.iter().enumerate() {
            result = self.step(step, &mut names).map_err(|problem| format!("    step {}: {problem}", index + 1));
            if result.is_err() {
                break;
            }
        }
        if troubled {
            (self.limiter, self.program) = (None, None);
        }
        result
    }

    fn prepare(&mut self, scenario: &Scenario, troubled: bool) {
        if troubled || self.limiter.as_ref().is_none_or(|limiter| limiter.settings != scenario.limiter) {
            self.program = None;
            self.limiter = Some(Limiter::start(scenario.limiter.clone()));
        }
        let limiter = self.limiter.as_ref().unwrap();
        limiter.link.forget();
        if self.program.as_ref().is_none_or(|program| program.settings != scenario.program) {
            self.program = None;
            let arguments: Vec<&str> = self.framework.map_or(vec!["client"], |framework| vec!["app", framework]);
            self.program = Some(Program::start(self.language, &arguments, &scenario.program, limiter));
        }
    }

    fn step(&mut self, step: &Value, names: &mut Names) -> Result<(), String> {
        if let Some(wanted) = step["wait_for"].as_object() {
            let (path, times) = (wanted["path"].as_str(), wanted["times"].as_u64().unwrap() as usize);
            let came = patience::try_until(EVENTUALLY, || self.limiter().link.asked(path) >= times);
            came.ok_or_else(|| format!("waited in vain for {times} requests for {path:?}"))?;
        }
        if !step["server"].is_null() {
            self.trouble(&step["server"], names);
        }
        if let Some(most) = step["asked_at_most"].as_u64() {
            let asked = self.limiter().link.asked(None);
            return (asked as u64 <= most)
                .then_some(())
                .ok_or(format!("the server was asked {asked} times, {most} at most"));
        }
        for repetition in 1..=step["times"].as_u64().unwrap_or(1) {
            names.insert("n".to_owned(), repetition.to_string());
            let mut result = self.attempt(step, names);
            if step["eventually"] == true {
                patience::try_until(EVENTUALLY, || {
                    if result.is_err() {
                        result = self.attempt(step, names);
                    }
                    result.is_ok()
                });
            }
            result.map_err(
                |problem| if repetition > 1 { format!("repetition {repetition}: {problem}") } else { problem },
            )?;
        }
        Ok(())
    }

    fn trouble(&mut self, kind: &Value, names: &mut Names) {
        let limiter = self.limiter.as_mut().unwrap();
        match kind.as_str() {
            Some("refuses") => limiter.link.refuse(),
            Some("halted") => limiter.halt(),
            Some("continues") => limiter.go_on(),
            Some("cuts") => limiter.link.set(LinkMode::Cuts),
            Some("passes") => limiter.link.set(LinkMode::Passes),
            Some("restarts") => limiter.restart(),
            _ => {
                let bytes = kind["answers"].as_str().unwrap_or_else(|| panic!("{kind} is no trouble of a server"));
                limiter.link.set(LinkMode::Answers(named(bytes, names).into_bytes()));
            }
        }
    }

    fn attempt(&mut self, step: &Value, names: &mut Names) -> Result<(), String> {
        let expect = renamed(&step["expect"], names);
        if !step["ask"].is_null() {
            let answer = self.limiter().check(&renamed(&step["ask"], names))?;
            return agree(&differences(&expect, &answer, ""), &answer);
        }
        if step["send"].is_null() {
            return Ok(());
        }
        let watch = Watch::start();
        let result =
            if self.framework.is_some() { self.request(step, &expect, names) } else { self.line(step, &expect, names) };
        let within = Duration::from_millis(step["within_ms"].as_u64().unwrap_or(60_000));
        match watch.elapsed() > within {
            true => Err(format!("took {:?}, {within:?} at most", watch.elapsed())),
            false => result,
        }
    }

    fn line(&mut self, step: &Value, expect: &Value, names: &mut Names) -> Result<(), String> {
        let answer = self.program.as_mut().unwrap().ask(&renamed(&step["send"], names))?;
        for (name, pointer) in step["save"].as_object().into_iter().flatten() {
            let value = answer.pointer(pointer.as_str().unwrap()).and_then(Value::as_str);
            names.insert(name.clone(), value.ok_or_else(|| format!("{pointer} is no text in {answer}"))?.to_owned());
        }
        agree(&differences(expect, &answer, ""), &answer)
    }

    fn request(&self, step: &Value, expect: &Value, names: &Names) -> Result<(), String> {
        let mut expect = expect.clone();
        for (member, value) in step["by_framework"][self.framework.unwrap()].as_object().into_iter().flatten() {
            expect[member] = renamed(value, names);
        }
        let send = renamed(&step["send"], names);
        scenario::only(&send, REQUEST);
        scenario::only(&expect, RESPONSE);
        let method = send["method"].as_str().unwrap_or("GET");
        let target = send["target"].as_str().expect("a target");
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n");
        for field in send["headers"].as_array().into_iter().flatten() {
            let _ = write!(bytes, "{}: {}\r\n", field[0].as_str().unwrap(), field[1].as_str().unwrap());
        }
        bytes.push_str(if method == "POST" { "Content-Length: 0\r\n\r\n" } else { "\r\n" });
        let from: IpAddr = send["from"].as_str().unwrap_or(&names["source"]).parse().unwrap();
        let address = self.program.as_ref().unwrap().address();
        let response = http::exchange(address, from, bytes.as_bytes(), method != "HEAD");
        let response = response.map_err(|problem| format!("{method} {target}: {problem}"))?;
        let problems = response_differences(&expect, &response);
        match problems.is_empty() {
            true => Ok(()),
            false => {
                Err(format!("{method} {target}\n{}", indented(&problems, &String::from_utf8_lossy(&response.bytes))))
            }
        }
    }

    fn limiter(&self) -> &Limiter {
        self.limiter.as_ref().expect("prepared")
    }
}

fn response_differences(expect: &Value, response: &Message) -> Vec<String> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut problems = differences(&expect["status"], &response.status().into(), "status");
    if expect["status"].is_null() {
        problems.clear();
    }
    for (name, value) in expect["headers"].as_object().into_iter().flatten() {
        let found = response.field(name);
        if !found.as_deref().is_some_and(|found| text_matches(value.as_str().unwrap(), found, now)) {
            problems.push(format!("{name}: expected {value}, found {found:?}"));
        }
    }
    for name in expect["absent"].as_array().into_iter().flatten() {
        if let Some(found) = response.field(name.as_str().unwrap()) {
            problems.push(format!("{name} should be absent, is {found:?}"));
        }
    }
    let body = response.text();
    if let Some(expected) = expect["body"].as_str().filter(|expected| !text_matches(expected, &body, now)) {
        problems.push(format!("body: expected {expected}"));
    }
    let lists = [("body_has", true), ("body_lacks", false)];
    for (part, wanted) in lists
        .iter()
        .flat_map(|(list, wanted)| expect[list].as_array().into_iter().flatten().map(|part| (part, *wanted)))
    {
        if body.contains(part.as_str().unwrap()) != wanted {
            problems.push(format!("body: {part} should {}be in it", if wanted { "" } else { "not " }));
        }
    }
    problems
}

fn agree(problems: &[String], answer: &Value) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(format!("\n{}", indented(problems, &answer.to_string()))) }
}

fn indented(problems: &[String], found: &str) -> String {
    let lines = problems.iter().map(String::as_str).chain(["found:"]).map(|line| format!("      {line}\n"));
    lines.chain(found.lines().map(|line| format!("        {line}\n"))).collect()
}

/// A value whose texts have their names replaced.
fn renamed(value: &Value, names: &Names) -> Value {
    match value {
        Value::String(text) => Value::String(named(text, names)),
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), renamed(value, names))).collect(),
        other => other.clone(),
    }
}

fn named(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}
