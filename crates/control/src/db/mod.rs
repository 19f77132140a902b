//! The schema of the control plane. How both databases are spoken to is in `tollgate-sql`.

mod migrations;

pub use migrations::Schema;
pub use tollgate_sql::DatabaseTimeouts;

pub(crate) use migrations::{migrate, schema};
pub(crate) use tollgate_sql::{Connections, DatabaseFuture, DatabasePool, Json, Sql, SqlRow, SqlValue, Tx, sql};
