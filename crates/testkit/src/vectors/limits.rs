//! From the configuration of a vector to a limit.

use serde_json::Value;
use tollgate_core::Limit;

use super::file::VectorRule;
use crate::LimitConfig;

impl VectorRule {
    /// The limit, or why the configuration is refused.
    pub fn limit(&self) -> Result<Limit, String> {
        self.config()?.limit().map_err(|error| error.to_string())
    }

    /// Whether refused requests are counted too.
    pub fn count_denied(&self) -> bool {
        self.flag("count_denied", false)
    }

    fn config(&self) -> Result<LimitConfig, String> {
        Ok(match self.algorithm.as_str() {
            "gcra" => LimitConfig::Gcra {
                count: self.number("count")?,
                period: self.number("period_ns")?,
                burst: self.number("burst")?,
                max_debt: self.number_or("max_debt", 0)?,
                clamp: self.flag("clamp", true),
            },
            "token_bucket" => LimitConfig::Gcra {
                count: 1,
                period: self.number("interval_ns")?,
                burst: self.number("capacity")?,
                max_debt: 0,
                clamp: true,
            },
            "leaky_queue" => LimitConfig::Queue {
                count: self.number("count")?,
                period: self.number("period_ns")?,
                max_delay: self.number("max_delay_ns")?,
            },
            "fixed_window" => LimitConfig::FixedWindow {
                limit: self.number("limit")?,
                window: self.number("window_ns")?,
                offset: self.number_or("offset_ns", 0)?,
            },
            "sliding_log" => {
                LimitConfig::SlidingLog { limit: self.number("limit")?, window: self.number("window_ns")? }
            }
            "sliding_counter" => LimitConfig::SlidingCounter {
                limit: self.number("limit")?,
                window: self.number("window_ns")?,
                offset: self.number_or("offset_ns", 0)?,
            },
            "quota" => LimitConfig::Quota {
                amount: self.number("amount")?,
                overdraft: self.number_or("overdraft", 0)?,
                rollover: self.number_or("rollover", 0)?,
                grant: self.number_or("grant", 0)?,
                start: self.number("start_ns")?,
                end: self.number("end_ns")?,
                next_end: self.number("next_end_ns")?,
            },
            _ => LimitConfig::Concurrency { slots: self.number("limit")?, ttl: self.number("ttl_ns")? },
        })
    }

    pub fn number(&self, field: &str) -> Result<u64, String> {
        let value = self.config.get(field).ok_or_else(|| format!("no {field:?}"))?;
        value.as_u64().ok_or_else(|| format!("{field:?} is {value}, not an unsigned integer"))
    }

    fn number_or(&self, field: &str, absent: u64) -> Result<u64, String> {
        if self.config.contains_key(field) { self.number(field) } else { Ok(absent) }
    }

    fn flag(&self, field: &str, absent: bool) -> bool {
        self.config.get(field).and_then(Value::as_bool).unwrap_or(absent)
    }
}
