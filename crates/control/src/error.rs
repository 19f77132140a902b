//! Errors of the control plane are those of its database.

pub(crate) use tollgate_sql::field_error;
pub use tollgate_sql::{Error, FieldError, Result};
