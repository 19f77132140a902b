//! SQL, for two databases, as little of it as the control plane needs.
//!
//! One text of SQL serves both wherever both understand it, which is almost everywhere: `$1`, `ON CONFLICT`, `RETURNING`.
//! What differs is what a column is made of (an instant is a `TIMESTAMPTZ` here and text there) and how a transaction
//! begins. So there is one type for what goes in ([`SqlValue`]), one for what comes out ([`SqlRow`]), and one for the
//! transaction between ([`Tx`]); each is an enum of two, and the only files that look inside are in this folder.
//!
//! Why not the two ways that sqlx offers: its `Any` driver knows neither instants nor JSON, and hides from us which
//! error it was; code generic over its `Database` needs a page of bounds at every function, and both halves compiled
//! wherever it is used.
//!
//! Everything here ends: a transaction carries the instant by which it must be done, and whatever waits, waits no longer.

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

pub(crate) use failure::bad_cell;
pub(crate) use migrations::{migrate, schema};
pub(crate) use pool::DatabasePool;
pub(crate) use row::SqlRow;
pub(crate) use sql::{Sql, sql};
pub(crate) use tx::Tx;
pub(crate) use value::{Json, SqlValue};
