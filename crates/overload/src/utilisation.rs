//! Sheds when workers are saturated, slowly in and slowly out (SPEC 5.9).
//!
//! Moving slowly is the point: a shedder that reacts at once takes the load away, sees idle workers, and lets all of it
//! back in. Shedding starts 28 s after saturation and needs two minutes more to shed everything.

use tollgate_core::{Span, Time};

use crate::chance::happens;
use crate::priority::{Priorities, Priority};

/// When workers count as saturated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UtilisationConfig {
    /// Below this share of busy workers, shedding fades.
    pub good: f64,
    /// Above this share it grows.
    pub bad: f64,
    /// How long workers must be saturated until shedding starts; also the longest time between two samples that counts.
    pub wait: Span,
    /// From no shedding to all of it, at full saturation.
    pub ramp: Span,
}

impl Default for UtilisationConfig {
    fn default() -> UtilisationConfig {
        UtilisationConfig { good: 0.7, bad: 0.8, wait: Span::from_secs(28), ramp: Span::from_secs(120) }
    }
}

/// How much is shed, fed with samples of how busy workers are.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilisationShedder {
    config: UtilisationConfig,
    /// What is shed; below zero, how far from shedding.
    amount: f64,
    last: Option<Time>,
}

impl UtilisationShedder {
    /// Sheds nothing.
    pub fn new(config: UtilisationConfig) -> UtilisationShedder {
        let mut shedder = UtilisationShedder { config, amount: 0.0, last: None };
        shedder.amount = shedder.resting();
        shedder
    }

    /// Adds a sample: the share of workers that are busy, from 0 to 1.
    pub fn record(&mut self, now: Time, utilisation: f64) {
        let config = &self.config;
        let direction = match utilisation {
            busy if busy < config.good => busy / config.good - 1.0,
            busy if busy >= config.bad => (busy - config.bad) / (1.0 - config.bad),
            _ => 0.0,
        };
        let elapsed = self.last.map_or(Span::ZERO, |last| now.since(last)).min(config.wait);
        let change = direction.clamp(-1.0, 1.0) * seconds(elapsed) / seconds(config.ramp);
        self.amount = (self.amount + change).max(self.resting()).min(1.0);
        self.last = Some(now);
    }

    /// From `-wait / ramp`, at rest, to 1.
    pub fn amount(&self) -> f64 {
        self.amount
    }

    /// The share of all load that is shed.
    pub fn drop_probability(&self) -> f64 {
        self.amount.max(0.0)
    }

    /// Whether a request is shed; `random` decides where only a share of its band is.
    pub fn sheds(&self, ladder: &ShedLadder, priority: Priority, is_read: bool, random: u64) -> bool {
        happens(ladder.probability(self.drop_probability(), priority, is_read), random)
    }

    fn resting(&self) -> f64 {
        -seconds(self.config.wait) / seconds(self.config.ramp)
    }
}

fn seconds(span: Span) -> f64 {
    span.nanos() as f64 / 1e9
}

/// The order in which requests are shed: test traffic, then reads, then writes, the critical last; health checks never.
///
/// The amount climbs the bands one after the other: a band is shed in part only when all below it are shed whole.
/// Between the lowest and the highest class, each has a band for reads and one for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedLadder {
    highest: u8,
}

impl ShedLadder {
    /// The bands of these classes.
    pub fn new(priorities: &Priorities) -> ShedLadder {
        ShedLadder { highest: priorities.highest().rank() }
    }

    /// The probability that a request is shed, when this share of the load is.
    pub fn probability(&self, share: f64, priority: Priority, is_read: bool) -> f64 {
        if priority == Priority::HEALTH {
            return 0.0;
        }
        (share * self.bands() - self.band(priority, is_read)).clamp(0.0, 1.0)
    }

    fn bands(&self) -> f64 {
        match self.highest {
            0 => 2.0,
            highest => 2.0 * f64::from(highest),
        }
    }

    fn band(&self, priority: Priority, is_read: bool) -> f64 {
        let (rank, is_write) = (priority.rank().min(self.highest), f64::from(u8::from(!is_read)));
        match rank {
            _ if self.highest == 0 => is_write,
            0 => 0.0,
            rank if rank == self.highest => self.bands() - 1.0,
            rank => 2.0 * f64::from(rank) - 1.0 + is_write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_shed_one_after_the_other() {
        let classes = Priorities::default();
        let ladder = ShedLadder::new(&classes);
        let order = [("test", false), ("sheddable", true), ("sheddable", false), ("default", true), ("default", false)];
        let order = order.into_iter().chain([("critical", true)]);
        for (band, (name, is_read)) in order.enumerate() {
            let probability = |share| ladder.probability(share, classes.find(name).unwrap(), is_read);
            let (start, width) = (band as f64 / 6.0, 1.0 / 6.0);
            assert!(probability(start) < 1e-9 && probability(start + width) > 1.0 - 1e-9, "{name}");
            assert!((probability(start + width / 2.0) - 0.5).abs() < 1e-9, "{name}");
        }
        assert_eq!(ladder.probability(1.0, Priority::HEALTH, true), 0.0);
    }

    #[test]
    fn one_class_sheds_reads_first() {
        let ladder = ShedLadder::new(&Priorities::new(["all"]).unwrap());
        assert_eq!(ladder.probability(0.5, Priority::LOWEST, true), 1.0);
        assert_eq!(ladder.probability(0.5, Priority::LOWEST, false), 0.0);
    }

    #[test]
    fn a_clock_that_steps_back_changes_nothing() {
        let mut shedder = UtilisationShedder::new(UtilisationConfig::default());
        shedder.record(Time::from_secs(100), 1.0);
        shedder.record(Time::from_secs(50), 1.0);
        assert_eq!(shedder.drop_probability(), 0.0);
        assert_eq!(shedder.amount(), -28.0 / 120.0);
        assert!(!shedder.sheds(&ShedLadder::new(&Priorities::default()), Priority::LOWEST, true, 0));
    }
}
