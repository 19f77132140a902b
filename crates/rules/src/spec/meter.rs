//! What a rule counts.

use std::fmt;

use tollgate_core::Request;

/// The meter of a rule: which amounts of a request it charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MeterSpec {
    /// The meter `requests`, which every request carries.
    #[default]
    Requests,
    /// The sum of these meters, each times its weight.
    Weighted(Vec<(String, u64)>),
}

impl MeterSpec {
    /// Names and weights; a plain rule counts requests.
    pub fn weights(&self) -> impl Iterator<Item = (&str, u64)> {
        let (plain, weighted) = match self {
            MeterSpec::Requests => (Some((Request::REQUESTS, 1)), &[][..]),
            MeterSpec::Weighted(weights) => (None, weights.as_slice()),
        };
        plain.into_iter().chain(weighted.iter().map(|(name, weight)| (name.as_str(), *weight)))
    }
}

/// As answers name it: `output_tokens`, or `input_tokens+4*output_tokens`.
impl fmt::Display for MeterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (meter, weight)) in self.weights().enumerate() {
            f.write_str(if index > 0 { "+" } else { "" })?;
            match weight {
                1 => f.write_str(meter)?,
                weight => write!(f, "{weight}*{meter}")?,
            }
        }
        Ok(())
    }
}

/// How requests that carry none of a rule's meters are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unmetered {
    /// The rule does not apply.
    #[default]
    Skip,
    /// They are rejected.
    Reject,
}

impl Unmetered {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Reject => "reject",
        }
    }
}
