//! Which URLs a webhook may have.

use std::fmt;

use tollgate_outbound::{Networks, OutboundClient, OutboundUrl};
use tollgate_rules::Glob;

/// Which URLs a webhook may have, and the client that calls them. Checked when a webhook is made, and for every message:
/// settings and name servers change.
#[derive(Clone, Debug)]
pub struct WebhookPolicy {
    client: OutboundClient,
    /// In lower case; any host if empty.
    hosts: Vec<String>,
}

/// Why a URL is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRefusal(String);

impl fmt::Display for UrlRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl WebhookPolicy {
    /// A policy for these networks, and these hosts or any.
    pub fn new(networks: Networks, hosts: &[String]) -> Result<WebhookPolicy, rustls::Error> {
        let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Ok(WebhookPolicy { client: OutboundClient::new(networks)?, hosts })
    }

    /// The URL of a text, if a webhook may have it.
    pub fn url(&self, text: &str) -> Result<OutboundUrl, UrlRefusal> {
        let url: OutboundUrl = text.parse().map_err(|error| UrlRefusal(format!("{error}")))?;
        self.client.check(&url).map_err(|error| UrlRefusal(error.to_string()))?;
        let host = url.host();
        let is_host = |wanted: &String| match Glob::parse(wanted) {
            Some(glob) => glob.matches(&host),
            None => *wanted == host,
        };
        match self.hosts.is_empty() || self.hosts.iter().any(is_host) {
            true => Ok(url),
            false => Err(UrlRefusal("the host is not among `webhook_hosts`".to_owned())),
        }
    }

    pub(crate) fn client(&self) -> &OutboundClient {
        &self.client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_those_of_the_list() {
        let hosts = ["hooks.example.com".to_owned(), "*.Example.org".to_owned()];
        let policy = WebhookPolicy::new(Networks::Public, &hosts).unwrap();
        for good in ["https://hooks.example.com/x", "https://HOOKS.example.com./", "https://a.b.example.org/"] {
            assert!(policy.url(good).is_ok(), "{good}");
        }
        for bad in [
            "https://example.com/",
            "https://hooks.example.com.evil.net/",
            "https://example.org/",
            "http://a.example.org/",
        ] {
            assert!(policy.url(bad).is_err(), "{bad}");
        }
        let any = WebhookPolicy::new(Networks::Any, &[]).unwrap();
        assert!(any.url("http://127.0.0.1:9/").is_ok());
        assert!(any.url("http://a@127.0.0.1:9/").is_err());
    }
}
