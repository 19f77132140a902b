//! Checks between settings that are each valid by themselves.

use std::path::PathBuf;

use tollgate_net::Address;
use tollgate_rules::problem::ParseError;

use crate::config::Config;
use crate::control::DbPlace;
use crate::error::Mistake;

/// Most addresses of one kind.
const ADDRESSES_MAX: usize = 16;

impl Config {
    /// Conflicting settings: the one to report, and why.
    pub fn conflicts(&self) -> Vec<(&'static str, ParseError)> {
        let mut found = Vec::new();
        found.extend(self.listener_tls().iter().flat_map(TlsSettings::conflicts));
        if self.http.len() > ADDRESSES_MAX {
            let message = format!("{} addresses are too many", self.http.len());
            found.push(("http", ParseError::new(message, format!("at most {ADDRESSES_MAX} are served"))));
        }
        if self.require_token && self.token_file.is_none() && self.control.db == DbPlace::Off {
            let help = "keep a database (db), or name a token_file";
            found.push((
                "require_token",
                ParseError::new("there is no database whose tokens callers could present", help),
            ));
        }
        found.extend(self.shared_address());
        found.extend(self.store.conflicts());
        found.extend(self.auth.conflicts(self.asks_for_token()));
        found
    }

    /// The TLS of each listener that may have one.
    fn listener_tls(&self) -> [TlsSettings<'_>; 3] {
        let control = &self.control;
        [
            TlsSettings {
                names: ["tls_cert", "tls_key", "tls_client_ca", "tls_client_names"],
                halves: [&self.tls_cert, &self.tls_key],
                client_ca: &self.tls_client_ca,
                client_names: &self.tls_client_names,
            },
            TlsSettings {
                names: ["admin_tls_cert", "admin_tls_key", "admin_client_ca", "admin_client_names"],
                halves: [&control.tls_cert, &control.tls_key],
                client_ca: &control.client_ca,
                client_names: &control.client_names,
            },
            TlsSettings {
                names: ["metrics_tls_cert", "metrics_tls_key", "", ""],
                halves: [&self.metrics_tls_cert, &self.metrics_tls_key],
                client_ca: &None,
                client_names: &[],
            },
        ]
    }

    /// Rejects addresses that other machines reach unintentionally.
    ///
    /// Such an address needs tokens, and the admin API also TLS, or a setting that explicitly waives them.
    pub fn check_exposure(&self) -> Result<(), Mistake> {
        let exposed = |wanted: &str, fine: bool| {
            let reached = self.addresses().filter(|(name, address)| *name == wanted && !address.is_loopback());
            reached.filter(|_| !fine).map(|(name, address)| format!("{name} {address}")).collect::<Vec<_>>()
        };
        let rows = [
            (
                exposed("http", self.asks_for_token() || self.allow_anonymous),
                "reachable from other machines without a token",
                "set token_file (--token-file FILE) to serve only callers with a token, or allow_anonymous \
                 (--allow-anonymous) to serve everyone",
            ),
            (
                exposed("grpc", self.asks_for_token() || self.allow_anonymous),
                "reachable from other machines without a token",
                "set token_file (--token-file FILE) to serve only callers with a token, or allow_anonymous \
                 (--allow-anonymous) to serve everyone",
            ),
            (
                exposed("resp", self.resp.password_file.is_some() || self.allow_anonymous),
                "reachable from other machines without a password",
                "set resp_password_file (--resp-password-file FILE) to serve only callers with it, or allow_anonymous \
                 (--allow-anonymous) to serve everyone",
            ),
            (
                exposed("admin", self.control.tls_cert.is_some() || self.control.insecure),
                "reachable from other machines without TLS: tokens would travel in the clear",
                "set admin_tls_cert and admin_tls_key, keep it on this machine, or set insecure_admin \
                 (--insecure-admin) if something else protects the way",
            ),
            (
                exposed("metrics", self.allow_anonymous || self.control.insecure),
                "reachable from other machines, and /metrics there asks for no token",
                "keep it on this machine, behind a proxy that asks, or set allow_anonymous (--allow-anonymous)",
            ),
        ];
        match rows.into_iter().find(|(exposed, ..)| !exposed.is_empty()) {
            None => Ok(()),
            Some((exposed, what, help)) => {
                Err(Mistake { place: exposed.join(" and "), fault: ParseError::new(what, help) })
            }
        }
    }

    /// Whether callers of the data API must present a token.
    pub fn asks_for_token(&self) -> bool {
        self.token_file.is_some() || self.require_token
    }

    /// Warnings about a configuration that may start: listeners without TLS or without tokens that other machines
    /// reach, and RESP without a password on this machine where others ask for tokens.
    pub fn exposures(&self) -> Vec<String> {
        let mut found = Vec::new();
        let resp = self.resp.address.as_ref().filter(|address| address.is_loopback());
        if let Some(address) = resp.filter(|_| self.asks_for_token() && self.resp.password_file.is_none()) {
            found.push(format!(
                "resp {address} asks for no password, though callers of other listeners need a token: every program on \
                 this machine may charge there; set resp_password_file"
            ));
        }
        for (name, address) in self.addresses().filter(|(_, address)| !address.is_loopback()) {
            let (has_tls, asks, cert) = match name {
                "admin" => (self.control.tls_cert.is_some(), true, "admin_tls_cert and admin_tls_key"),
                "metrics" => (self.metrics_tls_cert.is_some(), false, "metrics_tls_cert and metrics_tls_key"),
                "listen" => (self.tls_cert.is_some(), true, "tls_cert and tls_key"), // identities are up to the routes
                "resp" => (self.tls_cert.is_some(), self.resp.password_file.is_some(), "tls_cert and tls_key"),
                _ => (self.tls_cert.is_some(), self.asks_for_token(), "tls_cert and tls_key"),
            };
            if !has_tls {
                let secrets = if asks { "tokens, passwords and client keys" } else { "client keys" };
                found.push(format!(
                    "{name} {address} is reachable from other machines without TLS: {secrets} travel in the clear; \
                     set {cert}, or let something else protect the way"
                ));
            }
            if !asks {
                found.push(format!(
                    "{name} {address} is open to all who reach it: it asks for no token; \
                     keep it on this machine or in a network of its own"
                ));
            }
        }
        found
    }

    /// Every address with its setting.
    fn addresses(&self) -> impl Iterator<Item = (&'static str, &Address)> {
        let http = self.http.iter().map(|address| ("http", address));
        let admin = self.admin.iter().map(|address| ("admin", address));
        let metrics = self.metrics.iter().map(|address| ("metrics", address));
        let grpc = self.grpc.address.iter().map(|address| ("grpc", address));
        let listen = self.gateway.listen.iter().map(|address| ("listen", address));
        http.chain(listen)
            .chain(grpc)
            .chain(self.resp.address.iter().map(|address| ("resp", address)))
            .chain(admin)
            .chain(metrics)
    }

    /// The first address that is given twice; the second listener could not bind it.
    fn shared_address(&self) -> Option<(&'static str, ParseError)> {
        let mut seen: Vec<(&str, &Address)> = Vec::new();
        for (name, address) in self.addresses().filter(|(_, address)| !address.is_any_port()) {
            if let Some((first, _)) = seen.iter().find(|(_, other)| *other == address) {
                let message = match *first == name {
                    true => format!("{address} is given twice"),
                    false => format!("{address} is also the address of {first}"),
                };
                return Some((name, ParseError::new(message, "give each listener an address of its own")));
            }
            if seen.len() < ADDRESSES_MAX {
                seen.push((name, address));
            }
        }
        None
    }
}

/// The TLS of one kind of listener, and the names of its settings: certificate, key, authorities and names of callers.
struct TlsSettings<'a> {
    names: [&'static str; 4],
    halves: [&'a Option<PathBuf>; 2],
    client_ca: &'a Option<PathBuf>,
    client_names: &'a [String],
}

impl TlsSettings<'_> {
    fn conflicts(&self) -> Vec<(&'static str, ParseError)> {
        let mut found = Vec::new();
        let [cert, key, ca, client_names] = self.names;
        let [has_cert, has_key] = self.halves.map(Option::is_some);
        let mut without = |name, other: &str, help: String| {
            found.push((name, ParseError::new(format!("{name} is set and {other} is not"), help)));
        };
        let both = || "TLS needs both, and plain text neither".to_owned();
        match (has_cert, has_key) {
            (true, false) => without(cert, key, both()),
            (false, true) => without(key, cert, both()),
            _ => {}
        }
        if self.client_ca.is_some() && !has_cert && !has_key {
            without(ca, cert, format!("set {cert} and {key}: clients show certificates over TLS only"));
        }
        if !self.client_names.is_empty() && self.client_ca.is_none() {
            without(client_names, ca, format!("set {ca}: without it nobody is asked for a certificate"));
        }
        found
    }
}
