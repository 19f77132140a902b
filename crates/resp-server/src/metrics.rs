//! Metrics of RESP: commands by name, throttles by outcome, protocol errors.

use std::fmt;

use tollgate_service::DecidedBy;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage};

use crate::command::RespCommand;

/// Counts commands, throttles and errors.
#[derive(Debug)]
pub struct RespMetrics {
    commands: [Counter; RespCommand::ALL.len()],
    failed: Counter,
    wrong_passwords: Counter,
    throttled: [Counter; 2],
    fell_back: Counter,
    faults: [Counter; RespFault::ALL.len()],
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespFault {
    /// Malformed command.
    Malformed,
    /// Command beyond the size limits.
    TooLarge,
    /// Another protocol, such as HTTP or TLS.
    Foreign,
    /// The client sent a command or read replies too slowly.
    TooSlow,
    /// An unauthenticated client exceeded its reply bytes or its time limit.
    Unauthenticated,
    /// The byte budget is exhausted.
    NoMemory,
}

impl RespFault {
    const ALL: [RespFault; 6] = [
        RespFault::Malformed,
        RespFault::TooLarge,
        RespFault::Foreign,
        RespFault::TooSlow,
        RespFault::Unauthenticated,
        RespFault::NoMemory,
    ];

    const fn name(self) -> &'static str {
        match self {
            RespFault::Malformed => "malformed",
            RespFault::TooLarge => "too_large",
            RespFault::Foreign => "foreign",
            RespFault::TooSlow => "too_slow",
            RespFault::Unauthenticated => "stranger",
            RespFault::NoMemory => "no_room",
        }
    }
}

impl Default for RespMetrics {
    fn default() -> RespMetrics {
        RespMetrics {
            commands: RespCommand::ALL.map(|_| Counter::default()),
            failed: Counter::default(),
            wrong_passwords: Counter::default(),
            throttled: [Counter::default(), Counter::default()],
            fell_back: Counter::default(),
            faults: RespFault::ALL.map(|_| Counter::default()),
        }
    }
}

impl RespMetrics {
    /// Counts an answered command.
    #[inline]
    pub fn answered(&self, command: RespCommand) {
        if let Some(counter) = self.commands.get(command as usize) {
            counter.add_one();
        }
    }

    /// Counts a command answered with an error.
    pub fn failed(&self) {
        self.failed.add_one();
    }

    /// Counts a wrong password, or one rejected unchecked after too many failures.
    pub fn wrong_password(&self) {
        self.failed();
        self.wrong_passwords.add_one();
    }

    /// Counts a throttle decision.
    #[inline]
    pub fn throttled(&self, allowed: bool, mode: DecidedBy) {
        let [denied, passed] = &self.throttled;
        if allowed {
            passed.add_one()
        } else {
            denied.add_one()
        }
        if mode == DecidedBy::Fallback {
            self.fell_back.add_one();
        }
    }

    /// Counts a connection closed for a fault.
    pub fn ended(&self, fault: RespFault) {
        if let Some(counter) = self.faults.get(fault as usize) {
            counter.add_one();
        }
    }

    /// Writes all families; commands without a count are omitted.
    fn write_families(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let commands = RespCommand::ALL.iter().zip(&self.commands).map(|(spec, counter)| (spec.name, counter.sum()));
        let commands = commands.filter(|(_, count)| *count > 0).map(|(name, count)| ([("command", name)], count));
        page.counters("tollgate_resp_commands", "RESP commands answered", commands)?;
        let [denied, passed] = &self.throttled;
        let outcomes = [("allowed", passed), ("denied", denied)].into_iter();
        let outcomes = outcomes.map(|(name, counter)| ([("outcome", name)], counter.sum()));
        page.counters("tollgate_resp_throttled", "Decisions by limits that came with the command", outcomes)?;
        page.counter("tollgate_resp_throttled_locally", "Of these, made without the store", self.fell_back.sum())?;
        page.counter("tollgate_resp_errors", "RESP commands that were none, or not allowed", self.failed.sum())?;
        page.counter("tollgate_resp_wrong_passwords", "Wrong passwords over RESP", self.wrong_passwords.sum())?;
        let faults = RespFault::ALL.iter().zip(&self.faults);
        let faults = faults.map(|(fault, counter)| ([("reason", fault.name())], counter.sum()));
        page.counters("tollgate_resp_protocol_errors", "RESP connections ended for what was sent", faults)
    }
}

impl MetricFamilies for RespMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        self.write_families(page)
    }
}
