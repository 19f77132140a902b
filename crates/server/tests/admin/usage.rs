//! Usage of quotas: the list, its CSV, and what each token sees of it.

use serde_json::{Value, json};
use tollgate_control::record::Role;
use tollgate_control::{Instant, PeriodUsage};
use tollgate_service::violations::KeyHashing;

use crate::rig::Rig;

const HOUR: i64 = 3_600_000_000;
const START: i64 = 1_700_000_000_000_000;

fn usage(client: &str, rule: &str, hours: (i64, i64), used: i64) -> PeriodUsage {
    PeriodUsage {
        bucket: format!("{rule} {client}"),
        node: String::new(),
        namespace: "default".to_owned(),
        rule_id: rule.to_owned(),
        client_key: Some(KeyHashing::hashed(&[9; 32]).of(client)),
        organisation: None,
        period_start: Some(Instant(START + hours.0 * HOUR)),
        period_end: Instant(START + hours.1 * HOUR),
        used,
        limit_value: Some(100),
        as_of: Instant(START + hours.0 * HOUR + 1),
    }
}

async fn rig() -> Rig {
    let rig = Rig::start().await;
    let acme = Some(KeyHashing::hashed(&[9; 32]).of("org:acme"));
    let forever = PeriodUsage {
        period_end: PeriodUsage::never(),
        period_start: None,
        limit_value: None,
        client_key: Some("-".to_owned()),
        node: "n1".to_owned(),
        ..usage("", "life", (0, 1), 3)
    };
    let all = [
        usage("user:1", "daily", (0, 24), 7),
        PeriodUsage { organisation: acme, ..usage("user:22", "daily", (0, 24), 9) },
        usage("user:1", "monthly", (24, 48), 8),
        PeriodUsage { namespace: "shop".to_owned(), ..usage("user:1", "in-shop", (0, 24), 5) },
        forever,
    ];
    rig.control.as_ref().unwrap().record_usage(&all).await.unwrap();
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_found_by_client_organisation_rule_and_period() {
    let rig = rig().await;
    let first = rig.get("/v1/usage?limit=1").await.expect(200).json();
    let mut shown = first["usage"][0].clone();
    assert!(shown.as_object_mut().unwrap().remove("usage_id").unwrap().is_i64());
    let expected = json!({
        "namespace": "default", "client_key": "-", "organisation": null, "rule_id": "life", "period_start": null,
        "period_end": null, "used": 3, "limit_value": null, "as_of": "2023-11-14T22:13:20.000001Z", "node": "n1",
        "bucket": "life ",
    });
    assert_eq!(shown, expected);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = rig.get(&format!("/v1/usage?cursor={cursor}")).await.expect(200).json();
    assert_eq!((rest["usage"].as_array().unwrap().len(), &rest["next_cursor"]), (4, &Value::Null));
    let digest = KeyHashing::hashed(&[9; 32]).of("user:1").replace('#', "%23");
    for (query, count) in [
        ("client_key=user:1", 3),
        (&format!("client_key={digest}"), 3),
        ("client_key=user:3", 0),
        ("organisation=acme", 1),
        ("organisation=org:acme", 1),
        ("rule_id=daily", 2),
        ("namespace=shop", 1),
        ("from=2023-11-15T22:13:20Z", 2),
        ("to=2023-11-15T22:13:20Z", 4),
        ("client_key=user:1&from=2023-11-15T00:00:00Z&to=2023-11-15T01:00:00Z", 2),
    ] {
        let answer = rig.get(&format!("/v1/usage?{query}")).await.expect(200).json();
        assert_eq!(answer["usage"].as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(rig.get("/v1/usage?format=xml").await.expect(400).code(), "bad_parameter");
    assert_eq!(rig.get("/v1/usage?cursor=x").await.expect(400).code(), "bad_cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_has_the_same_rows_page_by_page() {
    let rig = rig().await;
    let (mut lines, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = rig.get(&format!("/v1/usage?format=csv&limit=2{cursor}")).await.expect(200);
        assert_eq!(answer.field("content-type"), Some("text/csv; charset=utf-8"));
        let text = answer.text();
        assert!(text.ends_with("\r\n"));
        let mut own = text.split_terminator("\r\n").map(str::to_owned);
        assert_eq!(
            own.next().unwrap(),
            "namespace,client_key,organisation,rule_id,period_start,period_end,used,limit_value,as_of,node,bucket"
        );
        lines.extend(own);
        match answer.field("next-cursor") {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], "default,-,,life,,,3,,2023-11-14T22:13:20.000001Z,n1,\"life \"");
    let digest = KeyHashing::hashed(&[9; 32]).of("user:1");
    assert!(
        lines[1].starts_with(&format!("default,{digest},,monthly,2023-11-15T22:13:20.000000Z,2023-11-16T")),
        "{}",
        lines[1]
    );
    for (accept, media) in [
        ("text/csv", "text/csv; charset=utf-8"),
        ("application/json;q=0.1, Text/CSV;q=0.9", "text/csv; charset=utf-8"),
        ("text/csv;q=0.0, */*", "application/json"),
        ("*/*", "application/json"),
    ] {
        let answer = rig.call("GET", "/v1/usage", &format!("Accept: {accept}\r\n"), "").await.expect(200);
        assert_eq!(answer.field("content-type"), Some(media), "{accept}");
    }
    let answer = rig.call("GET", "/v1/usage?format=json", "Accept: text/csv\r\n", "").await.expect(200);
    assert_eq!(answer.field("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_callers_run_in_no_spreadsheet() {
    let rig = Rig::start().await;
    let hostile = PeriodUsage {
        client_key: Some("=HYPERLINK(\"http://evil\",\"x\")".to_owned()),
        ..usage("a", "daily", (0, 24), 1)
    };
    rig.control.as_ref().unwrap().record_usage(&[hostile]).await.unwrap();
    let text = rig.get("/v1/usage?format=csv").await.expect(200).text();
    assert!(text.contains("default,\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\",,daily,"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_see_the_usage_of_their_namespaces_and_viewers_no_keys() {
    let rig = rig().await;
    let plain = PeriodUsage { client_key: Some("key:canary42".to_owned()), ..usage("plain", "daily", (0, 24), 1) };
    rig.control.as_ref().unwrap().record_usage(&[plain]).await.unwrap();
    for path in ["/v1/usage", "/v1/usage?format=csv"] {
        let shop = rig.token(Role::Viewer, Some(&["shop"])).await;
        let seen = rig.call_as(&shop, "GET", path, "", "").await.expect(200).text();
        assert!(seen.contains("in-shop") && !seen.contains("daily"), "{seen}");
        let other = format!("{path}{}namespace=default", if path.contains('?') { '&' } else { '?' });
        let seen = rig.call_as(&shop, "GET", &other, "", "").await.expect(200).text();
        assert!(!seen.contains("daily"), "{seen}");
        let viewed = rig.call_as(&rig.viewer, "GET", path, "", "").await.expect(200).text();
        assert!(viewed.contains("daily") && !viewed.contains("canary42"), "{viewed}");
        assert!(rig.get(path).await.expect(200).text().contains("key:canary42"), "operators bill");
    }
    let check = rig.token(Role::Check, None).await;
    rig.call_as(&check, "GET", "/v1/usage", "", "").await.expect(403);
}
