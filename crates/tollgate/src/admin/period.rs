//! The flags that restrict a list to a period.

use tollgate_core::Time;

use crate::client::ApiCall;
use crate::when;

/// From when, until when.
#[derive(Clone, Debug, clap::Args)]
pub struct PeriodArgs {
    /// Not before: RFC 3339, or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    from: Option<Time>,
    /// Before: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    to: Option<Time>,
}

impl PeriodArgs {
    /// Adds the period to the query of a call.
    pub fn restrict(&self, call: ApiCall) -> ApiCall {
        let call = call.query_some("from", self.from.map(when::text).as_deref());
        call.query_some("to", self.to.map(when::text).as_deref())
    }
}
