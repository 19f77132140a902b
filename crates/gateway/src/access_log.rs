//! The access log: one line per request, when its response has ended.
//!
//! A line names the client by the digest of the decision log, never by its key, and the path without its query, because
//! queries carry keys. Requests can be sampled; refusals and failures are always written.

use std::fmt::Write;
use std::net::IpAddr;

use http::HeaderValue;
use tollgate_core::{Secret, Time};
use tollgate_net::masked_network;
use tollgate_service::random;
use tollgate_telemetry::{ClientDigests, Lines, common_log_time, json_string, rfc3339};

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
    /// `HTTP/1.1`
    pub(crate) protocol: &'static str,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
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
            AccessLogFormat::Combined => write_combined(&mut line, record, self.digests, wall),
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
        text(line, "protocol", record.protocol);
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
        for (name, value) in [("referer", record.referer()), ("user_agent", record.user_agent())] {
            if let Some(value) = value {
                text(line, name, &String::from_utf8_lossy(value));
            }
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

/// As Apache and nginx write it, and the id of the decision at the end. The user is the digest of the client, if it is proven.
fn write_combined(line: &mut String, record: &AccessRecord, digests: ClientDigests, wall: Time) {
    let AccessRecord { id, method, path, protocol, status, response_bytes, .. } = record;
    let network = masked_network(record.address);
    line.push_str(match record.address {
        Some(_) => network.split('/').next().unwrap_or("-"), // parsers want an address
        None => "-",
    });
    match record.proof {
        "" | "address" => line.push_str(" - - ["),
        _ => _ = write!(line, " - {} [", digests.of(&record.client)), // a string takes all that is written
    }
    common_log_time(line, wall);
    line.push_str("] \"");
    match method.is_empty() {
        true => line.push('-'),
        false => {
            escape(line, method.as_bytes());
            line.push(' ');
            escape(line, path.as_bytes());
            line.push(' ');
            line.push_str(protocol);
        }
    }
    let _ = write!(line, "\" {status} {response_bytes} \"");
    escape(line, record.referer().unwrap_or(b"-"));
    line.push_str("\" \"");
    escape(line, record.user_agent().unwrap_or(b"-"));
    let _ = write!(line, "\" {id:016x}");
}

/// Longest field of a caller in a line.
const FIELD_BYTES_MAX: usize = 1_024;

impl AccessRecord {
    /// What the caller says it is.
    fn user_agent(&self) -> Option<&[u8]> {
        self.user_agent.as_ref().map(HeaderValue::as_bytes).map(shortened)
    }

    /// Where the caller comes from, without a query: queries carry keys.
    fn referer(&self) -> Option<&[u8]> {
        let referer = self.referer.as_ref()?.as_bytes();
        referer.split(|byte| matches!(byte, b'?' | b'#')).next().map(shortened)
    }
}

fn shortened(text: &[u8]) -> &[u8] {
    text.get(..FIELD_BYTES_MAX).unwrap_or(text)
}

/// As nginx does it: quotes and backslashes, which would end a field or hide its end, and all that is not visible ASCII.
fn escape(line: &mut String, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' => _ = write!(line, "\\x{byte:02X}"),
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => _ = write!(line, "\\x{byte:02X}"),
        }
    }
}

#[cfg(test)]
mod tests;
