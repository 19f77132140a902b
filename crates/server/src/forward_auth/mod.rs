//! Forward-auth: a proxy asks here before it passes a request on, and looks at the status of the answer.
//!
//! nginx, Traefik, Caddy, Envoy and HAProxy have this in common: 200 lets the request pass, everything else below 500 is
//! the client's answer, and from 500 on the limiter has failed and the proxy does as it was told. So an allowed request
//! is exactly 200 with an empty body, a refused one has one status, and 500 and above are left to faults of our own.

mod client;
mod convert;
mod refuse;

pub use client::Trust;
pub use convert::{PREFIX, Question, Reading};

use std::sync::Arc;

use tollgate_core::Time;
use tollgate_engine::{Decision, Undecided};
use tracing::warn;

use crate::Reply;
use crate::answer::{self, Asking, Proxied};
use crate::api::{Api, Plan as ApiPlan, Shared, lap, tokens::Tokens};
use crate::config::{AuthSettings, AuthSource};
use crate::http::{Answer, Fault, Found, Head, Pending};
use crate::net::Peer;
use crate::telemetry::Quiet;
use convert::below_prefix;
use refuse::{Refused, bad_request, refuse_all, refuse_head};

/// The data API with `/v1/auth` in front of it.
pub struct Front {
    api: Api,
    auth: Option<ForwardAuth>,
}

/// What is remembered of a head while its body is read.
#[derive(Debug)]
pub enum Plan {
    /// A call of the data API.
    Api(ApiPlan),
    /// A check.
    Auth(Box<Question>),
}

struct ForwardAuth {
    reading: Reading,
    deny_status: u16,
    closed_status: u16,
    shared: Arc<Shared>,
    quiet: Quiet,
}

impl Front {
    /// The API, with checks as they are configured.
    pub fn new(api: Api, shared: Arc<Shared>, settings: &AuthSettings) -> Front {
        let auth = (settings.source != AuthSource::Off).then(|| ForwardAuth {
            reading: Reading::new(settings),
            deny_status: settings.deny_status,
            closed_status: settings.closed_status,
            shared,
            quiet: Quiet::by_the_minute(),
        });
        Front { api, auth }
    }
}

impl Answer for Front {
    type Plan = Plan;

    fn open(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(Plan, usize)> {
        if let Some(below) = below_prefix(head.path) {
            match &self.auth {
                Some(auth) => return auth.open(peer, head, below, reply),
                None => refuse_all(reply),
            }
            return None;
        }
        self.api.open(peer, head, reply).map(|(plan, most)| (Plan::Api(plan), most))
    }

    async fn answer(&self, plan: &Plan, body: &[u8], reply: &mut Reply) {
        match (plan, &self.auth) {
            (Plan::Api(plan), _) => self.api.answer(plan, body, reply).await,
            (Plan::Auth(question), Some(auth)) => {
                if let Some(pending) = auth.begin(question, reply) {
                    pending.await;
                }
            }
            (Plan::Auth(_), None) => self.api.refuse(Fault::Panicked, reply), // nobody makes such a plan
        }
    }

    fn begin<'a>(&'a self, plan: &'a Plan, body: &'a [u8], reply: &'a mut Reply) -> Option<Pending<'a>> {
        match (plan, &self.auth) {
            (Plan::Api(plan), _) => self.api.begin(plan, body, reply),
            (Plan::Auth(question), Some(auth)) => auth.begin(question, reply),
            (Plan::Auth(_), None) => Some(Box::pin(self.answer(plan, body, reply))),
        }
    }

    /// Most fields of a check are the client's own, and none of those that may stand once is taken from the head.
    fn may_repeat(&self, head: &Head<'_>) -> bool {
        self.auth.is_some() && below_prefix(head.path).is_some()
    }

    fn refuse(&self, fault: Fault, reply: &mut Reply) {
        // Another status is, to a proxy that knows 403 alone, a failure of ours, and clients could make it one at will.
        let only_403 = self.auth.as_ref().is_some_and(|auth| auth.deny_status == 403);
        match fault {
            Fault::Malformed(_) | Fault::TargetTooLong | Fault::HeadTooLarge | Fault::Expectation if only_403 => {
                refuse_head(reply);
            }
            fault => self.api.refuse(fault, reply),
        }
    }

    fn answered(&self, plan: Option<&Plan>, status: u16) {
        match plan {
            None => self.api.answered(None, status),
            Some(Plan::Api(plan)) => self.api.answered(Some(plan), status),
            Some(Plan::Auth(_)) => self.api.shared().metrics.http_answered(PREFIX, status),
        }
    }
}

impl ForwardAuth {
    fn open(&self, peer: &Peer, head: &Head<'_>, below: &str, reply: &mut Reply) -> Option<(Plan, usize)> {
        let known = |tokens: &Arc<Tokens>| match head.received.find("authorization") {
            Found::Once(value) => {
                tokens.admit(Some(value)).is_some_and(|pass| tokens.may(pass, self.reading.namespace()))
            }
            Found::Absent | Found::Repeated => false,
        };
        let question = match self.shared.tokens.as_ref().is_none_or(known) {
            true => self.reading.question(peer, head, below),
            false => Err(Refused::NoToken),
        };
        match question {
            Ok(question) => {
                self.warn_of_strangers(&question);
                Some((Plan::Auth(Box::new(question)), self.shared.limits.max_body))
            }
            Err(refused) => {
                self.warn_of(&refused);
                refused.answer(self.deny_status, reply);
                None
            }
        }
    }

    /// A proxy that is not trusted makes one client of all of its own: somebody should know why.
    fn warn_of_strangers(&self, question: &Question) {
        if !question.is_trusted
            && let Some(unsaid) = self.quiet.admit("stranger")
        {
            warn!(
                unsaid,
                "a proxy asks that is not among trusted_proxies: its clients are counted as one, by its own address"
            );
        }
    }

    /// What the proxy's configuration is to blame for, and not its clients: they see nothing but refusals.
    fn warn_of(&self, refused: &Refused) {
        match refused {
            Refused::NoOriginal(header) => {
                if let Some(unsaid) = self.quiet.admit("original") {
                    warn!(
                        header,
                        unsaid,
                        "a check does not say what the client asked for, and was refused: the proxy must send this header, \
                         or auth_source be another"
                    );
                }
            }
            Refused::NoClient => {
                if let Some(unsaid) = self.quiet.admit("client") {
                    warn!(
                        unsaid,
                        "a check does not say who the client is, and was refused: over a Unix domain socket the proxy must \
                         send X-Forwarded-For"
                    );
                }
            }
            _ => {}
        }
    }

    /// Decides at once, or by what is answered here, if the store has to be waited for.
    fn begin<'a>(&'a self, question: &'a Question, reply: &'a mut Reply) -> Option<Pending<'a>> {
        let start = self.shared.clock.now();
        let undecided = self.decide_now(question, start, reply)?;
        Some(Box::pin(async move {
            let custom = self.reading.custom(question);
            let requests = [self.reading.request(question, &custom)];
            let decision = self.shared.engine.decide_later(&requests, undecided).await;
            self.tell(question, start, &decision, reply);
        }))
    }

    fn decide_now(&self, question: &Question, start: Time, reply: &mut Reply) -> Option<Undecided> {
        let custom = self.reading.custom(question);
        match self.shared.engine.try_decide(&[self.reading.request(question, &custom)]) {
            Ok(decision) => {
                self.tell(question, start, &decision, reply);
                None
            }
            Err(undecided) => Some(undecided),
        }
    }

    fn tell(&self, question: &Question, start: Time, decision: &Decision, reply: &mut Reply) {
        lap(&self.shared, start);
        let asking = Asking { media: question.media, lot: tollgate_engine::lot(), ..Asking::default() };
        let (refused, closed, unreadable) = (self.deny_status, self.closed_status, bad_request(self.deny_status));
        answer::proxied(decision, &Proxied { asking, refused, closed, unreadable }, &self.shared.answer, reply);
    }
}
