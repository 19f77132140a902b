//! Which server of an upstream gets a request: by load, or always the same one for a key.

use std::sync::Arc;

use tollgate_overload::{ServerLoad, least_loaded, preferred};
use tollgate_service::random;

use super::{Exchange, Upstream, UpstreamServer};
use crate::spec::Balance;

/// Requests in flight that a server may have whatever its share is: a caller with few of them keeps its server.
const SLACK: usize = 8;

impl Upstream {
    /// The server for a request, of those that are available, and one that was not `tried` where there is one. An only
    /// server is never left out for failing: there is no other.
    pub(super) fn choose(&self, exchange: &Exchange<'_>, tried: &[Arc<UpstreamServer>]) -> Option<Arc<UpstreamServer>> {
        if let [only] = self.servers.as_slice() {
            return only.is_available().then(|| only.clone());
        }
        let usable = self.usable();
        let is_new = |server: &Arc<UpstreamServer>| !tried.iter().any(|other| Arc::ptr_eq(other, server));
        let found = match tried.is_empty() {
            true => None,
            false => self.best(exchange, |server| usable(server) && is_new(server)),
        };
        let index = found.or_else(|| self.best(exchange, usable))?;
        self.servers.get(index).cloned()
    }

    fn best(&self, exchange: &Exchange<'_>, usable: impl Fn(&Arc<UpstreamServer>) -> bool) -> Option<usize> {
        let server = |slack: usize| {
            let usable = &usable;
            move |index: usize| {
                let server = self.servers.get(index).filter(|server| usable(server))?;
                let in_flight = u32::try_from(server.in_flight().saturating_sub(slack)).unwrap_or(u32::MAX);
                Some(ServerLoad { in_flight, hash: server.hash })
            }
        };
        let key = match self.spec.balance {
            Balance::LeastLoaded => return least_loaded(self.servers.len(), server(0), random::fast()),
            Balance::Caller => exchange.caller,
            Balance::Path => exchange.path,
        };
        preferred(self.servers.len(), server(SLACK), ServerLoad::hash_of(key.as_bytes()))
    }

    /// Whether a server is used. If all of them fail, the servers are not the cause: then failing leaves none out.
    fn usable(&self) -> fn(&Arc<UpstreamServer>) -> bool {
        match self.servers.iter().any(|server| server.is_available()) {
            true => |server| server.is_available(),
            false => |server| server.is_healthy(),
        }
    }
}
