//! The mode that all nodes of a fleet follow, and the generation.

use serde_json::json;

use super::Control;
use crate::db::{Tx, sql};
use crate::edit::fleet_change;
use crate::write_tx::WriteTx;
use crate::{Author, Enforcement, Error, Instant, RecordKind, Result};

/// How far `since` may be ahead of the database's clock. Later instants are reduced to this: a clock that is wrong by a
/// year must not block the switch for a year.
const CLOCK_SKEW_MAX_MICROS: i64 = 1_000_000;

/// The row of `tollgate_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetState {
    /// The last generation.
    pub generation: i64,
    /// The mode that all nodes follow.
    pub mode: Enforcement,
    /// When it was set.
    pub mode_since: Instant,
}

impl Control {
    /// The current state; one small read.
    pub async fn state(&self) -> Result<FleetState> {
        self.read(async |tx| read_state(tx).await).await
    }

    /// Sets the mode of the fleet, with an audit row. `since` is when it was ordered: an older order never replaces a
    /// newer one, and of two with the same instant the first wins. Returns the state that is then in force.
    pub async fn set_mode(&self, mode: Enforcement, since: Instant, author: &Author) -> Result<FleetState> {
        let set = async move |write: &mut WriteTx| {
            let last = read_state(&mut write.tx).await?;
            if since <= last.mode_since {
                return Ok(last);
            }
            // Of a clock that is ahead no more is taken than the skew that is allowed; what was asked is later all the same,
            // also where both changes come within what the clock of the database can tell apart.
            let allowed = Instant(write.at.0.saturating_add(CLOCK_SKEW_MAX_MICROS));
            let since = since.min(allowed).max(Instant(last.mode_since.0.saturating_add(1)));
            write.tx.run(sql!("UPDATE tollgate_state SET mode = $1, mode_since = $2", mode.name(), since)).await?;
            let now = FleetState { mode, mode_since: since, ..last };
            write.record(fleet_change(RecordKind::Mode, "mode", Some(last.mode_json()), Some(now.mode_json())));
            Ok(now)
        };
        let (state, generation) = self.write(author, mode.name(), set).await?;
        Ok(FleetState { generation, ..state })
    }
}

impl FleetState {
    fn mode_json(&self) -> serde_json::Value {
        json!({"mode": self.mode.name(), "since": self.mode_since.to_string()})
    }
}

async fn read_state(tx: &mut Tx) -> Result<FleetState> {
    let Some(row) = tx.one(sql!("SELECT generation, mode, mode_since FROM tollgate_state")).await? else {
        return Err(Error::Schema("tollgate_state has lost its row; restore the database".to_owned()));
    };
    let mode: String = row.get(1)?;
    let mode = Enforcement::named(&mode).unwrap_or_else(|| {
        // An unknown value cannot be interpreted.
        tracing::error!(%mode, "tollgate_state.mode is none of off, shadow, enforce: limits are enforced");
        Enforcement::default()
    });
    Ok(FleetState { generation: row.get(0)?, mode, mode_since: row.get(2)? })
}
