//! The audit: who changed what, and when.

use serde_json::{Value, json};
use tollgate_control::record::Role;
use tollgate_control::{AuditFilter, AuditRecord, RecordKind};

use super::access::{AdminAccess, NamespaceScope};
use super::call::AdminCall;
use super::changes;
use super::endpoint::{AdminEndpoint, ResponseContent, Tag};
use super::parameter::{CURSOR, FROM, LIMIT, ParameterKind, TO, parameter, text};
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_api_schema::AUDIT_KINDS;
use tollgate_service::mask::Mask;

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "The latest first.",
        scope: NamespaceScope::Namespaces,
        query: &[
            parameter("kind", ParameterKind::OneOf(AUDIT_KINDS), "About this kind of thing."),
            text("id", "About the thing of this id."),
            text("author", "By the token of this id."),
            FROM,
            TO,
            LIMIT,
            CURSOR,
        ],
        responses: &[(200, ResponseContent::Json("AuditList"))],
        ..AdminEndpoint::get("/v1/audit", "listAudit", Tag::Audit, "Read the audit", |call| Box::pin(list(call)))
    },
    AdminEndpoint {
        detail: "Walks the whole chain of hashes.",
        access: AdminAccess::Needs(Role::Admin),
        scope: NamespaceScope::Everything,
        responses: &[(200, ResponseContent::Json("Verified"))],
        ..AdminEndpoint::get(
            "/v1/audit/verify",
            "verifyAudit",
            Tag::Audit,
            "Verify the hash chain of the audit",
            |call| Box::pin(verify(call)),
        )
    },
];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Ok(AdminResponse::json(&json!({ "audit": [], "next_cursor": null })));
    }
    let query = call.query();
    let kind = query.text("kind");
    let filter = AuditFilter {
        namespaces: call.namespaces(),
        kind: RecordKind::ALL.into_iter().find(|known| Some(known.name()) == kind),
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

async fn verify(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let verified = call.control()?.verify_audit().await?;
    Ok(AdminResponse::json(&json!({
        "rows": verified.rows,
        "intact": verified.broken_at.is_none(),
        "broken_at": verified.broken_at,
    })))
}

#[cfg(test)]
mod tests {
    use tollgate_control::RecordKind;

    use super::AUDIT_KINDS;

    #[test]
    fn every_kind_of_record_can_be_asked_for_and_is_described() {
        assert_eq!(AUDIT_KINDS, RecordKind::ALL.map(RecordKind::name));
    }
}
