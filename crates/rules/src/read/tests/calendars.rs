//! Calendars of clients.

use super::*;

/// Position, code, message and help of each problem.
fn problems(client: &str) -> Vec<(u32, u32, &'static str, String)> {
    let text = format!("rules: []\nclients:\n  - {client}\n");
    let report = match read("rules.yaml", &text) {
        Ok(_) => return Vec::new(),
        Err(report) => report,
    };
    let told = |problem: Problem| {
        let help = problem.help.unwrap_or_default();
        (problem.line, problem.column, problem.code, format!("{}: {help}", problem.message))
    };
    report.problems.into_iter().map(told).collect()
}

#[test]
fn zones_and_anchors_of_clients_are_refused_where_they_stand() {
    let zone = "is not a time zone: did you mean `Europe/Berlin`?";
    let anchor = "`32` is where no period starts: a day of the month";
    for (client, column, code, told) in [
        (
            "{ client_key: k, time_zone: Europe/Berlim }",
            33,
            "unknown-time-zone",
            format!("clients[0].time_zone: `Europe/Berlim` {zone}"),
        ),
        ("{ client_key: 'org:a', anchor: 32 }", 36, "bad-anchor", format!("clients[0].anchor: {anchor}")),
        (
            "{ client_key: k, attributes: { time_zone: Berlin } }",
            47,
            "unknown-time-zone",
            format!("clients[0].attributes.time_zone: `Berlin` {zone}"),
        ),
        (
            "{ client_key: k, attributes: { anchor: 32 } }",
            44,
            "bad-anchor",
            format!("clients[0].attributes.anchor: {anchor}"),
        ),
    ] {
        let found = problems(client);
        let [(3, at, found_code, message)] = found.as_slice() else { panic!("{client}: {found:?}") };
        assert_eq!((*at, *found_code), (column, code), "{client}");
        assert!(message.starts_with(&told), "{message}");
    }
}

#[test]
fn an_anchor_need_not_suit_every_period() {
    for anchor in ["17", "'06:30'", "monday", "03-17"] {
        assert_eq!(problems(&format!("{{ client_key: k, time_zone: europe/berlin, anchor: {anchor} }}")), []);
    }
}
