//! Who changed what, when.

use serde_json::{Value, json};
use tollgate_control::record::Role;
use tollgate_control::{AuditFilter, AuditRecord, Kind};

use super::call::Call;
use super::changes;
use super::endpoint::{
    Access, CURSOR, Content, Endpoint, FROM, LIMIT, NamespaceScope, TO, Tag, Takes, parameter, text,
};
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_service::mask::Mask;

const KINDS: &[&str] = &["rule", "override", "rule_mode", "client", "namespace", "token", "mode", "everything"];

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        detail: "The latest first.",
        reach: NamespaceScope::Namespaces,
        query: &[
            parameter("kind", Takes::OneOf(KINDS), "About this kind of thing."),
            text("id", "About the thing of this id."),
            text("author", "By the token of this id."),
            FROM,
            TO,
            LIMIT,
            CURSOR,
        ],
        answers: &[(200, Content::Json("AuditList"))],
        ..Endpoint::get("/v1/audit", "listAudit", Tag::Audit, "Read the audit", |call| Box::pin(list(call)))
    },
    Endpoint {
        detail: "Walks the whole chain of hashes.",
        access: Access::Needs(Role::Admin),
        reach: NamespaceScope::Everything,
        answers: &[(200, Content::Json("Verified"))],
        ..Endpoint::get("/v1/audit/verify", "verifyAudit", Tag::Audit, "Check that nobody changed the audit", |call| {
            Box::pin(verify(call))
        })
    },
];

async fn list(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "audit": [], "next_cursor": null })));
    }
    let query = call.query();
    let kind = query.text("kind");
    let filter = AuditFilter {
        namespaces: call.namespaces(),
        kind: Kind::ALL.into_iter().find(|known| Some(known.name()) == kind),
        id: query.owned("id"),
        author: query.owned("author"),
        from: query.time("from"),
        to: query.time("to"),
    };
    let listing = call.control()?.audit(&filter, &call.page()?).await?;
    let mask = call.mask();
    let rows: Value = listing.entries.iter().map(|record| show(record, &mask)).collect();
    Ok(AdminResponse::json(&json!({ "audit": rows, "next_cursor": call.cursor(listing.next.as_deref()) })))
}

fn show(record: &AuditRecord, mask: &Mask<'_>) -> Value {
    changes::masked(mask, record.kind, record.json())
}

async fn verify(call: &Call<'_>) -> Result<AdminResponse, AdminProblem> {
    let verified = call.control()?.verify_audit().await?;
    Ok(AdminResponse::json(&json!({
        "rows": verified.rows,
        "intact": verified.broken_at.is_none(),
        "broken_at": verified.broken_at,
    })))
}
