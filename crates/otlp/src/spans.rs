//! Decisions as spans of OTLP.

use tollgate_telemetry::DecisionSpan;

use crate::messages::{
    AnyValueKind, ExportTraces, KeyValue, OtlpResource, OtlpScope, OtlpSpan, ResourceSpans, ScopeSpans,
};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: i32 = 1;

/// The message for these spans.
pub(crate) fn encode(spans: Vec<DecisionSpan>, resource: &OtlpResource, scope: &OtlpScope) -> ExportTraces {
    let spans = spans.into_iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope.clone()), spans }];
    ExportTraces { resource_spans: vec![ResourceSpans { resource: Some(resource.clone()), scope_spans }] }
}

fn span(span: DecisionSpan) -> OtlpSpan {
    let parent = if span.parent == 0 { Vec::new() } else { span.parent.to_be_bytes().to_vec() };
    let generation = i64::try_from(span.generation).unwrap_or(i64::MAX);
    OtlpSpan {
        trace_id: span.trace.to_be_bytes().to_vec(),
        span_id: span.span.to_be_bytes().to_vec(),
        parent_span_id: parent,
        name: "tollgate.decide".to_owned(),
        kind: INTERNAL,
        start_ns: span.start.nanos(),
        end_ns: span.end.nanos(),
        attributes: vec![
            KeyValue::text("tollgate.namespace", &span.namespace),
            KeyValue::text("tollgate.rule", &span.rule),
            KeyValue::text("tollgate.mode", span.mode),
            KeyValue::text("tollgate.outcome", span.outcome),
            KeyValue::of("tollgate.generation", AnyValueKind::Whole(generation)),
        ],
    }
}
