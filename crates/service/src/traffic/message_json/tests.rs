//! What is written is read, and nothing else.

use super::*;

fn outcome(wait: Wait) -> Outcome {
    Outcome {
        allowed: false,
        source: Source::Lease,
        limit: 10,
        remaining: 0,
        used: u64::MAX,
        granted: 1,
        wait,
        reset_after: Span::from_secs(7),
        next_unit_after: Some(Span::ZERO),
        delay: Span::from_secs(1),
        stamp: Time::from_secs(3),
    }
}

fn view() -> NodeView {
    let ruling = |wait| FoundRuling {
        rule: "orders".to_owned(),
        plan: Some("free".to_owned()),
        is_enforced: true,
        is_refused: true,
        is_deciding: true,
        mode: "lease",
        outcome: Some(outcome(wait)),
        requests: 10,
        window: Span::from_secs(60),
        rule_requests: None,
        limited_since: Some(Time::from_secs(2)),
    };
    let counts = TrafficCounts { allowed: 1, denied: 2, shadow_denied: 3, cost: 4 };
    let totals = NamedTotals { namespace: "a".to_owned(), rule: String::new(), counts };
    let limited = LimitedClient { until: None, used: 3, is_shadow: true, ..LimitedClient::default() };
    let hitter = HeavyHitter { key: u64::MAX, name: "user:\u{1b}\"".to_owned(), count: 9, error: 4 };
    NodeView {
        node: "a".to_owned(),
        process: 7,
        totals: vec![totals.clone()],
        recent: vec![totals],
        limited: LimitedKeys { keys: BTreeMap::from([("a".to_owned(), HashSet::from([5, 6]))]), is_exact: true },
        series: Some(TrafficSeries {
            start: Time::from_secs(60),
            resolution: Resolution::Minute,
            steps: vec![TrafficCounts::default(), counts, TrafficCounts::default()],
        }),
        clients: vec![RuleClients {
            namespace: "a".to_owned(),
            rule: "orders".to_owned(),
            since: Time::from_secs(300),
            hitters: HeavyHitters::new(vec![hitter], 2, 20),
            limited: HashMap::from([(u64::MAX, limited)]),
            close: vec![CloseClient {
                key: 1,
                name: "user:2".to_owned(),
                used: 9,
                limit: 10,
                ..CloseClient::default()
            }],
        }],
        decisions: vec![FoundDecision {
            id: DecisionId(0xfeed),
            node: "a".to_owned(),
            sequence: 12,
            at: Time::from_nanos(1_800_000_000_123_456_789),
            namespace: "a".to_owned(),
            client: "user:1".to_owned(),
            is_allowed: false,
            cost: 1,
            mode: "store",
            generation: 3,
            rulings: [Wait::None, Wait::For(Span::from_nanos(1)), Wait::Never].map(ruling).to_vec(),
        }],
        is_cut: true,
        recorded: 12,
    }
}

#[test]
fn what_is_written_is_read() {
    let view = view();
    assert_eq!(decode::<NodeView>(encode(&view).as_bytes()), Some(view));
    let place = DecisionPlace { at: Time::from_secs(1), sequence: 2, node: "n".to_owned() };
    let text = || Some("x".to_owned());
    let questions = [
        TrafficQuestion::Overview { seconds: 300 },
        TrafficQuestion::Series(SeriesQuestion {
            rule: text(),
            client: None,
            resolution: Resolution::Hour,
            steps: 720,
        }),
        TrafficQuestion::Clients { counts: ClientCounts::Units, rule: None },
        TrafficQuestion::Decisions(DecisionQuestion {
            client: text(),
            rule: None,
            is_allowed: Some(false),
            before: Some(place),
            most: 5,
        }),
        TrafficQuestion::Decision(DecisionId(9)),
        TrafficQuestion::Events(BTreeMap::from([(1, 2)])),
    ];
    for question in questions {
        assert_eq!(decode::<TrafficQuestion>(encode(&question).as_bytes()), Some(question));
    }
    for scope in [None, Some(Vec::new()), Some(vec!["a".to_owned()])] {
        let scope = TrafficScope { namespaces: scope };
        assert_eq!(decode::<TrafficScope>(encode(&scope).as_bytes()), Some(scope), "nothing is not everything");
    }
}

#[test]
fn what_another_node_wrote_wrongly_is_not_read() {
    let text = encode(&view());
    for end in 0..text.len() {
        assert_eq!(decode::<NodeView>(text.get(..end).unwrap_or_default().as_bytes()), None);
    }
    for wrong in ["", "[]", "[1]", "[2,[]]", "[1,{}]", "[1,[1,2,3,4,5,6,7,8,9,10]]"] {
        assert_eq!(decode::<NodeView>(wrong.as_bytes()), None, "{wrong}");
        assert_eq!(decode::<TrafficQuestion>(wrong.as_bytes()), None, "{wrong}");
    }
    assert_eq!(decode::<TrafficSeries>(b"[1,[0,0,1,[[4000000000,[1,1,1,1]]]]]"), None, "a step beyond the last one");
    assert_eq!(
        decode::<TrafficSeries>(b"[1,[0,0,18446744073709551615,[]]]").map(|own| own.steps.len()),
        Some(STEPS_MAX)
    );
    let newer = text.replacen("[1,", "[2,", 1);
    assert_eq!(decode::<NodeView>(newer.as_bytes()), None, "another version");
}
