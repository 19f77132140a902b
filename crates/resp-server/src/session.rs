//! Session of one connection: a command in, a reply out. Independent of sockets.

use std::time::Duration;

use tollgate_core::Time;
use tollgate_net::Peer;
use tollgate_resp::{Arguments, ProtocolVersion, ReplyWriter, RequestLimits, excerpt, wrong_number_of_arguments};
use tollgate_service::PendingCheck;
use tollgate_service::{Decision, SingleDecision, Verdict};

use super::Resp;
use super::about;
use super::access::{AuthFailure, USER};
use super::command::{CommandSpec, RespCommand};
use super::convert::{read_check_request, write_decision};
use super::throttle::{Throttle, ThrottleDialect};
use super::transaction::Transaction;

/// Store timeout of a refund: longer than that of a decision, because no end-user request waits for it.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest connection name.
const NAME_BYTES_MAX: usize = 256;

/// Session state of a connection.
#[derive(Debug)]
pub struct Session<'a> {
    pub(super) resp: &'a Resp,
    pub(super) peer: &'a Peer,
    pub(super) id: u64,
    pub(super) version: ProtocolVersion,
    /// Authenticated, or no password is configured.
    authenticated: bool,
    /// Name from `CLIENT SETNAME`.
    pub(super) name: Vec<u8>,
    /// Commands queued since `MULTI`.
    pub(super) transaction: Option<Transaction>,
    /// Start of the latency measurement of the next decision: the time of the last one.
    measured_from: Time,
}

/// What the connection must do after a command.
#[derive(Debug)]
pub enum SessionAction {
    /// The command is answered.
    Done,
    /// The command is answered; close the connection.
    Close,
    /// Decide the pending throttles first; the command was not handled.
    DecideThrottles,
    /// Await the store.
    Await(PendingWork),
    /// Queue the command.
    Queue,
    /// Answer these commands next.
    Replay(Vec<u8>),
}

/// Work that awaits the store.
#[derive(Debug)]
pub enum PendingWork {
    /// A check against the rules.
    Check(PendingCheck),
    /// A refund.
    Refund,
    /// Throttle keys to delete.
    Forget,
}

/// A throttle in a pipeline; `decision` is `None` until the store has answered.
#[derive(Clone, Copy, Debug)]
pub struct PendingThrottle {
    pub(super) throttle: Throttle,
    pub(super) decision: Option<SingleDecision>,
}

impl<'a> Session<'a> {
    /// Starts a session.
    pub fn new(resp: &'a Resp, peer: &'a Peer) -> Session<'a> {
        let access = &resp.access;
        let (id, authenticated) = (access.next_connection(), !access.requires_password());
        Session {
            resp,
            peer,
            id,
            version: ProtocolVersion::Resp2,
            authenticated,
            name: Vec::new(),
            transaction: None,
            measured_from: Time::ZERO,
        }
    }

    /// Size limits of a command.
    pub fn limits(&self) -> &'static RequestLimits {
        if self.authenticated { &RequestLimits::AUTHENTICATED } else { &RequestLimits::UNAUTHENTICATED }
    }

    /// Authenticated, or no password is configured.
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Restarts the latency measurement: a batch begins, or continues after a wait.
    pub fn restart_timing(&mut self) {
        self.measured_from = self.resp.service.clock.now();
    }

    /// Handles a command. `pending` holds the throttles before it that await the store.
    #[inline]
    pub fn answer(
        &mut self,
        arguments: Arguments<'_>,
        pending: &mut Vec<PendingThrottle>,
        out: &mut Vec<u8>,
    ) -> SessionAction {
        let Some(name) = arguments.get(0) else { return SessionAction::Done };
        let found = RespCommand::find(name);
        if self.transaction.is_some()
            && let Some(action) = self.in_transaction(found, arguments, out)
        {
            return action;
        }
        let dialect = match found.map(|spec| spec.command) {
            Some(RespCommand::ClThrottle) if self.authenticated => Some(ThrottleDialect::RedisCell),
            Some(RespCommand::Throttle) if self.authenticated => Some(ThrottleDialect::Throttlecrab),
            _ => None,
        };
        if let Some(dialect) = dialect {
            return self.throttle(dialect, arguments, pending, out);
        }
        if !pending.is_empty() {
            return SessionAction::DecideThrottles;
        }
        self.answer_other(found, arguments, &mut ReplyWriter::new(out, self.version))
    }

    /// Handles a throttle command.
    #[inline]
    fn throttle(
        &mut self,
        dialect: ThrottleDialect,
        arguments: Arguments<'_>,
        pending: &mut Vec<PendingThrottle>,
        out: &mut Vec<u8>,
    ) -> SessionAction {
        let Resp { service, settings, access, metrics, .. } = self.resp;
        match Throttle::read(dialect, arguments, &access.buckets) {
            Ok(throttle) => match service.try_throttle(&throttle.charge) {
                Some(decision) if pending.is_empty() => {
                    self.count(dialect, &decision, service.throttled_at(&decision));
                    throttle.write(&decision, settings.rounding, &mut ReplyWriter::new(out, self.version));
                }
                decision => pending.push(PendingThrottle { throttle, decision }),
            },
            Err(_) if !pending.is_empty() => return SessionAction::DecideThrottles,
            Err(error) => {
                metrics.failed();
                error.write(dialect, &mut ReplyWriter::new(out, self.version));
            }
        }
        SessionAction::Done
    }

    /// Counts a decided throttle.
    #[inline]
    fn count(&mut self, dialect: ThrottleDialect, decision: &SingleDecision, now: Time) {
        let Resp { service, metrics, .. } = self.resp;
        service.observe_throttle(self.measured_from, now);
        self.measured_from = now;
        let command =
            if dialect == ThrottleDialect::RedisCell { RespCommand::ClThrottle } else { RespCommand::Throttle };
        metrics.answered(command);
        metrics.throttled(decision.allowed, decision.decided_by);
    }

    /// Writes the replies of pending throttles.
    pub fn write_throttles(
        &mut self,
        pending: &mut Vec<PendingThrottle>,
        decisions: &[SingleDecision],
        out: &mut Vec<u8>,
    ) {
        let now = self.resp.service.clock.now();
        let start = self.measured_from;
        for (PendingThrottle { throttle, .. }, decision) in pending.iter().zip(decisions) {
            self.measured_from = start;
            self.count(throttle.dialect(), decision, now);
            throttle.write(decision, self.resp.settings.rounding, &mut ReplyWriter::new(out, self.version));
        }
        pending.clear();
    }

    fn answer_other(
        &mut self,
        found: Option<&'static CommandSpec>,
        arguments: Arguments<'_>,
        out: &mut ReplyWriter<'_>,
    ) -> SessionAction {
        let metrics = &self.resp.metrics;
        let is_allowed_unauthenticated = found.is_some_and(|spec| spec.command.is_allowed_unauthenticated());
        if !self.authenticated && !is_allowed_unauthenticated {
            metrics.failed();
            out.error(&[b"NOAUTH Authentication required."]);
            return SessionAction::Done;
        }
        match found {
            _ if self.reject_malformed(found, arguments, out) => SessionAction::Done,
            Some(spec) => {
                metrics.answered(spec.command);
                self.run(spec.command, arguments, out)
            }
            None => SessionAction::Done, // rejected above
        }
    }

    fn run(&mut self, command: RespCommand, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) -> SessionAction {
        match command {
            RespCommand::ClThrottle | RespCommand::Throttle => {} // handled by `answer`
            RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund => {
                return self.check(command, arguments, out);
            }
            RespCommand::Del | RespCommand::Unlink => return SessionAction::Await(PendingWork::Forget),
            RespCommand::Ping => match (arguments.len(), arguments.get(1)) {
                (1, _) => out.simple("PONG"),
                (2, Some(message)) => out.bulk(message),
                _ => wrong_number_of_arguments(b"ping", out),
            },
            RespCommand::Echo => out.bulk(arguments.get(1).unwrap_or_default()),
            RespCommand::Hello => self.hello(arguments, out),
            RespCommand::Auth => self.auth(arguments, out),
            RespCommand::Select => self.select(arguments, out),
            RespCommand::Client => about::client(self, arguments, out),
            RespCommand::Command => about::command(arguments, out),
            RespCommand::Info => about::info(self, out),
            RespCommand::Config => about::config(arguments, out),
            RespCommand::Time => about::time(self.resp.service.clock.wall(), out),
            RespCommand::Quit => {
                out.simple("OK");
                return SessionAction::Close;
            }
            RespCommand::Reset => {
                self.authenticated = !self.resp.access.requires_password();
                self.version = ProtocolVersion::Resp2;
                (self.name, self.transaction) = (Vec::new(), None);
                out.simple("RESET");
            }
            RespCommand::Multi if self.transaction.is_some() => out.error(&[b"ERR MULTI calls can not be nested"]),
            RespCommand::Multi => {
                self.transaction = Some(Transaction::default());
                out.simple("OK");
            }
            RespCommand::Discard => match self.transaction.take() {
                Some(_) => out.simple("OK"),
                None => out.error(&[b"ERR DISCARD without MULTI"]),
            },
            RespCommand::Exec => match self.transaction.take().map(Transaction::finish) {
                Some(Some((count, commands))) => {
                    out.array(count);
                    return SessionAction::Replay(commands);
                }
                Some(None) => out.error(&[b"EXECABORT Transaction discarded because of previous errors."]),
                None => out.error(&[b"ERR EXEC without MULTI"]),
            },
        }
        SessionAction::Done
    }

    /// Handles a check against the rules.
    fn check(&mut self, command: RespCommand, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) -> SessionAction {
        let Resp { service, metrics, .. } = self.resp;
        match read_check_request(arguments, command == RespCommand::TgPeek) {
            Err(error) => {
                metrics.failed();
                error.write(out);
            }
            Ok(_) if command == RespCommand::TgRefund => return SessionAction::Await(PendingWork::Refund),
            Ok(request) => match service.try_decide_from(self.measured_from, &[request.request(&request.lists())]) {
                Ok((decision, now)) => {
                    self.measured_from = now;
                    self.write_decision(&decision, out);
                }
                Err(pending) => return SessionAction::Await(PendingWork::Check(pending)),
            },
        }
        SessionAction::Done
    }

    /// Awaits the store and writes the reply.
    pub async fn run_pending(&mut self, work: PendingWork, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let service = &self.resp.service;
        let is_peek = arguments.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"TG.PEEK"));
        let request = match (&work, read_check_request(arguments, is_peek)) {
            (PendingWork::Forget, _) => return self.forget(arguments, out).await,
            (_, Ok(request)) => request,
            (_, Err(_)) => return, // cannot fail: `check` has read it
        };
        let (lists, mut out) = (request.lists(), ReplyWriter::new(out, self.version));
        let requests = [request.request(&lists)];
        let decision = match work {
            PendingWork::Check(pending) => Some(service.decide_pending(&requests, pending).await),
            _ => service.refund(self.measured_from, STORE_TIMEOUT, &requests).await,
        };
        match decision {
            Some(decision) => self.write_decision(&decision, &mut out),
            None => out.error(&[b"ERR the store did not answer; it may have given back, or not"]),
        }
    }

    fn write_decision(&self, decision: &Decision, out: &mut ReplyWriter<'_>) {
        if let Verdict::Invalid(_) = decision.verdict {
            self.resp.metrics.failed();
        }
        write_decision(decision, out);
    }

    async fn forget(&mut self, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let Resp { service, access, .. } = self.resp;
        let mut out = ReplyWriter::new(out, self.version);
        for charge in arguments.from(1).filter_map(|key| access.buckets.of(key)) {
            if service.forget(&charge).await.is_err() {
                return out.error(&[b"ERR the store did not answer; the keys may be as they were"]);
            }
        }
        out.unsigned(arguments.len().saturating_sub(1) as u64);
    }

    /// `HELLO [2|3 [AUTH user password] [SETNAME name]]`: applies all options or none.
    fn hello(&mut self, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
        let version = match arguments.get(1) {
            None => self.version,
            Some(b"2") => ProtocolVersion::Resp2,
            Some(b"3") => ProtocolVersion::Resp3,
            Some(other) if other.iter().all(u8::is_ascii_digit) && (1..=18).contains(&other.len()) => {
                return out.error(&[b"NOPROTO unsupported protocol version"]);
            }
            Some(_) => return out.error(&[b"ERR Protocol version is not an integer or out of range"]),
        };
        let (mut authenticated, mut name) = (self.authenticated, None);
        let mut options = arguments.from(2);
        while let Some(option) = options.next() {
            if option.eq_ignore_ascii_case(b"AUTH")
                && let (Some(user), Some(password)) = (options.next(), options.next())
            {
                if let Err(failure) = self.resp.access.authenticate(user, password, self.peer.address) {
                    return self.write_auth_failure(failure, out);
                }
                authenticated = true;
            } else if option.eq_ignore_ascii_case(b"SETNAME")
                && let Some(given) = options.next()
            {
                if !is_valid_name(given) {
                    return out.error(&[BAD_NAME]);
                }
                name = Some(given);
            } else {
                return out.error(&[b"ERR Syntax error in HELLO option '", excerpt(option), b"'"]);
            }
        }
        if !authenticated {
            return out.error(&[
                b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                  <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                  the same time",
            ]);
        }
        (self.authenticated, self.version) = (authenticated, version);
        if let Some(name) = name {
            self.name = name.to_vec();
        }
        out.set_version(version);
        about::hello(self.id, out);
    }

    /// `AUTH [user] password`.
    fn auth(&mut self, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
        let access = &self.resp.access;
        let (user, password) = match (arguments.len(), arguments.get(1), arguments.get(2)) {
            (2, Some(password), _) if access.requires_password() => (USER, password),
            (2, ..) => {
                return out.error(&[
                    b"ERR AUTH <password> called without any password configured for the default user. Are you sure \
                      your configuration is correct?",
                ]);
            }
            (3, Some(user), Some(password)) => (user, password),
            _ => return out.error(&[b"ERR syntax error"]),
        };
        match access.authenticate(user, password, self.peer.address) {
            Ok(()) => {
                self.authenticated = true;
                out.simple("OK");
            }
            Err(failure) => self.write_auth_failure(failure, out),
        }
    }

    fn write_auth_failure(&self, failure: AuthFailure, out: &mut ReplyWriter<'_>) {
        self.resp.metrics.wrong_password();
        match failure {
            AuthFailure::WrongCredentials => {
                out.error(&[b"WRONGPASS invalid username-password pair or user is disabled."])
            }
            AuthFailure::Throttled(wait) => {
                let seconds = wait.secs_ceil().to_string();
                out.error(&[b"ERR too many wrong passwords came from this address; wait ", seconds.as_bytes(), b" s"]);
            }
        }
    }

    /// `SELECT`: every index is the same database.
    fn select(&self, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
        let number = arguments.get(1).and_then(|sent| str::from_utf8(sent).ok()).and_then(|sent| sent.parse().ok());
        match number {
            Some(0_u32) => out.simple("OK"),
            Some(_) if self.resp.settings.one_database => out.error(&[b"ERR DB index is out of range"]),
            Some(_) => out.simple("OK"),
            None => out.error(&[b"ERR value is not an integer or out of range"]),
        }
    }

    /// `CLIENT SETNAME`.
    pub(super) fn set_name(&mut self, name: &[u8], out: &mut ReplyWriter<'_>) {
        match is_valid_name(name) {
            true => {
                self.name = name.to_vec();
                out.simple("OK");
            }
            false => out.error(&[BAD_NAME]),
        }
    }
}

const BAD_NAME: &[u8] =
    b"ERR Client names cannot contain spaces, newlines or special characters, nor more than 256 bytes.";

fn is_valid_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}
