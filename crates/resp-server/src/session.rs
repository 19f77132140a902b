//! One connection's side of the talk: a command in, a reply out. Knows nothing of sockets.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::Time;
use tollgate_engine::{Decision, SingleDecision, Verdict};
use tollgate_net::Peer;
use tollgate_resp::{Arguments, ProtocolVersion, ReplyWriter, RequestLimits, excerpt, wrong_number_of_arguments};
use tollgate_service::PendingCheck;

use super::Resp;
use super::about;
use super::access::{AuthFailure, USER};
use super::command::{Facts, RespCommand};
use super::convert::{asked, write_decision};
use super::throttle::{Style, Throttle};
use super::transaction::Transaction;

/// How long the store may take to give back: longer than it takes to decide, because nobody waits behind it.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest name that a connection gives itself.
const NAME_BYTES_MAX: usize = 256;

/// What is known of a connection.
#[derive(Debug)]
pub struct Session<'a> {
    pub(super) resp: &'a Resp,
    pub(super) peer: &'a Peer,
    pub(super) id: u64,
    pub(super) version: ProtocolVersion,
    /// The password was given, or none is needed.
    known: bool,
    /// The name that it gave itself.
    pub(super) name: Vec<u8>,
    /// What came since `MULTI`.
    pub(super) transaction: Option<Transaction>,
    /// The time of the last decision, from which the next one's is measured.
    lap: Time,
}

/// What became of a command.
#[derive(Debug)]
pub enum Next {
    /// It is answered.
    Done,
    /// It is answered, and was the last.
    Close,
    /// Throttles that wait for the store come first. It was not looked at.
    Settle,
    /// The store has to be waited for.
    Later(Later),
    /// It is to be queued.
    Keep,
    /// These commands are to be answered next.
    Replay(Vec<u8>),
}

/// What waits for the store.
#[derive(Debug)]
pub enum Later {
    /// Requests against the rules.
    Decide(PendingCheck),
    /// A cost to give back.
    Refund,
    /// Keys to forget.
    Forget,
}

/// A throttle in its place among others: decided, or to be.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub(super) throttle: Throttle,
    pub(super) lone: Option<SingleDecision>,
}

impl<'a> Session<'a> {
    /// A connection that has just begun.
    pub fn new(resp: &'a Resp, peer: &'a Peer) -> Session<'a> {
        let access = &resp.access;
        let (id, known) = (access.next_connection(), !access.is_guarded());
        Session {
            resp,
            peer,
            id,
            version: ProtocolVersion::Resp2,
            known,
            name: Vec::new(),
            transaction: None,
            lap: Time::ZERO,
        }
    }

    /// What a command may take.
    pub fn limits(&self) -> &'static RequestLimits {
        if self.known { &RequestLimits::AUTHENTICATED } else { &RequestLimits::UNAUTHENTICATED }
    }

    /// The password was given, or none is needed.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// From now on decisions are timed: a batch begins, or goes on after a wait.
    pub fn begin(&mut self) {
        self.lap = self.resp.service.clock.now();
    }

    /// Answers a command, or says what it waits for. `waiting` are the throttles before it that do.
    #[inline]
    pub fn answer(&mut self, arguments: Arguments<'_>, waiting: &mut Vec<Waiting>, out: &mut Vec<u8>) -> Next {
        let Some(name) = arguments.get(0) else { return Next::Done };
        let found = RespCommand::find(name);
        if self.transaction.is_some()
            && let Some(next) = self.in_transaction(found, arguments, out)
        {
            return next;
        }
        let style = match found.map(|facts| facts.command) {
            Some(RespCommand::ClThrottle) if self.known => Some(Style::Cell),
            Some(RespCommand::Throttle) if self.known => Some(Style::Crab),
            _ => None,
        };
        if let Some(style) = style {
            return self.throttle(style, arguments, waiting, out);
        }
        if !waiting.is_empty() {
            return Next::Settle;
        }
        self.answer_other(found, arguments, &mut ReplyWriter::new(out, self.version))
    }

    /// A limit of the caller's own.
    #[inline]
    fn throttle(
        &mut self,
        style: Style,
        arguments: Arguments<'_>,
        waiting: &mut Vec<Waiting>,
        out: &mut Vec<u8>,
    ) -> Next {
        let Resp { service, settings, access, metrics, .. } = self.resp;
        match Throttle::read(style, arguments, &access.buckets) {
            Ok(throttle) => match service.try_throttle(&throttle.charge) {
                Some(lone) if waiting.is_empty() => {
                    self.count(style, &lone, service.throttled_at(&lone));
                    throttle.write(&lone, settings.rounding, &mut ReplyWriter::new(out, self.version));
                }
                lone => waiting.push(Waiting { throttle, lone }),
            },
            Err(_) if !waiting.is_empty() => return Next::Settle,
            Err(refused) => {
                metrics.failed();
                refused.write(style, &mut ReplyWriter::new(out, self.version));
            }
        }
        Next::Done
    }

    /// Counts a decided throttle.
    #[inline]
    fn count(&mut self, style: Style, lone: &SingleDecision, now: Time) {
        let Resp { service, metrics, .. } = self.resp;
        service.observe_throttle(self.lap, now);
        self.lap = now;
        let command = if style == Style::Cell { RespCommand::ClThrottle } else { RespCommand::Throttle };
        metrics.answered(command);
        metrics.throttled(lone.allowed, lone.decided_by);
    }

    /// Writes throttles that were waited for.
    pub fn settle(&mut self, waiting: &mut Vec<Waiting>, lones: &[SingleDecision], out: &mut Vec<u8>) {
        let now = self.resp.service.clock.now();
        let start = self.lap;
        for (Waiting { throttle, .. }, lone) in waiting.iter().zip(lones) {
            self.lap = start;
            self.count(throttle.style(), lone, now);
            throttle.write(lone, self.resp.settings.rounding, &mut ReplyWriter::new(out, self.version));
        }
        waiting.clear();
    }

    fn answer_other(
        &mut self,
        found: Option<&'static Facts>,
        arguments: Arguments<'_>,
        out: &mut ReplyWriter<'_>,
    ) -> Next {
        let counts = &self.resp.metrics;
        let is_open = found.is_some_and(|facts| facts.command.is_open());
        if !self.known && !is_open {
            counts.failed();
            out.error(&[b"NOAUTH Authentication required."]);
            return Next::Done;
        }
        match found {
            _ if self.refuse_unfit(found, arguments, out) => Next::Done,
            Some(facts) => {
                counts.answered(facts.command);
                self.run(facts.command, arguments, out)
            }
            None => Next::Done, // refused above
        }
    }

    fn run(&mut self, command: RespCommand, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) -> Next {
        match command {
            RespCommand::ClThrottle | RespCommand::Throttle => {} // answered before
            RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund => {
                return self.check(command, arguments, out);
            }
            RespCommand::Del | RespCommand::Unlink => return Next::Later(Later::Forget),
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
                return Next::Close;
            }
            RespCommand::Reset => {
                self.known = !self.resp.access.is_guarded();
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
                    return Next::Replay(commands);
                }
                Some(None) => out.error(&[b"EXECABORT Transaction discarded because of previous errors."]),
                None => out.error(&[b"ERR EXEC without MULTI"]),
            },
        }
        Next::Done
    }

    /// A request against the rules.
    fn check(&mut self, command: RespCommand, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) -> Next {
        let Resp { service, metrics, .. } = self.resp;
        match asked(arguments, command == RespCommand::TgPeek) {
            Err(wrong) => {
                metrics.failed();
                wrong.write(out);
            }
            Ok(_) if command == RespCommand::TgRefund => return Next::Later(Later::Refund),
            Ok(request) => match service.try_decide_from(self.lap, &[request.request(&request.custom())]) {
                Ok((decision, now)) => {
                    self.lap = now;
                    self.write_decision(&decision, out);
                }
                Err(pending) => return Next::Later(Later::Decide(pending)),
            },
        }
        Next::Done
    }

    /// Does what waits for the store.
    pub async fn wait(&mut self, later: Later, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let service = &self.resp.service;
        let is_peek = arguments.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"TG.PEEK"));
        let asked = match (&later, asked(arguments, is_peek)) {
            (Later::Forget, _) => return self.forget(arguments, out).await,
            (_, Ok(asked)) => asked,
            (_, Err(_)) => return, // it was read before
        };
        let (custom, mut out) = (asked.custom(), ReplyWriter::new(out, self.version));
        let requests = [asked.request(&custom)];
        let decision = match later {
            Later::Decide(pending) => Ok(service.decide_pending(&requests, pending).await),
            _ => timeout(STORE_TIMEOUT, service.refund(self.lap, &requests))
                .await
                .map_or(Err(()), |back| back.map_err(drop)),
        };
        match decision {
            Ok(decision) => self.write_decision(&decision, &mut out),
            Err(()) => out.error(&[b"ERR the store did not answer; it may have given back, or not"]),
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

    /// `HELLO [2|3 [AUTH user password] [SETNAME name]]`: all of it or nothing.
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
        let (mut known, mut name) = (self.known, None);
        let mut options = arguments.from(2);
        while let Some(option) = options.next() {
            if option.eq_ignore_ascii_case(b"AUTH")
                && let (Some(user), Some(password)) = (options.next(), options.next())
            {
                if let Err(refusal) = self.resp.access.admits(user, password, self.peer.address) {
                    return self.refuse(refusal, out);
                }
                known = true;
            } else if option.eq_ignore_ascii_case(b"SETNAME")
                && let Some(given) = options.next()
            {
                if !is_name(given) {
                    return out.error(&[BAD_NAME]);
                }
                name = Some(given);
            } else {
                return out.error(&[b"ERR Syntax error in HELLO option '", excerpt(option), b"'"]);
            }
        }
        if !known {
            return out.error(&[
                b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                  <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                  the same time",
            ]);
        }
        (self.known, self.version) = (known, version);
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
            (2, Some(password), _) if access.is_guarded() => (USER, password),
            (2, ..) => {
                return out.error(&[
                    b"ERR AUTH <password> called without any password configured for the default user. Are you sure \
                      your configuration is correct?",
                ]);
            }
            (3, Some(user), Some(password)) => (user, password),
            _ => return out.error(&[b"ERR syntax error"]),
        };
        match access.admits(user, password, self.peer.address) {
            Ok(()) => {
                self.known = true;
                out.simple("OK");
            }
            Err(refusal) => self.refuse(refusal, out),
        }
    }

    fn refuse(&self, refusal: AuthFailure, out: &mut ReplyWriter<'_>) {
        self.resp.metrics.wrong_password();
        match refusal {
            AuthFailure::Wrong => out.error(&[b"WRONGPASS invalid username-password pair or user is disabled."]),
            AuthFailure::Wait(wait) => {
                let seconds = wait.secs_ceil().to_string();
                out.error(&[b"ERR too many wrong passwords came from this address; wait ", seconds.as_bytes(), b" s"]);
            }
        }
    }

    /// There is one database, whatever it is called.
    fn select(&self, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
        let number = arguments.get(1).and_then(|sent| str::from_utf8(sent).ok()).and_then(|sent| sent.parse().ok());
        match number {
            Some(0_u32) => out.simple("OK"),
            Some(_) if self.resp.settings.one_database => out.error(&[b"ERR DB index is out of range"]),
            Some(_) => out.simple("OK"),
            None => out.error(&[b"ERR value is not an integer or out of range"]),
        }
    }

    /// Takes a name, if it is one.
    pub(super) fn call_itself(&mut self, name: &[u8], out: &mut ReplyWriter<'_>) {
        match is_name(name) {
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

fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}
