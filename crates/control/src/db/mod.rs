//! SQL for two databases, as little as the control plane needs.
//!
//! One text of SQL serves both almost everywhere: `$1`, `ON CONFLICT`, `RETURNING`. Column types differ (an instant is
//! a `TIMESTAMPTZ` or text), and how a transaction begins. So there is one type for bound values ([`SqlValue`]), one
//! for rows ([`SqlRow`]) and one for the transaction ([`Tx`]); each is an enum of two, and only this folder matches on
//! them.
//!
//! Why not what sqlx offers: its `Any` driver supports neither instants nor JSON and hides error codes; code generic
//! over its `Database` needs a page of bounds at every function, and is compiled twice.
//!
//! Every wait is bounded: a transaction carries its deadline.

mod failure;
mod instant;
mod migrations;
mod pool;
mod row;
mod sql;
mod time_limit;
mod tx;
mod value;

pub use migrations::Schema;
pub use pool::DatabaseTimeouts;

pub(crate) use failure::bad_cell;
pub(crate) use migrations::{migrate, schema};
pub(crate) use pool::{Connections, DatabasePool};
pub(crate) use row::SqlRow;
pub(crate) use sql::{Sql, sql};
pub(crate) use tx::Tx;
pub(crate) use value::{Json, SqlValue};

use std::pin::Pin;

use crate::Result;

/// What the database will answer.
///
/// Boxed, because the compiler builds the code of an `async fn` anew in every crate that awaits it, and in each of its
/// codegen units: the drivers of both databases, dozens of times. An allocation beside a round trip costs nothing.
pub(crate) type DatabaseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
