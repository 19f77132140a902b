//! SQL for two databases, as little as the control plane needs: its schema and its statements are in `control`.
//!
//! One text of SQL serves both almost everywhere: `$1`, `ON CONFLICT`, `RETURNING`. Column types differ (an instant is
//! a `TIMESTAMPTZ` or text), and how a transaction begins. So there is one type for bound values ([`SqlValue`]), one
//! for rows ([`SqlRow`]) and one for the transaction ([`Tx`]); each is an enum of two, and only this crate matches on
//! them.
//!
//! Why not what sqlx offers: its `Any` driver supports neither instants nor JSON and hides error codes; code generic
//! over its `Database` needs a page of bounds at every function, and is compiled twice.
//!
//! Every wait is bounded: a transaction carries its deadline.

mod database_url;
mod error;
mod failure;
mod instant;
mod instant_columns;
mod pool;
mod row;
mod statement;
mod time_limit;
mod tx;
mod value;

pub use database_url::DatabaseUrl;
pub use error::{Error, FieldError, Result, field_error};
pub use failure::{DatabaseFailure, bad_cell};
pub use instant::Instant;
pub use pool::{Connections, DatabasePool, DatabaseTimeouts};
pub use row::{FromColumn, SqlRow};
pub use statement::Sql;
pub use time_limit::TimeLimit;
pub use tx::Tx;
pub use value::{Json, SqlValue};

use std::pin::Pin;

/// What the database will answer.
///
/// Boxed, because the compiler builds the code of an `async fn` anew in every crate that awaits it, and in each of its
/// codegen units: the drivers of both databases, dozens of times. An allocation beside a round trip costs nothing.
pub type DatabaseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
