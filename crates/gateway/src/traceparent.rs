//! `traceparent` of W3C Trace Context: the trace that a request belongs to.

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate_service::random;
use tollgate_service::trace::{TraceContext, TraceParent};

use crate::spec::TraceStyle;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Makes the field what the route says.
pub(crate) fn write(style: TraceStyle, headers: &mut HeaderMap) {
    match style {
        TraceStyle::Pass => {}
        TraceStyle::Remove => remove(headers),
        TraceStyle::Create => {
            let mut all = headers.get_all(&TRACEPARENT).iter();
            let is_one = all.next().is_some_and(|value| is_valid(value.as_bytes())) && all.next().is_none();
            if !is_one {
                remove(headers); // the state belongs to the trace that cannot be read
                headers.insert(TRACEPARENT, fresh());
            }
        }
    }
}

/// Names the decision as the parent of what follows, where the field is passed on at all.
pub(crate) fn follow(style: TraceStyle, context: &TraceContext, headers: &mut HeaderMap) {
    if style == TraceStyle::Remove {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&context.onward()) {
        headers.insert(TRACEPARENT, value);
    }
}

fn remove(headers: &mut HeaderMap) {
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
}

/// A new trace, sampled: what follows may decide otherwise.
fn fresh() -> HeaderValue {
    // Zero would be invalid.
    let (trace, span) = (random::fast() | 1, random::fast() | 1);
    let text = format!("00-{:016x}{trace:016x}-{span:016x}-01", random::fast());
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

fn is_valid(text: &[u8]) -> bool {
    TraceParent::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    fn written(style: TraceStyle, given: &[&'static str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        given.iter().for_each(|value| _ = headers.append(TRACEPARENT, HeaderValue::from_static(value)));
        headers.insert(TRACESTATE, HeaderValue::from_static("a=b"));
        write(style, &mut headers);
        assert_eq!(headers.contains_key(TRACESTATE), style == TraceStyle::Pass || written_is(&headers, given));
        headers.get_all(TRACEPARENT).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    fn written_is(headers: &HeaderMap, given: &[&str]) -> bool {
        given.len() == 1 && headers.get(TRACEPARENT).is_some_and(|value| value == given[0])
    }

    #[test]
    fn a_trace_is_passed_on_removed_or_begun() {
        assert_eq!(written(TraceStyle::Pass, &["nonsense"]), ["nonsense"]);
        assert!(written(TraceStyle::Remove, &[GIVEN]).is_empty());
        assert_eq!(written(TraceStyle::Create, &[GIVEN]), [GIVEN]);
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert_eq!(written(TraceStyle::Create, &[later]), [later]);
        for bad in [
            &[][..],
            &["nonsense"],
            &[GIVEN, GIVEN],
            &["00-00000000000000000000000000000000-b7ad6b7169203331-00"],
            &["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-00"],
            &["00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-00"],
            &["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more"],
            &["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"],
        ] {
            let begun = written(TraceStyle::Create, bad);
            assert_eq!(begun.len(), 1, "{bad:?}");
            assert!(begun[0] != GIVEN && is_valid(begun[0].as_bytes()) && begun[0].ends_with("-01"), "{begun:?}");
        }
    }
}
