//! Session of one connection: a command in, a reply out. Independent of sockets.

use std::time::Duration;

use tollgate_core::Time;
use tollgate_net::Peer;
use tollgate_resp::{Arguments, ProtocolVersion, ReplyWriter, RequestLimits, excerpt, wrong_number_of_arguments};
use tollgate_service::PendingCheck;
use tollgate_service::{Decision, SingleDecision, Verdict};

use super::Resp;
use super::about::{self, ClientInfo};
use super::access::{AuthFailure, USER};
use super::command::{CommandSpec, RespCommand, reject_malformed};
use super::convert::{read_check_request, write_decision};
use super::throttle::{Throttle, ThrottleDialect};
use super::transaction::Transaction;

/// Store timeout of a refund: longer than that of a decision, because no end-user request waits for it.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Session state of a connection.
#[derive(Debug)]
pub struct Session<'a> {
    pub(super) resp: &'a Resp,
    client: ClientInfo,
    version: ProtocolVersion,
    /// Authenticated, or no password is configured.
    authenticated: bool,
    transaction: Transaction,
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
    throttle: Throttle,
    decision: Option<SingleDecision>,
}

impl<'a> Session<'a> {
    /// Starts a session.
    pub fn new(resp: &'a Resp, peer: &'a Peer) -> Session<'a> {
        let access = &resp.access;
        Session {
            resp,
            client: ClientInfo { id: access.next_connection(), address: peer.address, name: Vec::new() },
            version: ProtocolVersion::Resp2,
            authenticated: !access.requires_password(),
            transaction: Transaction::default(),
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
        if self.transaction.has_begun()
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
            Ok(throttle) => {
                let decision = service.try_throttle(self.measured_from, &throttle.charge);
                let decision = decision.map(|(decision, now)| {
                    self.measured_from = now;
                    decision
                });
                match decision {
                    Some(decision) if pending.is_empty() => {
                        self.count(dialect, &decision);
                        throttle.write(&decision, settings.rounding, &mut ReplyWriter::new(out, self.version));
                    }
                    decision => pending.push(PendingThrottle { throttle, decision }),
                }
            }
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
    fn count(&self, dialect: ThrottleDialect, decision: &SingleDecision) {
        let metrics = &self.resp.metrics;
        let command =
            if dialect == ThrottleDialect::RedisCell { RespCommand::ClThrottle } else { RespCommand::Throttle };
        metrics.answered(command);
        metrics.throttled(decision.allowed, decision.decided_by);
    }

    /// Decides the pending throttles, which wait for the store together, and writes their replies.
    pub async fn decide_throttles(&mut self, pending: &mut Vec<PendingThrottle>, out: &mut Vec<u8>) {
        let Resp { service, settings, .. } = self.resp;
        let charges = pending.iter().map(|PendingThrottle { throttle, decision }| (&throttle.charge, *decision));
        let decisions = service.throttle_all(self.measured_from, charges).await;
        for (PendingThrottle { throttle, .. }, decision) in pending.iter().zip(&decisions) {
            self.count(throttle.dialect(), decision);
            throttle.write(decision, settings.rounding, &mut ReplyWriter::new(out, self.version));
        }
        pending.clear();
        self.restart_timing();
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
            RespCommand::Select => about::select(self.resp.settings.one_database, arguments, out),
            RespCommand::Client => about::client(&mut self.client, arguments, out),
            RespCommand::Command => about::command(arguments, out),
            RespCommand::Info => about::info(self.resp, out),
            RespCommand::Config => about::config(arguments, out),
            RespCommand::Time => about::time(self.resp.service.clock.wall(), out),
            RespCommand::Quit => {
                out.simple("OK");
                return SessionAction::Close;
            }
            RespCommand::Reset => {
                self.authenticated = !self.resp.access.requires_password();
                self.version = ProtocolVersion::Resp2;
                (self.client.name, self.transaction) = (Vec::new(), Transaction::default());
                out.simple("RESET");
            }
            RespCommand::Multi => self.transaction.begin(out),
            RespCommand::Discard => self.transaction.discard(out),
            RespCommand::Exec => {
                if let Some(commands) = self.transaction.exec(out) {
                    return SessionAction::Replay(commands);
                }
            }
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
                if let Err(failure) = self.resp.access.authenticate(user, password, self.client.address) {
                    return self.reject_auth(failure, out);
                }
                authenticated = true;
            } else if option.eq_ignore_ascii_case(b"SETNAME")
                && let Some(given) = options.next()
            {
                match ClientInfo::check_name(given) {
                    Ok(given) => name = Some(given),
                    Err(error) => return error.write(out),
                }
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
            self.client.name = name.to_vec();
        }
        out.set_version(version);
        about::hello(self.client.id, out);
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
        match access.authenticate(user, password, self.client.address) {
            Ok(()) => {
                self.authenticated = true;
                out.simple("OK");
            }
            Err(failure) => self.reject_auth(failure, out),
        }
    }
    fn reject_auth(&self, failure: AuthFailure, out: &mut ReplyWriter<'_>) {
        self.resp.metrics.wrong_password();
        failure.write(out);
    }

    /// Writes an error for an unknown command or a wrong number of arguments; true if it did.
    fn reject_malformed(
        &self,
        found: Option<&'static CommandSpec>,
        arguments: Arguments<'_>,
        out: &mut ReplyWriter<'_>,
    ) -> bool {
        let rejected = reject_malformed(found, arguments, out);
        if rejected {
            self.resp.metrics.failed();
        }
        rejected
    }

    /// Handles a command inside a transaction; `None` if it executes at once. An invalid command is rejected now and
    /// aborts the transaction.
    #[cold]
    fn in_transaction(
        &mut self,
        found: Option<&'static CommandSpec>,
        arguments: Arguments<'_>,
        out: &mut Vec<u8>,
    ) -> Option<SessionAction> {
        if self.reject_malformed(found, arguments, &mut ReplyWriter::new(out, self.version)) {
            self.transaction.abort();
            return Some(SessionAction::Done);
        }
        match found.is_some_and(|spec| spec.command.is_never_queued()) {
            true => None,
            false => Some(SessionAction::Queue),
        }
    }

    /// Queues the raw bytes of a command.
    pub fn queue_command(&mut self, command: &[u8], out: &mut Vec<u8>) {
        if self.transaction.queue(command, &mut ReplyWriter::new(out, self.version)).is_err() {
            self.resp.metrics.failed();
        }
    }

    /// True between `MULTI` and `EXEC`, `DISCARD` or `RESET`.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.has_begun()
    }

    /// Bytes of queued commands.
    pub fn queued_bytes(&self) -> usize {
        self.transaction.queued_bytes()
    }
}
