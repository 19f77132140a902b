//! Tokens of the database with the role `check`: what a token that is for some namespaces opens, method by method.

use std::path::Path;

use tollgate_control::record::Role;
use tollgate_control::{Author, Control, DatabaseUrl, TokenDraft};
use tollgate_proto::v1::checked::Result as Checked;
use tollgate_proto::v1::{
    AcquireSlotRequest, BatchCheckRequest, CheckRequest, ExplainRequest, ReserveRequest, StreamChecksRequest,
};
use tonic::{Code, Request, Status};

use crate::rig::{Client, PATIENCE, Rig, about};
use crate::wire::sent;

const RULES: &str = "
namespace: shop
key_by: client_key
rules:
  - { name: only, limit: { requests: 1000, window: 1d } }
  - { name: held, match: { tier: held }, replaces: [only], limit: { algorithm: concurrency, slots: 4, slot_ttl: 10s } }
";

/// A database with two tokens: one for the namespace `shop`, one for all. Answers the id and text of both.
async fn tokens(control: &Control) -> [(String, String); 2] {
    let author = Author { id: "cli".to_owned(), name: "test".to_owned() };
    let draft = |namespaces| TokenDraft { name: "ours".to_owned(), role: Role::Check, namespaces, expires_at: None };
    let (shop, of_shop) = control.create_token(&draft(Some(vec!["shop".to_owned()])), &author).await.unwrap();
    let (all, of_all) = control.create_token(&draft(None), &author).await.unwrap();
    [(shop.token_id, of_shop), (all.token_id, of_all)]
}

async fn database(dir: &Path) -> Control {
    let control = Control::open(&DatabaseUrl::Sqlite(dir.join("tollgate.db"))).await.unwrap();
    control.migrate().await.unwrap();
    control
}

fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

/// The code of every method that names a namespace.
async fn codes(client: &mut Client, token: &str, namespace: &str) -> Vec<Code> {
    let code = |status: Option<Status>| status.map_or(Code::Ok, |status| status.code());
    let about = || CheckRequest { namespace: namespace.to_owned(), ..about("user:1") };
    let batch = BatchCheckRequest { requests: vec![about(), about()] };
    let mut held = about();
    held.attributes.insert("tier".to_owned(), "held".to_owned());
    vec![
        code(client.check(with(token, about())).await.err()),
        code(client.batch_check(with(token, batch)).await.err()),
        code(client.reserve(with(token, ReserveRequest { request: Some(about()) })).await.err()),
        code(client.acquire_slot(with(token, AcquireSlotRequest { request: Some(held) })).await.err()),
        code(client.explain(with(token, ExplainRequest { request: Some(about()) })).await.err()),
    ]
}

#[tokio::test]
async fn a_token_for_some_namespaces_opens_every_method_in_these_alone() {
    let place = tempfile::tempdir().unwrap();
    let control = database(place.path()).await;
    let [(shop_id, shop), (_, all)] = tokens(&control).await;
    let db = format!("sqlite:{}", place.path().join("tollgate.db").display());
    let rig = Rig::open(RULES, |config, _| {
        config.control.db = db.parse().unwrap();
        config.require_token = true;
    })
    .await;
    let mut client = rig.client().await;
    assert_eq!(client.check(about("user:1")).await.unwrap_err().code(), Code::Unauthenticated);
    for namespace in ["shop", "default"] {
        assert_eq!(codes(&mut client, &all, namespace).await, [Code::Ok; 5], "{namespace}");
    }
    assert_eq!(codes(&mut client, &shop, "shop").await, [Code::Ok; 5]);
    assert_eq!(codes(&mut client, &shop, "default").await, [Code::PermissionDenied; 5]);
    let both = ["shop", "default"].map(|namespace| CheckRequest { namespace: namespace.to_owned(), ..about("user:1") });
    let mixed = BatchCheckRequest { requests: both.to_vec() };
    let refused = client.batch_check(with(&shop, mixed)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "one of another namespace refuses them all");

    let (ask, asked) = sent();
    for (id, request) in (1..).zip(both) {
        ask.send(StreamChecksRequest { id, request: Some(request) }).unwrap();
    }
    let mut answers = client.stream_checks(with(&shop, asked)).await.unwrap().into_inner();
    let first = answers.message().await.unwrap().unwrap().checked.unwrap().result;
    let second = answers.message().await.unwrap().unwrap().checked.unwrap().result;
    assert!(matches!(first, Some(Checked::Decision(decision)) if decision.allowed));
    assert!(matches!(second, Some(Checked::Fault(fault)) if fault.code == "other_namespace"));

    let mut other = rig.client().await;
    control.revoke_token(&shop_id, &Author { id: "cli".to_owned(), name: "test".to_owned() }).await.unwrap();
    let revoked = async {
        // Each call is answered before the next one; the node follows the database meanwhile.
        while other.check(with(&shop, about("user:1"))).await.err().map(|status| status.code())
            != Some(Code::Unauthenticated)
        {}
    };
    tokio::time::timeout(PATIENCE, revoked).await.expect("revoked is revoked");
    let ended = async {
        loop {
            let request = CheckRequest { namespace: "shop".to_owned(), ..about("user:1") };
            ask.send(StreamChecksRequest { id: 9, request: Some(request) }).unwrap();
            if let Err(status) = answers.message().await {
                return status.code();
            }
        }
    };
    let code = tokio::time::timeout(PATIENCE, ended).await.expect("a stream that was open ends too");
    assert_eq!(code, Code::Unauthenticated);
}
