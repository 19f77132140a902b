//! One call: the parsed head, the caller's identity, and the context of its handler.

use tollgate_control::record::Role;
use tollgate_control::{Author, Control, Page, Precondition};

use super::access::NamespaceScope;
use super::problem::AdminProblem;
use super::query::QueryParameters;
use super::state::AdminState;
use tollgate_service::admin_tokens::AdminIdentity;
use tollgate_service::mask::Mask;

/// The parsed head of a request.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// The endpoint's path, with its braces.
    pub(super) path: &'static str,
    pub(super) scope: NamespaceScope,
    pub(super) path_parameters: Vec<String>,
    pub(super) query: QueryParameters,
    pub(super) identity: Option<AdminIdentity>,
    pub(super) if_match: Option<IfMatch>,
    pub(super) if_none_match: Option<IfMatch>,
    /// Only where the endpoint knows idempotency keys; elsewhere they are ignored.
    pub(super) idempotency_key: Option<String>,
    /// `Accept` names CSV.
    pub(super) accepts_csv: bool,
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: any version.
    Anything,
    /// One version. An unknown tag is a version that never existed.
    Version(i64),
}

/// A version that no record has.
pub const NEVER: i64 = -1;

/// The context of a handler: the request with its body, and the shared state.
pub struct AdminCall<'a> {
    pub(super) state: &'a AdminState,
    pub(super) request: &'a AdminRequest,
    pub(super) body: &'a [u8],
}

impl<'a> AdminCall<'a> {
    /// The control plane; an error without a database.
    pub(super) fn control(&self) -> Result<&'a Control, AdminProblem> {
        self.state.control.as_ref().ok_or_else(|| {
            AdminProblem::new(
                503,
                "no_database",
                "This server has no database (db is off): its rules are those of its file. Start it with \
                 --db sqlite:PATH or --db postgres://… to change rules here.",
            )
        })
    }

    /// The first path parameter.
    pub(super) fn id(&self) -> &'a str {
        self.request.path_parameters.first().map_or("", String::as_str)
    }

    pub(super) fn query(&self) -> &'a QueryParameters {
        &self.request.query
    }

    /// The namespace of a call that has one.
    pub(super) fn namespace(&self) -> &'a str {
        namespace(self.request)
    }

    /// The namespaces that a list covers; `None` for all.
    pub(super) fn namespaces(&self) -> Option<Vec<String>> {
        namespaces(self.request)
    }

    /// False if the token is not for the namespace of the call: reads then find nothing.
    pub(super) fn may_see(&self) -> bool {
        may_see(self.request)
    }

    /// The identity of the caller.
    pub(super) fn identity(&self) -> Option<&'a AdminIdentity> {
        self.request.identity.as_ref()
    }

    /// The author for the audit.
    pub(super) fn author(&self) -> Author {
        self.identity().map_or_else(|| Author { id: "node".to_owned(), name: String::new() }, AdminIdentity::author)
    }

    /// How client keys are shown to the caller.
    pub(super) fn mask(&self) -> Mask<'a> {
        match self.identity().is_some_and(|identity| identity.role >= Role::Operator) {
            true => Mask::Plain,
            false => Mask::Under(&self.state.secret),
        }
    }

    /// The requested page of a list.
    pub(super) fn page(&self) -> Result<Page, AdminProblem> {
        let after = self.query().text("cursor").map(|cursor| self.state.cursors.open(self.request.path, cursor));
        let limit = self.query().number("limit").and_then(|limit| u32::try_from(limit).ok()).unwrap_or(100);
        Ok(Page { limit, after: after.transpose()? })
    }

    /// Seals a cursor for the response.
    pub(super) fn cursor(&self, next: Option<&str>) -> Option<String> {
        next.map(|next| self.state.cursors.seal(self.request.path, next))
    }

    pub(super) fn dry_run(&self) -> bool {
        self.query().flag("dry_run").unwrap_or(false)
    }

    /// The precondition of a replacement.
    pub(super) fn replaces(&self) -> Result<Precondition, AdminProblem> {
        match (self.request.if_match, self.request.if_none_match) {
            (Some(_), Some(_)) => Err(bad_precondition("Send If-Match or If-None-Match, not both.")),
            (None, Some(IfMatch::Anything)) => Ok(Precondition::Absent),
            (None, Some(IfMatch::Version(_))) => Err(bad_precondition("If-None-Match can only be * here.")),
            (None, None) => Err(required("Send If-Match with the ETag that you read, or If-None-Match: * to make it.")),
            (Some(IfMatch::Anything), None) => Ok(Precondition::Present),
            (Some(IfMatch::Version(version)), None) => Ok(Precondition::Version(version)),
        }
    }

    /// The precondition of a merge.
    pub(super) fn merges(&self) -> Result<IfMatch, AdminProblem> {
        self.request.if_match.ok_or_else(|| required("Send If-Match with the ETag that you read, or If-Match: *."))
    }

    /// The precondition of a deletion.
    pub(super) fn removes(&self) -> Precondition {
        match self.request.if_match {
            None | Some(IfMatch::Anything) => Precondition::Present,
            Some(IfMatch::Version(version)) => Precondition::Version(version),
        }
    }
}

fn bad_precondition(detail: &str) -> AdminProblem {
    AdminProblem::new(400, "bad_precondition", detail)
}

fn required(detail: &str) -> AdminProblem {
    AdminProblem::new(428, "precondition_required", format!("{detail} Otherwise a concurrent change could be lost."))
}

/// The namespace of a call that has one: named, or the only one the token is for, or `default`.
pub(super) fn namespace(request: &AdminRequest) -> &str {
    let only = request.identity.as_ref().and_then(|identity| match identity.namespaces.as_deref() {
        Some([only]) => Some(only.as_str()),
        _ => None,
    });
    request.query.text("namespace").or(only).unwrap_or("default")
}

/// The namespaces that a list covers; `None` for all.
pub(super) fn namespaces(request: &AdminRequest) -> Option<Vec<String>> {
    match (request.scope, request.query.text("namespace")) {
        (NamespaceScope::Namespace, _) => Some(vec![namespace(request).to_owned()]),
        (_, Some(name)) => Some(vec![name.to_owned()]),
        (_, None) => request.identity.as_ref().and_then(|identity| identity.namespaces.clone()),
    }
}

pub(super) fn may_see(request: &AdminRequest) -> bool {
    let Some(identity) = &request.identity else { return true };
    match request.scope {
        NamespaceScope::Namespace => identity.may_see(namespace(request)),
        NamespaceScope::Namespaces => request.query.text("namespace").is_none_or(|name| identity.may_see(name)),
        NamespaceScope::Nothing => true,
        NamespaceScope::Everything => identity.namespaces.is_none(),
    }
}

/// Reads `If-Match` and `If-None-Match`.
pub(super) fn precondition(value: Option<&[u8]>) -> Result<Option<IfMatch>, AdminProblem> {
    let Some(value) = value else { return Ok(None) };
    let text = str::from_utf8(value).unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(IfMatch::Anything));
    }
    // Weak tags never match strongly; the API issues none.
    let tag = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match tag.filter(|tag| !tag.contains('"')) {
        Some(tag) => Ok(Some(IfMatch::Version(tag.parse().ok().filter(|_| !text.starts_with("W/")).unwrap_or(NEVER)))),
        None => Err(bad_precondition("A precondition is * or one ETag in its quotes, such as \"12\".")),
    }
}

/// Reads `Idempotency-Key`.
pub(super) fn idempotency_key(value: Option<&[u8]>) -> Result<Option<String>, AdminProblem> {
    let Some(value) = value else { return Ok(None) };
    let text = str::from_utf8(value).unwrap_or_default();
    match (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Some(text.to_owned())),
        false => Err(AdminProblem::new(
            400,
            "bad_idempotency_key",
            "An Idempotency-Key has 1 to 255 visible characters and no spaces.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preconditions_are_read() {
        let read = |text: &str| precondition(Some(text.as_bytes()));
        assert_eq!(precondition(None), Ok(None));
        assert_eq!(read("*"), Ok(Some(IfMatch::Anything)));
        assert_eq!(read("\"12\""), Ok(Some(IfMatch::Version(12))));
        for never in ["\"\"", "\"abc\"", "W/\"12\"", "\"12.0\"", "\"99999999999999999999\""] {
            assert_eq!(read(never), Ok(Some(IfMatch::Version(NEVER))), "{never}");
        }
        for bad in ["", "12", "\"12", "\"1\", \"2\"", "'12'"] {
            assert_eq!(read(bad).unwrap_err().status, 400, "{bad}");
        }
    }
}
