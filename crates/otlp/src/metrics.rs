//! The metrics page as OTLP: what Prometheus would scrape is what a collector gets, under the same names.

use std::collections::BTreeMap;
use std::fmt;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

use crate::messages::{
    CUMULATIVE, ExportMetrics, Gauge, HistogramPoint, KeyValue, Metric, MetricData, NumberPoint, OtlpHistogram,
    OtlpResource, OtlpScope, ResourceMetrics, ScopeMetrics, Sum,
};

/// Metrics of the exporter itself.
#[derive(Debug, Default)]
pub struct OtlpMetrics {
    exported: Counter,
    failed: Counter,
    dropped: Counter,
}

impl OtlpMetrics {
    pub(crate) fn exported(&self) {
        self.exported.add_one();
    }

    pub(crate) fn failed(&self) {
        self.failed.add_one();
    }

    pub(crate) fn dropped(&self, spans: u64) {
        self.dropped.add(spans);
    }
}

impl MetricFamilies for OtlpMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let outcomes = [("taken", self.exported.sum()), ("failed", self.failed.sum())];
        let messages = outcomes.into_iter().map(|(outcome, count)| ([("outcome", outcome)], count));
        page.counters("tollgate_otlp_messages", "Messages to the OTLP collector", messages)?;
        page.counter("tollgate_otlp_spans_dropped", "Spans that the collector never got", self.dropped.sum())
    }
}

/// Start and time of the points of one export, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointTimes {
    pub(crate) start_ns: u64,
    pub(crate) time_ns: u64,
}

/// The message for a page of OpenMetrics.
pub(crate) fn encode(page: &str, times: PointTimes, resource: &OtlpResource, scope: &OtlpScope) -> ExportMetrics {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut description = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            description = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let data = match kind {
                "counter" => MetricData::Sum(Sum { points: Vec::new(), temporality: CUMULATIVE, is_monotonic: true }),
                "histogram" => MetricData::Histogram(OtlpHistogram { points: Vec::new(), temporality: CUMULATIVE }),
                _ => MetricData::Gauge(Gauge::default()),
            };
            metrics.push(Metric { name: name.to_owned(), description: description.to_owned(), data: Some(data) });
        } else if let (Some((series, value)), Some(metric)) = (sample(line), metrics.last_mut()) {
            add(metric, &series, value, times);
        }
    }
    metrics.retain(|metric| metric.data.as_ref().is_some_and(|data| !is_empty(data)));
    metrics.iter_mut().filter_map(|metric| metric.data.as_mut()).for_each(differences);
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope.clone()), metrics }];
    ExportMetrics { resource_metrics: vec![ResourceMetrics { resource: Some(resource.clone()), scope_metrics }] }
}

fn is_empty(data: &MetricData) -> bool {
    match data {
        MetricData::Gauge(gauge) => gauge.points.is_empty(),
        MetricData::Sum(sum) => sum.points.is_empty(),
        MetricData::Histogram(histogram) => histogram.points.is_empty(),
    }
}

/// Buckets of the page count all values up to their bound; those of OTLP only their own.
fn differences(data: &mut MetricData) {
    let MetricData::Histogram(histogram) = data else { return };
    for point in &mut histogram.points {
        let mut before = 0;
        for count in &mut point.counts {
            let own = count.saturating_sub(before);
            before = *count;
            *count = own;
        }
    }
}

/// A series: its name and its labels.
struct Series<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, String>,
}

fn add(metric: &mut Metric, series: &Series<'_>, value: f64, times: PointTimes) {
    let PointTimes { start_ns, time_ns } = times;
    let suffix = series.name.strip_prefix(metric.name.as_str()).unwrap_or_default();
    let number = || {
        let attributes = series.labels.iter().map(|(key, value)| KeyValue::text(key, value)).collect();
        NumberPoint { start_ns, time_ns, value: Some(value), attributes }
    };
    match metric.data.as_mut() {
        Some(MetricData::Gauge(gauge)) => gauge.points.push(number()),
        Some(MetricData::Sum(sum)) => sum.points.push(number()),
        Some(MetricData::Histogram(histogram)) => add_to_histogram(histogram, suffix, series, value, times),
        None => {}
    }
}

fn add_to_histogram(histogram: &mut OtlpHistogram, suffix: &str, series: &Series<'_>, value: f64, times: PointTimes) {
    let labels = series.labels.iter().filter(|(key, _)| **key != "le");
    let attributes: Vec<KeyValue> = labels.map(|(key, value)| KeyValue::text(key, value)).collect();
    let PointTimes { start_ns, time_ns } = times;
    let known = histogram.points.iter().position(|point| point.attributes == attributes);
    let place = known.unwrap_or_else(|| {
        histogram.points.push(HistogramPoint { start_ns, time_ns, attributes, ..HistogramPoint::default() });
        histogram.points.len() - 1
    });
    let Some(point) = histogram.points.get_mut(place) else { return };
    match suffix {
        "_sum" => point.sum = Some(value),
        "_count" => point.count = value as u64,
        "_bucket" => {
            point.counts.push(value as u64);
            let bound = series.labels.get("le").and_then(|bound| bound.parse::<f64>().ok());
            point.bounds.extend(bound.filter(|bound| bound.is_finite()));
        }
        _ => {}
    }
}

/// A line of the page: `name{label="value",…} 1.5`.
fn sample(line: &str) -> Option<(Series<'_>, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    Some((Series { name, labels: read_labels(labels)? }, value.parse().ok()?))
}

/// The labels up to the closing brace; values are escaped as in the text format.
fn read_labels(mut rest: &str) -> Option<BTreeMap<&str, String>> {
    let mut labels = BTreeMap::new();
    while rest != "}" {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (at, '"') => break at,
                (_, letter) => value.push(letter),
            }
        };
        labels.insert(name, value);
        rest = after.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP tollgate_rules Rules in force.
# TYPE tollgate_rules gauge
tollgate_rules 2
# HELP tollgate_denied Requests denied.
# TYPE tollgate_denied counter
tollgate_denied_total{rule="a",tier="go\"ld\\"} 3
tollgate_denied_total{rule="b, c",tier=""} 0
# HELP tollgate_none Nothing.
# TYPE tollgate_none counter
# HELP tollgate_seconds Times.
# TYPE tollgate_seconds histogram
tollgate_seconds_sum{shard="0"} 0.5
tollgate_seconds_count{shard="0"} 5
tollgate_seconds_bucket{le="0.1",shard="0"} 2
tollgate_seconds_bucket{le="1.0",shard="0"} 4
tollgate_seconds_bucket{le="+Inf",shard="0"} 5
# EOF
"#;

    #[test]
    fn a_page_is_read_as_a_scraper_reads_it() {
        let times = PointTimes { start_ns: 1, time_ns: 2 };
        let message = encode(PAGE, times, &OtlpResource::default(), &OtlpScope::default());
        let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["tollgate_rules", "tollgate_denied", "tollgate_seconds"]);
        let Some(MetricData::Sum(sum)) = &metrics[1].data else { panic!("a sum") };
        assert_eq!(sum.points[0].attributes, [KeyValue::text("rule", "a"), KeyValue::text("tier", "go\"ld\\")]);
        assert_eq!((sum.points[0].value, sum.points[1].value), (Some(3.0), Some(0.0)));
        let Some(MetricData::Histogram(histogram)) = &metrics[2].data else { panic!("a histogram") };
        let point = &histogram.points[0];
        assert_eq!((&point.counts[..], &point.bounds[..]), (&[2, 2, 1][..], &[0.1, 1.0][..]));
        assert_eq!((point.count, point.sum), (5, Some(0.5)));
    }
}
