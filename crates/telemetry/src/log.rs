//! The process log: one line per event, for people or as JSON, through [`Lines`] so that a slow reader never blocks it.
//!
//! Lines are formatted here rather than by `tracing-subscriber`, whose formats do not escape everything: a caller could
//! forge lines. Targets and spans are omitted; an event has all it needs in its fields. Client keys are never logged.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;

use tollgate_core::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::escape::{EscapingWriter, json_string};
use super::lines::Lines;
use super::timestamp::rfc3339;

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `2026-01-31T23:59:59.999Z INFO rules loaded generation=2`.
    People(Colours),
    /// `{"time":"2026-01-31T23:59:59.999Z","level":"info","message":"rules loaded","generation":2}`.
    Json,
}

/// Whether levels are coloured: for a terminal, and for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// The server's log.
#[derive(Clone)]
pub struct LogConfig {
    /// The format of lines.
    pub format: Format,
    /// The least severe level that is logged.
    pub level: Level,
    /// Tells the time of an event.
    pub clock: Arc<dyn Clock>,
}

impl LogConfig {
    /// Makes `lines` the log of this process. Fails if it has one already.
    pub fn install(self, lines: Lines) -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
        tracing::subscriber::set_global_default(self.subscriber(lines))
    }

    /// The subscriber, for tests that install it themselves.
    pub fn subscriber(self, lines: Lines) -> impl Subscriber + Send + Sync {
        let builder = tracing_subscriber::fmt().with_max_level(self.level).with_writer(LinesMakeWriter(lines));
        builder.event_format(LineFormat { format: self.format, clock: self.clock }).finish()
    }
}

impl fmt::Debug for LogConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogConfig").field("format", &self.format).field("level", &self.level).finish_non_exhaustive()
    }
}

struct LinesMakeWriter(Lines);

impl<'a> MakeWriter<'a> for LinesMakeWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(&self.0)
    }
}

/// Receives each event in one write, as the subscriber writes them.
struct LineWriter<'a>(&'a Lines);

impl io::Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct LineFormat {
    format: Format,
    clock: Arc<dyn Clock>,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut recorded = EventFields { format: self.format, message: String::new(), fields: String::new() };
        event.record(&mut recorded);
        let mut time = String::with_capacity(24);
        rfc3339(&mut time, self.clock.wall());
        let level = *event.metadata().level();
        let EventFields { message, fields, .. } = recorded;
        match self.format {
            Format::People(Colours::On) => {
                writeln!(writer, "\x1b[2m{time}\x1b[0m {}{level:>5}\x1b[0m {message}{fields}", colour(level))
            }
            Format::People(Colours::Off) => writeln!(writer, "{time} {level:>5} {message}{fields}"),
            Format::Json => {
                let level = level.as_str().to_ascii_lowercase();
                let mut quoted = String::new();
                json_string(&mut quoted, &message);
                writeln!(writer, r#"{{"time":"{time}","level":"{level}","message":{quoted}{fields}}}"#)
            }
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        _ => "\x1b[2m",
    }
}

/// The fields of an event, formatted for the line.
struct EventFields {
    format: Format,
    message: String,
    fields: String,
}

impl EventFields {
    fn text(&mut self, field: &Field, value: &str) {
        match (field.name(), self.format) {
            ("message", Format::Json) => self.message.push_str(value), // quoted later
            ("message", Format::People(_)) => EscapingWriter(&mut self.message).write_str(value).unwrap_or_default(),
            (name, Format::Json) => {
                write!(self.fields, ",\"{name}\":").unwrap_or_default();
                json_string(&mut self.fields, value);
            }
            (name, Format::People(_)) => {
                write!(self.fields, " {name}=").unwrap_or_default();
                match value.is_empty() || value.contains([' ', '"', '=']) {
                    true => json_string(&mut self.fields, value),
                    false => EscapingWriter(&mut self.fields).write_str(value).unwrap_or_default(),
                }
            }
        }
    }

    /// A value that needs neither quotes nor escapes.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        match self.format {
            Format::Json => write!(self.fields, ",\"{}\":{value}", field.name()),
            Format::People(_) => write!(self.fields, " {}={value}", field.name()),
        }
        .unwrap_or_default();
    }
}

impl Visit for EventFields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::{ManualClock, Time};
    use tracing::{debug, error, info};

    use super::super::lines::Sink;
    use super::*;

    fn logged(format: Format, log_events: impl FnOnce()) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let lines = Lines::start(Sink::File(path.clone())).unwrap();
        let clock = Arc::new(ManualClock::at(Time::from_nanos(1_800_000_000_123_456_789)));
        let config = LogConfig { format, level: Level::INFO, clock };
        tracing::subscriber::with_default(config.subscriber(lines.clone()), log_events);
        assert!(lines.flush(Duration::from_secs(10)));
        std::fs::read_to_string(path).unwrap()
    }

    fn log_events() {
        info!(generation = 2, file = "rules.yaml", on = true, "rules loaded");
        debug!("below the level");
        error!(problem = %"two words", nasty = "\u{1b}[31m\r\n\0", "bad\u{1b}\r\n{}", "\0");
    }

    #[test]
    fn untrusted_text_breaks_no_line() {
        let shown = logged(Format::People(Colours::Off), log_events);
        assert_eq!(
            shown,
            "2027-01-15T08:00:00.123Z  INFO rules loaded generation=2 file=rules.yaml on=true\n\
             2027-01-15T08:00:00.123Z ERROR bad\\u{1b}\\r\\n\\u{0} problem=\"two words\" \
             nasty=\\u{1b}[31m\\r\\n\\u{0}\n"
        );
    }

    #[test]
    fn untrusted_text_sets_no_colours() {
        let shown = logged(Format::People(Colours::On), log_events);
        let second = shown.lines().nth(1).unwrap();
        assert!(second.starts_with("\u{1b}[2m2027-01-15T08:00:00.123Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m bad\\u{1b}"));
        assert_eq!(second.matches('\u{1b}').count(), 4);
    }

    #[test]
    fn json_is_one_object_per_line() {
        let shown = logged(Format::Json, log_events);
        assert_eq!(
            shown,
            concat!(
                r#"{"time":"2027-01-15T08:00:00.123Z","level":"info","message":"rules loaded","#,
                r#""generation":2,"file":"rules.yaml","on":true}"#,
                "\n",
                r#"{"time":"2027-01-15T08:00:00.123Z","level":"error","message":"bad\u001b\r\n\u0000","#,
                r#""problem":"two words","nasty":"\u001b[31m\r\n\u0000"}"#,
                "\n"
            )
        );
        assert!(shown.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }
}
