//! Fuzzes Envoy's rate limit service: a message is rejected without a charge, or answered descriptor by descriptor.

use prost::Message;
use tollgate_core::{ManualClock, Request, Time};
use tollgate_engine::{Decision, Engine, MatchedRequests, Verdict};
use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};
use tollgate_ruleset::{CompileOptions, NamespaceRules, RuleSet};
use tollgate_store::Memory;

use crate::render::RenderConfig;
use crate::rls::local_cache::CacheLookup;
use crate::rls::read::ParsedRls;
use crate::rls::write::RlsDecisions;
use crate::rls::{RlsError, write};

const RULES: &str = "
namespace: edge
rules:
  - { name: per-key, match: { api_key: '*' }, key_by: api_key, limit: { requests: 3, window: 1m } }
  - { name: per-path, match: { endpoint: '/a/*' }, key_by: ip, accept_limits: true, limit: { requests: 9, window: 1h } }
  - { name: watched, match: { watched: '*' }, key_by: watched, mode: shadow, limit: { requests: 1, window: 1m } }
";

const DOMAIN: &str = "
domain: files
descriptors:
- key: a
  rate_limit: { unit: minute, requests_per_unit: 2 }
  descriptors:
  - key: b
    value: w*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
- key: free
  rate_limit: { unlimited: true }
- key: quota
  quota_mode: true
  rate_limit: { unit: day, requests_per_unit: 1 }
";

/// Decodes any bytes as a message and sends it twice.
pub fn rls_request(data: &[u8]) {
    let Ok(request) = RateLimitRequest::decode(data) else { return };
    let again = RateLimitRequest::decode(request.encode_to_vec().as_slice());
    assert_eq!(again.as_ref(), Ok(&request), "what was understood can be said again");
    let (engine, twin) = (engine(), engine());
    for _ in 0..2 {
        let before = engine.store().stats().buckets;
        let answered = answer(&engine, &request, Engine::try_decide_matched);
        let anew = answer(&twin, &request, |twin, _, requests| Some(twin.decide_all_now(requests)));
        let shown =
            |answer: &Result<RateLimitResponse, RlsError>| answer.as_ref().map(without_jitter).map_err(Clone::clone);
        assert_eq!(shown(&answered), shown(&anew), "matched once and matched for every round");
        match answered {
            Ok(response) => keeps_its_promises(&request, &response),
            Err(RlsError::StoreUnavailable) => unreachable!("memory is always there"),
            Err(RlsError::Invalid(why)) => {
                assert!(!why.is_empty() && why.len() < 400, "{why:?}");
                assert_eq!(engine.store().stats().buckets, before, "what is refused leaves nothing behind");
            }
        }
    }
}

const NOW: Time = Time::from_secs(1_800_000_000);

#[expect(clippy::expect_used, reason = "the texts above are in order")]
fn engine() -> Engine<Memory> {
    let file = tollgate_rules::read("rules.yaml", RULES).expect("rules");
    let domain = tollgate_rules::envoy::read("files.yaml", DOMAIN).expect("a domain");
    let part = NamespaceRules { file: &file, rules: &[], directories: &[] };
    let rules = RuleSet::assemble_with(&[part], &[domain], &CompileOptions::reproducible()).expect("they compile");
    Engine::on_clock(rules, ManualClock::at(NOW))
}

/// Answers a message, each of its rounds by `decide`.
#[expect(clippy::expect_used, reason = "memory decides at once, and a round has no conflict")]
fn answer(
    engine: &Engine<Memory>,
    request: &RateLimitRequest,
    decide: impl Fn(&Engine<Memory>, &MatchedRequests, &[Request<'_>]) -> Option<Decision>,
) -> Result<RateLimitResponse, RlsError> {
    let mut parsed = ParsedRls::read(request, &engine.rules().rules)?;
    let matched = engine.match_all(&parsed.all_requests()).map_err(|error| RlsError::Invalid(error.to_string()))?;
    parsed.split_into_rounds(&matched)?;
    let mut rounds = Vec::new();
    for round in 0..parsed.rounds() {
        let decision = decide(engine, &matched, &parsed.requests(round)).expect("a decision");
        if let Verdict::Invalid(error) = &decision.verdict {
            return Err(RlsError::Invalid(error.to_string()));
        }
        rounds.push(decision);
    }
    let answer = RlsDecisions { rounds: &rounds, refunded: None };
    let mut response = write::response(&parsed, answer, &CacheLookup::NONE);
    write::add_headers(&RenderConfig::default(), answer, &mut response);
    Ok(response)
}

/// Without the header fields and the body, in which a random part of a wait is.
fn without_jitter(response: &RateLimitResponse) -> RateLimitResponse {
    RateLimitResponse { response_headers_to_add: Vec::new(), raw_body: Default::default(), ..response.clone() }
}

fn keeps_its_promises(request: &RateLimitRequest, response: &RateLimitResponse) {
    assert_eq!(request.descriptors.len(), response.statuses.len(), "a status for every descriptor");
    let is_over = |status: &DescriptorStatus| status.code() == Code::OverLimit;
    if response.overall_code() == Code::OverLimit {
        assert!(response.statuses.iter().any(is_over), "no descriptor is over its limit: {response:?}");
    }
    for status in &response.statuses {
        let Some(limit) = &status.current_limit else { continue };
        assert!(status.limit_remaining <= limit.requests_per_unit, "{status:?}");
        assert!(status.duration_until_reset.is_some_and(|until| until.seconds >= 0 && until.nanos == 0), "{status:?}");
    }
    for header in &response.response_headers_to_add {
        let is_plain = |text: &str| text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
        assert!(is_plain(&header.key) && is_plain(&header.value), "{header:?}");
    }
    let sent = RateLimitResponse::decode(response.encode_to_vec().as_slice());
    assert_eq!(sent.as_ref(), Ok(response), "what is answered can be read");
}
