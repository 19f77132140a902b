//! The clients that are closest to the limit of a rule.

use tollgate_core::Time;

use crate::space_saving::shortened;

/// Clients that are kept.
const CLIENTS_MAX: usize = 32;

/// Clients that last used at least half of a limit.
#[derive(Debug, Default)]
pub(crate) struct ClosestClients {
    keys: Vec<u64>,
    clients: Vec<CloseClient>,
}

/// How much of its limit a client used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloseClient {
    /// The digest of the client.
    pub key: u64,
    /// Its name.
    pub name: String,
    /// Units in use.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// When that was.
    pub at: Time,
    /// When the bucket is empty again, if nothing else happens.
    pub empty_at: Time,
}

impl CloseClient {
    /// Per mille of the limit.
    pub fn share(&self) -> u64 {
        (u128::from(self.used) * 1000 / u128::from(self.limit.max(1))).try_into().unwrap_or(u64::MAX)
    }
}

impl ClosestClients {
    /// Notes what a client used. Below half of the limit it is not kept.
    pub(crate) fn note(&mut self, name: &str, seen: CloseClient) {
        let known = self.keys.iter().position(|key| *key == seen.key);
        if seen.limit == 0 || seen.used.saturating_mul(2) < seen.limit {
            if let Some(place) = known {
                self.keys.swap_remove(place);
                self.clients.swap_remove(place);
            }
            return;
        }
        let place = known.or_else(|| (self.clients.len() < CLIENTS_MAX).then_some(self.clients.len()));
        let place = place.or_else(|| self.least(&seen));
        let Some(place) = place else { return };
        match self.clients.get_mut(place) {
            Some(client) => {
                let mut kept = std::mem::take(&mut client.name);
                if known.is_none() {
                    kept.clear();
                    kept.push_str(shortened(name));
                    self.keys.get_mut(place).into_iter().for_each(|key| *key = seen.key);
                }
                *client = CloseClient { name: kept, ..seen };
            }
            None => {
                self.keys.push(seen.key);
                self.clients.push(CloseClient { name: shortened(name).to_owned(), ..seen });
            }
        }
    }

    /// The client that makes room: one whose bucket is empty by now, or the one farthest from its limit.
    fn least(&self, seen: &CloseClient) -> Option<usize> {
        let share = |client: &CloseClient| if client.empty_at <= seen.at { 0 } else { client.share() };
        let (place, least) = self.clients.iter().enumerate().min_by_key(|(_, client)| share(client))?;
        (share(least) < seen.share()).then_some(place)
    }

    /// Those whose buckets are not empty by now.
    pub(crate) fn at(&self, now: Time) -> impl Iterator<Item = &CloseClient> {
        self.clients.iter().filter(move |client| client.empty_at > now)
    }
}
