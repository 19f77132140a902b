//! What must hold between settings, each of which is right by itself.

use tollgate_rules::problem::Fault;

use super::{Config, Mistake};
use crate::net::Address;

/// Most addresses of one kind.
const ADDRESSES_MAX: usize = 16;

impl Config {
    /// Settings that do not go together: the one to point at, and why.
    pub fn conflicts(&self) -> Vec<(&'static str, Fault)> {
        let mut found = Vec::new();
        let halves = [("tls_cert", &self.tls_cert, "tls_key"), ("tls_key", &self.tls_key, "tls_cert")];
        for (name, value, other) in halves {
            if value.is_some() && (self.tls_cert.is_none() || self.tls_key.is_none()) {
                let message = format!("{name} is set and {other} is not");
                found.push((name, Fault::new(message, "TLS needs both, and plain text neither")));
            }
        }
        if self.http.len() > ADDRESSES_MAX {
            let message = format!("{} addresses are too many", self.http.len());
            found.push(("http", Fault::new(message, format!("at most {ADDRESSES_MAX} are served"))));
        }
        found.extend(self.shared_address());
        found.extend(self.store.conflicts());
        found
    }

    /// Whether only callers whom somebody meant to serve can reach this server.
    ///
    /// Any address that other machines reach needs tokens, or the explicit word that it needs none.
    pub fn check_exposure(&self) -> Result<(), Mistake> {
        if self.allow_anonymous {
            return Ok(());
        }
        let asks = |name: &str| name == "http" && self.token_file.is_some(); // tokens are for callers, not for operators
        let exposed = self.addresses().filter(|(name, address)| !address.is_loopback() && !asks(name));
        let exposed: Vec<String> = exposed.map(|(name, address)| format!("{name} {address}")).collect();
        if exposed.is_empty() {
            return Ok(());
        }
        let help = match self.token_file {
            None => {
                "set token_file (--token-file FILE) to serve only callers with a token (http alone: admin and \
                     metrics ask for none), or allow_anonymous (--allow-anonymous) to serve everyone"
            }
            Some(_) => {
                "admin and metrics ask for no token: keep them on this machine, behind a proxy that asks, or set \
                        allow_anonymous (--allow-anonymous); callers of http still need theirs"
            }
        };
        let fault = Fault::new("reachable from other machines without a token", help);
        Err(Mistake { place: exposed.join(" and "), fault })
    }

    /// Every address with its setting.
    fn addresses(&self) -> impl Iterator<Item = (&'static str, &Address)> {
        let http = self.http.iter().map(|address| ("http", address));
        let admin = self.admin.iter().map(|address| ("admin", address));
        http.chain(admin).chain(self.metrics.iter().map(|address| ("metrics", address)))
    }

    /// The first address that is given twice; the second listener could not bind it.
    fn shared_address(&self) -> Option<(&'static str, Fault)> {
        let mut seen: Vec<(&str, &Address)> = Vec::new();
        for (name, address) in self.addresses().filter(|(_, address)| !address.is_any_port()) {
            if let Some((first, _)) = seen.iter().find(|(_, other)| *other == address) {
                let message = match *first == name {
                    true => format!("{address} is given twice"),
                    false => format!("{address} is also the address of {first}"),
                };
                return Some((name, Fault::new(message, "give each listener an address of its own")));
            }
            if seen.len() < ADDRESSES_MAX {
                seen.push((name, address));
            }
        }
        None
    }
}
