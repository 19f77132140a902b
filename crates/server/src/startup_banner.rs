//! The text that a server prints when it is ready.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::control_plane::FirstToken;
use crate::run::Server;
use crate::surface::Surface;
use tollgate_config::AuthSource;
use tollgate_http::forward_auth::PREFIX;
use tollgate_net::Address;
use tollgate_net::tls::Tls;

impl Server {
    /// Addresses, warnings, rules, and a call to try.
    pub fn startup_banner(&self) -> String {
        let scheme = |tls: &Option<Arc<Tls>>| if tls.is_some() { "https" } else { "http" };
        let mut text = String::new();
        let mut curl = None;
        for (surface, address) in self.addresses() {
            let scheme = match surface {
                Surface::Data | Surface::Gateway => scheme(&self.certificates.data),
                Surface::Admin => scheme(&self.certificates.admin),
                Surface::Metrics => scheme(&self.certificates.metrics),
                Surface::Grpc => {
                    if self.certificates.data.is_some() {
                        "grpcs"
                    } else {
                        "grpc"
                    }
                }
                Surface::Resp => {
                    if self.certificates.data.is_some() {
                        "rediss"
                    } else {
                        "redis"
                    }
                }
            };
            let (url, call) = match &address {
                Address::Tcp(at) => (format!("{scheme}://{at}"), format!("{scheme}://{at}")),
                Address::Unix(path) => (
                    format!("unix:{}", path.display()),
                    format!("--unix-socket {} {scheme}://localhost", path.display()),
                ),
            };
            match surface {
                Surface::Data => {
                    text += &format!("listening on {url}\n");
                    curl.get_or_insert(call);
                }
                Surface::Gateway => text += &format!("gateway on {url}, to {}\n", self.forwarded_to()),
                Surface::Admin => text += &format!("admin on {url}, console at /, API at /docs, metrics at /metrics\n"),
                Surface::Metrics => text += &format!("metrics on {url}\n"),
                Surface::Grpc => text += &format!("gRPC on {url}\n"),
                Surface::Resp => text += &format!("RESP on {url}\n"),
            }
        }
        for exposure in self.config.exposures() {
            text += &format!("WARNING: {exposure}\n");
        }
        text += &self.forward_auth();
        text += &self.rules();
        text += &self.first_token();
        let shown = match (&self.certificates.data, &self.config.tls_client_ca) {
            (None, _) => "",
            (Some(_), None) => " --insecure",
            (Some(_), Some(_)) => " --insecure --cert CERTIFICATE --key KEY", // the caller's own
        };
        let token = if self.parts.service.tokens.is_some() { " -H 'Authorization: Bearer TOKEN'" } else { "" };
        let native = r#"{"client_key":"user:42","endpoint":"/api/orders","tier":"free"}"#.to_owned();
        let (path, body) = self.descriptor().map_or(("v1/check", native), |body| ("json", body));
        if let Some(call) = curl {
            text += &format!("try: curl -s{shown}{token} {call}/{path} -d '{body}'\n");
        }
        text
    }

    /// A request that matches a limit of Envoy's files, if there are no other rules.
    fn descriptor(&self) -> Option<String> {
        let pinned = self.parts.engine.rules();
        let rules = pinned.rules.rules();
        let rule = rules.iter().find(|rule| rule.envoy.as_ref().is_some_and(|envoy| !envoy.overrides))?;
        let own = rule.envoy.as_ref().filter(|_| rules.iter().all(|rule| rule.envoy.is_some()))?;
        let entries: Vec<Value> = own.example().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let body = json!({ "domain": rule.namespace, "descriptors": [{ "entries": entries }] });
        Some(body.to_string().replace('\'', r"'\''"))
    }

    /// Where the gateway sends requests.
    fn forwarded_to(&self) -> String {
        let settings = &self.config.gateway;
        match &settings.routes {
            Some(routes) => format!("the upstreams of {}, read again when it changes", routes.display()),
            None => settings.upstream.join(" and "),
        }
    }

    /// The number of limits in Envoy's files, and of their domains.
    fn limits(&self) -> (usize, usize) {
        let pinned = self.parts.engine.rules();
        let limits = pinned.rules.rules().iter().filter(|rule| rule.envoy.as_ref().is_some_and(|own| !own.overrides));
        let domains: Vec<&str> = limits.map(|rule| rule.namespace.as_str()).collect();
        (domains.len(), domains.iter().collect::<BTreeSet<_>>().len())
    }

    /// The path for proxies, and where they must send the original request.
    fn forward_auth(&self) -> String {
        let from = match self.config.auth.source {
            AuthSource::Off => return String::new(),
            AuthSource::Forwarded => "X-Forwarded-Method and X-Forwarded-Uri",
            AuthSource::Original => "X-Original-Method and X-Original-URI",
            AuthSource::Path => "the method and path of the check",
        };
        format!("forward-auth at {PREFIX}, the original request from {from}\n")
    }

    /// How many rules there are, and where they come from.
    fn rules(&self) -> String {
        let file = self.config.rules.as_ref();
        let (limits, domains) = self.limits();
        let all = self.parts.engine.rules().rules.rules().iter().filter(|rule| rule.envoy.is_none()).count();
        let of_file = self.control_plane.file_rules();
        let mut text = match file {
            Some(file) => format!("{of_file} rules from {}, read again when it changes\n", file.display()),
            None => String::new(),
        };
        if let Some(directory) = &self.config.envoy.config {
            let many = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
            let (limits, domains) = (many(limits, "limit"), many(domains, "domain"));
            text += &format!("{limits} of {domains} from {}, read again when they change\n", directory.display());
        }
        if let Some(place) = self.config.control.place().filter(|_| self.control_plane.control.is_some()) {
            text += &format!("{} rules from {place}, changed with: tollgate rules\n", all.saturating_sub(of_file));
        }
        if all + limits == 0 {
            text += match self.control_plane.control {
                Some(_) => "no rules yet: everything is allowed; add some with --rules FILE or tollgate rules create\n",
                None => "no rules: everything is allowed; add some with --rules FILE\n",
            };
        }
        text
    }

    fn first_token(&self) -> String {
        match &self.control_plane.first_token {
            None => String::new(),
            Some(FirstToken::Shown(token)) => {
                format!("the first admin token, shown this once: export TOLLGATE_TOKEN={token}\n")
            }
            Some(FirstToken::Written(path)) => {
                format!("the first admin token is in {}, for this user alone\n", path.display())
            }
        }
    }
}
