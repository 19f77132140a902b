//! What store and fleet counted, in the words of metrics.

use tollgate_store::Store;

use super::stand_in::{Fleet, RedisStore};
use crate::telemetry::{ShardFigures, ShardState, StoreFigures};

pub(super) fn of(fleet: &Fleet<RedisStore>) -> StoreFigures {
    let address = fleet.inner().address();
    let shard = ShardFigures { address, state: ShardState::Down, ..ShardFigures::default() };
    StoreFigures { shards: vec![shard], nodes: fleet.nodes(), ..StoreFigures::default() }
}
