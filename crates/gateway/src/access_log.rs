//! The access log: one line per request, when its response has ended.
//!
//! A line names the client by the digest of the decision log, never by its key, and the path without its query, because
//! queries carry keys. Requests can be sampled; refusals and failures are always written.

use std::fmt::Write;
use std::net::IpAddr;

use tollgate_core::{Secret, Time};
use tollgate_net::masked_network;
use tollgate_service::random;
use tollgate_telemetry::{ClientDigests, Lines, json_string, rfc3339};

/// How requests are logged.
#[derive(Clone)]
pub struct AccessLogConfig {
    /// Where lines go.
    pub lines: Lines,
    /// JSON, or the combined format of web servers.
    pub format: AccessLogFormat,
    /// Of the forwarded requests, how many are written, in percent.
    pub sample_percent: u8,
    /// The key of the digests of clients: that of the decision log, so that both name a client alike.
    pub secret: Secret,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// One JSON object.
    #[default]
    Json,
    /// As Apache and nginx write it.
    Combined,
}

/// The access log.
pub(crate) struct AccessLog {
    config: AccessLogConfig,
    digests: ClientDigests,
}

/// What is known of a request when its response has ended.
#[derive(Debug, Default)]
pub(crate) struct AccessRecord {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) address: Option<IpAddr>,
    pub(crate) client: String,
    pub(crate) proof: &'static str,
    pub(crate) route: String,
    pub(crate) rule: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) status: u16,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) micros: u64,
}

impl AccessLog {
    pub(crate) fn new(config: AccessLogConfig) -> AccessLog {
        AccessLog { digests: ClientDigests::new(config.secret), config }
    }

    /// Writes the line of a request, if it is one of the sample.
    pub(crate) fn record(&self, record: &AccessRecord, wall: Time) {
        let is_plain = record.outcome == FORWARDED && record.status < 500;
        if is_plain && random::fast() % 100 >= u64::from(self.config.sample_percent) {
            return;
        }
        let mut line = String::with_capacity(512);
        match self.config.format {
            AccessLogFormat::Json => self.write_json(&mut line, record, wall),
            AccessLogFormat::Combined => write_combined(&mut line, record, wall),
        }
        line.push('\n');
        self.config.lines.push(line.as_bytes());
    }

    fn write_json(&self, line: &mut String, record: &AccessRecord, wall: Time) {
        line.push_str("{\"time\":\"");
        rfc3339(line, wall);
        let _ = write!(line, "\",\"id\":\"{:016x}\"", record.id); // a string takes all that is written
        for (name, value) in [("method", &record.method), ("path", &record.path), ("route", &record.route)] {
            text(line, name, value);
        }
        text(line, "network", &masked_network(record.address));
        text(line, "client", &self.digests.of(&record.client).to_string());
        text(line, "proof", record.proof);
        text(line, "outcome", record.outcome);
        if let Some(rule) = &record.rule {
            text(line, "rule", rule);
        }
        if let Some(server) = &record.server {
            text(line, "server", server);
        }
        let AccessRecord { status, request_bytes, response_bytes, micros, .. } = record;
        let _ = write!(
            line,
            ",\"status\":{status},\"request_bytes\":{request_bytes},\"response_bytes\":{response_bytes},\"micros\":{micros}}}"
        );
    }
}

/// The outcome of a request that a server answered.
pub(crate) const FORWARDED: &str = "forwarded";

fn text(line: &mut String, name: &str, value: &str) {
    let _ = write!(line, ",\"{name}\":");
    json_string(line, value);
}

fn write_combined(line: &mut String, record: &AccessRecord, wall: Time) {
    let AccessRecord { method, path, status, response_bytes, .. } = record;
    let _ = write!(line, "{} - - [", masked_network(record.address));
    rfc3339(line, wall);
    let _ = write!(line, "] \"{} {} HTTP\" {status} {response_bytes} \"-\" \"-\"", escaped(method), escaped(path));
}

/// Without quotes, backslashes and control characters, which would start a field or a line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(character.escape_default()),
            _ if character.is_control() => escaped.extend(character.escape_default()),
            _ => escaped.push(character),
        }
    }
    escaped
}
