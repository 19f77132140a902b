//! Why the cost of a request cannot be said, so that it is refused before anything is charged.

use std::borrow::Cow;
use std::fmt;

use crate::json::JsonFault;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CostErrorKind {
    /// The body is not JSON, or not of the shape that the API has.
    BadBody,
    /// The body is nested too deeply.
    BodyTooDeep,
    /// The body is larger than what is read.
    BodyTooLarge,
    /// A field that decides the cost is there twice.
    DuplicateField,
    /// The request is no call of a language model, and the route takes nothing else.
    UnknownCall,
    /// The response would be generated behind the call, where its tokens are not seen.
    BackgroundCall,
    /// The query or its variables cannot be read as GraphQL.
    BadGraphql,
    /// The GraphQL query is nested too deeply.
    GraphqlTooDeep,
    /// The GraphQL query has too many fields.
    GraphqlTooManyFields,
    /// The GraphQL query costs more than the route allows.
    QueryTooExpensive,
    /// The batch has too many operations.
    BatchTooLarge,
    /// Only persisted queries are allowed, and this is none of them.
    NotPersisted,
    /// A query is sent by its hash or id alone, and its text is needed to price it.
    PersistedQueryNotFound,
}

impl CostErrorKind {
    /// All kinds.
    pub const ALL: [CostErrorKind; 13] = [
        CostErrorKind::BadBody,
        CostErrorKind::BodyTooDeep,
        CostErrorKind::BodyTooLarge,
        CostErrorKind::DuplicateField,
        CostErrorKind::UnknownCall,
        CostErrorKind::BackgroundCall,
        CostErrorKind::BadGraphql,
        CostErrorKind::GraphqlTooDeep,
        CostErrorKind::GraphqlTooManyFields,
        CostErrorKind::QueryTooExpensive,
        CostErrorKind::BatchTooLarge,
        CostErrorKind::NotPersisted,
        CostErrorKind::PersistedQueryNotFound,
    ];

    /// Its stable name.
    pub fn code(self) -> &'static str {
        match self {
            CostErrorKind::BadBody => "bad_body",
            CostErrorKind::BodyTooDeep => "body_too_deep",
            CostErrorKind::BodyTooLarge => "body_too_large",
            CostErrorKind::DuplicateField => "duplicate_field",
            CostErrorKind::UnknownCall => "unknown_call",
            CostErrorKind::BackgroundCall => "background_call",
            CostErrorKind::BadGraphql => "bad_graphql",
            CostErrorKind::GraphqlTooDeep => "graphql_too_deep",
            CostErrorKind::GraphqlTooManyFields => "graphql_too_many_fields",
            CostErrorKind::QueryTooExpensive => "query_too_expensive",
            CostErrorKind::BatchTooLarge => "batch_too_large",
            CostErrorKind::NotPersisted => "query_not_persisted",
            CostErrorKind::PersistedQueryNotFound => "persisted_query_not_found",
        }
    }

    /// The HTTP status of the refusal.
    pub fn status(self) -> u16 {
        match self {
            CostErrorKind::BodyTooLarge => 413,
            CostErrorKind::NotPersisted => 403,
            CostErrorKind::UnknownCall => 404,
            // Clients read the body of a GraphQL response, and send the text.
            CostErrorKind::PersistedQueryNotFound => 200,
            _ => 400,
        }
    }

    pub(crate) fn error(self, message: impl Into<Cow<'static, str>>) -> CostError {
        CostError { kind: self, message: message.into() }
    }
}

/// A request whose cost cannot be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostError {
    /// What is wrong.
    pub kind: CostErrorKind,
    /// The same in words, for the caller.
    pub message: Cow<'static, str>,
}

impl CostError {
    pub(crate) fn of_json(fault: JsonFault) -> CostError {
        match fault {
            JsonFault::Syntax(offset) => CostErrorKind::BadBody.error(format!("the body is not JSON at byte {offset}")),
            JsonFault::Incomplete => CostErrorKind::BadBody.error("the body is not a complete JSON text"),
            JsonFault::TooDeep => CostErrorKind::BodyTooDeep.error("the body is nested more than 64 levels deep"),
        }
    }
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)
    }
}

impl std::error::Error for CostError {}
