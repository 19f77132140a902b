//! Forward-auth: a proxy sends a check before it forwards a request, and acts on the status of the response.
//!
//! nginx, Traefik, Caddy, Envoy and HAProxy agree on this: 200 forwards the request, any other status below 500 goes to
//! the client, and 500 and above mean that the limiter failed, so that the proxy follows its own failure setting. Hence
//! an allowed request gets exactly 200 with an empty body, a denied one gets one status, and 500 and above are reserved
//! for failures of the server.
//!
//! | file | what |
//! |---|---|
//! | `convert` | a check to a request |
//! | `refuse` | responses to checks that cannot be read |

mod convert;
mod refuse;

pub(crate) use convert::below_prefix;
pub use convert::{AuthCheck, AuthReader, PREFIX};
pub(crate) use refuse::{write_disabled, write_unreadable_head};

use std::sync::Arc;

use tollgate_config::{AuthSettings, AuthSource};
use tollgate_net::Peer;
use tollgate_service::Decision;
use tollgate_service::data_tokens::DataTokens;
use tollgate_service::render::{self, ProxyResponseOptions, ResponseOptions};
use tollgate_service::{PendingCheck, Reply, Service};
use tollgate_telemetry::LogThrottle;
use tollgate_web::{Head, HeaderLookup, PendingResponse};
use tracing::warn;

use refuse::{AuthError, bad_request_status};

/// Answers the checks of proxies.
pub struct ForwardAuth {
    reader: AuthReader,
    deny_status: u16,
    closed_status: u16,
    max_body: usize,
    service: Arc<Service>,
    log: LogThrottle,
}

impl ForwardAuth {
    /// Forward-auth as configured; `None` if it is off.
    pub(crate) fn new(service: Arc<Service>, settings: &AuthSettings, max_body: usize) -> Option<ForwardAuth> {
        (settings.source != AuthSource::Off).then(|| ForwardAuth {
            reader: AuthReader::new(settings),
            deny_status: settings.deny_status,
            closed_status: settings.closed_status,
            max_body,
            service,
            log: LogThrottle::by_the_minute(),
        })
    }

    /// True for proxies that understand only 403 as a denial.
    pub(crate) fn denies_with_403(&self) -> bool {
        self.deny_status == 403
    }
}

impl ForwardAuth {
    pub(crate) fn prepare(
        &self,
        peer: &Peer,
        head: &Head<'_>,
        below: &str,
        reply: &mut Reply,
    ) -> Option<(AuthCheck, usize)> {
        let known = |tokens: &Arc<DataTokens>| match head.headers.find("authorization") {
            HeaderLookup::Once(value) => {
                tokens.authorize(Some(value)).is_some_and(|scope| tokens.covers(scope, self.reader.namespace()))
            }
            HeaderLookup::Absent | HeaderLookup::Repeated => false,
        };
        let check = match self.service.tokens.as_ref().is_none_or(known) {
            true => self.reader.check(peer, head, below),
            false => Err(AuthError::NoToken),
        };
        match check {
            Ok(check) => {
                self.warn_of_untrusted_proxy(&check);
                Some((check, self.max_body))
            }
            Err(error) => {
                self.warn_of_misconfiguration(&error);
                error.write(self.deny_status, reply);
                None
            }
        }
    }

    /// Logs that all clients of an untrusted proxy count as one, so that the operator sees why.
    fn warn_of_untrusted_proxy(&self, check: &AuthCheck) {
        if !check.is_trusted
            && let Some(unsaid) = self.log.admit("untrusted_proxy")
        {
            warn!(
                unsaid,
                "a proxy that is not in trusted_proxies sends checks: its clients count as one, by its own address"
            );
        }
    }

    /// Logs mistakes in the proxy's configuration: its clients only see denials.
    fn warn_of_misconfiguration(&self, error: &AuthError) {
        match error {
            AuthError::NoOriginal(header) => {
                if let Some(unsaid) = self.log.admit("original") {
                    warn!(
                        header,
                        unsaid,
                        "a check without the original request was refused: the proxy must send this header, or \
                         auth_source must be changed"
                    );
                }
            }
            AuthError::NoClient => {
                if let Some(unsaid) = self.log.admit("client") {
                    warn!(
                        unsaid,
                        "a check without a client address was refused: over a Unix domain socket the proxy must send \
                         X-Forwarded-For"
                    );
                }
            }
            _ => {}
        }
    }

    /// Decides at once, or by the returned future if it has to wait for the store.
    pub(crate) fn begin<'a>(&'a self, check: &'a AuthCheck, reply: &'a mut Reply) -> Option<PendingResponse<'a>> {
        let pending = self.decide_now(check, reply)?;
        Some(Box::pin(async move {
            let custom = self.reader.custom(check);
            let requests = [self.reader.request(check, &custom)];
            let decision = self.service.decide_pending(&requests, pending).await;
            self.write(check, &decision, reply);
        }))
    }

    fn decide_now(&self, check: &AuthCheck, reply: &mut Reply) -> Option<PendingCheck> {
        let custom = self.reader.custom(check);
        match self.service.try_decide(&[self.reader.request(check, &custom)]) {
            Ok(decision) => {
                self.write(check, &decision, reply);
                None
            }
            Err(pending) => Some(pending),
        }
    }

    fn write(&self, check: &AuthCheck, decision: &Decision, reply: &mut Reply) {
        let options = ResponseOptions {
            media: check.media,
            random: tollgate_service::random::fast(),
            ..ResponseOptions::default()
        };
        let (refused, closed, unreadable) =
            (self.deny_status, self.closed_status, bad_request_status(self.deny_status));
        let options = ProxyResponseOptions { options, denied: refused, closed, unreadable };
        render::write_proxied(decision, &options, &self.service.render, reply);
    }
}
