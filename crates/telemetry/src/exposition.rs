//! The two text formats of the metrics: Prometheus' own, and OpenMetrics for scrapers that ask for it.
//!
//! Metrics are written as OpenMetrics and converted. The older format names the family of a counter like its samples
//! (`_total`), has no type `info`, and no end marker. Counts under names of envoyproxy/ratelimit, which OpenMetrics
//! does not allow for counters, are counters there.

use std::fmt::Write;

/// A text format, as `Accept` chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus text 0.0.4: the default.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Exposition {
    /// OpenMetrics where `Accept` names it with at least the weight of plain text; else text.
    pub fn accepted(accept: Option<&[u8]>) -> Exposition {
        let accept = accept.and_then(|accept| std::str::from_utf8(accept).ok()).unwrap_or_default();
        let (mut text, mut openmetrics) = (0, 0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let (mut weight, mut version) = (1000, "1.0.0");
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    name if name.eq_ignore_ascii_case("q") => weight = thousandths(value.trim()),
                    name if name.eq_ignore_ascii_case("version") => version = value.trim().trim_matches('"'),
                    _ => {}
                }
            }
            match media.to_ascii_lowercase().as_str() {
                "application/openmetrics-text" if version == "1.0.0" => openmetrics = weight.max(openmetrics),
                "text/plain" | "text/*" | "*/*" => text = weight.max(text),
                _ => {}
            }
        }
        if openmetrics > 0 && openmetrics >= text { Exposition::OpenMetrics } else { Exposition::Text }
    }

    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A weight of `Accept`, `0` to `1` with at most three digits, in thousandths; 0 for anything else.
fn thousandths(text: &str) -> u32 {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    match (whole, rest.len()) {
        ("1", 0..=3) if rest.bytes().all(|digit| digit == b'0') => 1000,
        ("0", 0..=3) => format!("{rest:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

/// Converts OpenMetrics text to Prometheus text 0.0.4. `HELP` precedes `TYPE`, which decides the name, so it is
/// buffered.
pub(super) fn to_text(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = "";
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                "gauge" if name.starts_with(crate::rls_stats::PREFIX) => ("", "counter"),
                other => ("", other),
            };
            let _ = writeln!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}"); // into a String
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// The prefix of all names of our own.
const OWN_PREFIX: &str = "tollgate_";

/// The same page without the prefix of our own names. Names of `process_` and of other programs stay.
pub(super) fn without_prefix(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    for line in text.lines() {
        let before =
            ["# HELP ", "# TYPE ", "# UNIT "].into_iter().find(|before| line.starts_with(before)).unwrap_or("");
        let rest = line.get(before.len()..).unwrap_or_default();
        bare += before;
        bare += rest.strip_prefix(OWN_PREFIX).unwrap_or(rest);
        bare.push('\n');
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_lose_their_prefix_and_labels_stay() {
        let page = "# HELP tollgate_rules Rules of tollgate_x.\n# TYPE tollgate_rules gauge\n\
                    tollgate_rules{rule=\"tollgate_\"} 1\nprocess_open_fds 2\n# EOF\n";
        let bare = "# HELP rules Rules of tollgate_x.\n# TYPE rules gauge\n\
                    rules{rule=\"tollgate_\"} 1\nprocess_open_fds 2\n# EOF\n";
        assert_eq!(without_prefix(page), bare);
    }

    #[test]
    fn counts_under_the_names_of_envoyproxy_ratelimit_are_counters_in_text() {
        let openmetrics = "# HELP ratelimit_service_rate_limit_total_hits a.\n# TYPE ratelimit_service_rate_limit_total_hits gauge\n\
                           ratelimit_service_rate_limit_total_hits{domain=\"d\"} 1\n# EOF\n";
        let text = to_text(openmetrics);
        assert!(text.contains("# TYPE ratelimit_service_rate_limit_total_hits counter\n"), "{text}");
        assert!(text.ends_with("ratelimit_service_rate_limit_total_hits{domain=\"d\"} 1\n"), "{text}");
    }

    #[test]
    fn text_unless_openmetrics_is_asked_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            (prometheus, Exposition::OpenMetrics),
            ("application/openmetrics-text", Exposition::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", Exposition::OpenMetrics),
            ("*/*, application/openmetrics-text", Exposition::OpenMetrics),
            ("", Exposition::Text),
            ("*/*", Exposition::Text),
            ("text/plain;version=0.0.4", Exposition::Text),
            ("application/openmetrics-text;version=0.0.1", Exposition::Text),
            ("application/openmetrics-text;q=0", Exposition::Text),
            ("application/openmetrics-text;q=0.299, text/plain;q=0.3", Exposition::Text),
            ("application/openmetrics-text;q=1e9, text/plain;q=0.3", Exposition::Text),
            ("application/json", Exposition::Text),
        ] {
            assert_eq!(Exposition::accepted(Some(accept.as_bytes())), expected, "{accept}");
        }
        assert_eq!(Exposition::accepted(None), Exposition::Text);
        assert_eq!(Exposition::accepted(Some(b"\xff")), Exposition::Text);
    }
}
