//! Once its buffers have grown, an answer allocates nothing.

use tollgate_service::Reply;
use tollgate_service::render::{RenderConfig, ResponseOptions, write_decision};

use crate::{by_status, engine, user};

#[test]
fn an_answer_allocates_nothing() {
    let mut yaml = String::from("rules:\n");
    for number in 0..20 {
        let limit = "limit: { requests: 2, window: 1m, burst: 3 }";
        yaml += &format!("  - {{ name: r{number}, resource: 'r \u{7e} {number}', key_by: user_id, {limit} }}\n");
    }
    let (engine, _) = engine(&yaml);
    let decisions =
        [engine.decide_now(&user("1").cost(3)), engine.decide_now(&user("1")), engine.decide_now(&user("1").cost(9))];
    let headers = "x-ratelimit,draft-11,twitter,kong".parse().unwrap();
    let config = RenderConfig { headers, ..RenderConfig::default() };
    let mut reply = Reply::default();
    let mut render = || {
        for decision in &decisions {
            write_decision(decision, &ResponseOptions::default(), &config, &mut reply);
            write_decision(decision, &by_status(), &config, &mut reply);
        }
    };
    render();
    let measured = allocation_counter::measure(render);
    assert_eq!(measured.count_total, 0, "{measured:?}");
}
