//! `/ready`: whether this node accepts requests.

use tollgate_service::refusal::write_json;
use tollgate_service::{HealthDetail, Reply};

use super::DataApi;

impl DataApi {
    /// 503 while draining; otherwise 200 with the state of the store.
    pub(super) async fn ready(&self, reply: &mut Reply) {
        if self.drain.is_announced() {
            return write_json(503, "{\"ready\":false,\"reason\":\"draining\"}", reply);
        }
        write_json(200, &self.service.store_health(HealthDetail::States).await, reply);
    }
}
