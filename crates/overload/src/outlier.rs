//! Leaves out servers that fail again and again, each for a while, and never most of them at once.

use tollgate_core::{Span, Time};

/// When a server is ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierConfig {
    /// Failures in a row; 0 never ejects.
    pub after: u32,
    /// How long the first time; twice as long each further time.
    pub duration: Span,
    /// The longest time; also how long a server must behave until its ejections are forgotten.
    pub duration_max: Span,
    /// Most servers that are ejected at once, in percent, rounded down: if all fail, the servers are not the cause.
    pub share_percent: u32,
}

impl Default for OutlierConfig {
    fn default() -> OutlierConfig {
        OutlierConfig { after: 5, duration: Span::from_secs(5), duration_max: Span::from_secs(300), share_percent: 50 }
    }
}

/// The servers of one upstream, by their index.
#[derive(Clone, Debug)]
pub struct OutlierDetector {
    config: OutlierConfig,
    servers: Vec<ServerRecord>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ServerRecord {
    failures: u32,
    ejections: u32,
    until: Time,
}

impl OutlierDetector {
    /// None of `servers` is ejected.
    pub fn new(config: OutlierConfig, servers: usize) -> OutlierDetector {
        OutlierDetector { config, servers: vec![ServerRecord::default(); servers] }
    }

    /// A server answered without an error of its own.
    pub fn succeeded(&mut self, server: usize) {
        if let Some(record) = self.servers.get_mut(server) {
            record.failures = 0;
        }
    }

    /// A server failed: an error of its own, a timeout, no connection. True if that ejected it.
    pub fn failed(&mut self, server: usize, now: Time) -> bool {
        let has_room = self.ejected(now) < self.ejected_max();
        let config = self.config;
        let Some(record) = self.servers.get_mut(server) else { return false };
        if now < record.until {
            return false;
        }
        record.failures = record.failures.saturating_add(1);
        if config.after == 0 || record.failures < config.after || !has_room {
            return false;
        }
        if now.since(record.until) >= config.duration_max {
            record.ejections = 0;
        }
        let doubled = 1u64.checked_shl(record.ejections).unwrap_or(u64::MAX);
        let duration = Span::from_nanos(config.duration.nanos().saturating_mul(doubled)).min(config.duration_max);
        *record = ServerRecord { failures: 0, ejections: (record.ejections + 1).min(63), until: now.after(duration) };
        true
    }

    /// Whether a server is left out now.
    pub fn is_ejected(&self, server: usize, now: Time) -> bool {
        self.servers.get(server).is_some_and(|record| now < record.until)
    }

    /// How many servers are left out now.
    pub fn ejected(&self, now: Time) -> usize {
        self.servers.iter().filter(|record| now < record.until).count()
    }

    /// Most servers that may be left out at once.
    pub fn ejected_max(&self) -> usize {
        self.servers.len().saturating_mul(self.config.share_percent.min(100) as usize) / 100
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn never_more_than_the_share_is_ejected(
            servers in 1usize..12,
            share_percent in 0u32..=100,
            steps in prop::collection::vec((0usize..12, any::<bool>(), 0u64..3_000), 1..400),
        ) {
            let config = OutlierConfig { after: 2, share_percent, ..OutlierConfig::default() };
            let (mut detector, mut now) = (OutlierDetector::new(config, servers), START);
            for (server, fails, millis) in steps {
                now = now.after(Span::from_millis(millis));
                if fails {
                    detector.failed(server, now);
                } else {
                    detector.succeeded(server);
                }
                let ejected = (0..servers).filter(|server| detector.is_ejected(*server, now)).count();
                prop_assert_eq!(ejected, detector.ejected(now));
                prop_assert!(ejected * 100 <= servers * share_percent as usize);
            }
        }
    }

    const START: Time = Time::from_secs(1_000);

    fn fail(detector: &mut OutlierDetector, server: usize, now: Time) -> bool {
        (0..5).any(|_| detector.failed(server, now))
    }

    #[test]
    fn failures_in_a_row_eject_a_server() {
        let mut detector = OutlierDetector::new(OutlierConfig::default(), 4);
        for _ in 0..4 {
            assert!(!detector.failed(0, START));
        }
        detector.succeeded(0);
        assert!((0..4).all(|_| !detector.failed(0, START)));
        assert!(detector.failed(0, START) && detector.is_ejected(0, START));
        assert!(!detector.is_ejected(0, START.after(Span::from_secs(5))));
        assert!(!detector.failed(9, START), "an index that is not there");
    }

    #[test]
    fn each_ejection_is_twice_as_long_up_to_a_bound_and_calm_forgets() {
        let mut detector = OutlierDetector::new(OutlierConfig::default(), 2);
        let mut now = START;
        let mut eject = |now: &mut Time| {
            assert!(fail(&mut detector, 0, *now));
            let from = *now;
            while detector.is_ejected(0, *now) {
                *now = now.after(Span::SECOND);
            }
            now.since(from).secs_ceil()
        };
        let spans: Vec<u64> = (0..8).map(|_| eject(&mut now)).collect();
        assert_eq!(spans, [5, 10, 20, 40, 80, 160, 300, 300]);
        now = now.after(Span::from_secs(300));
        assert_eq!(eject(&mut now), 5);
    }

    #[test]
    fn half_of_the_servers_stay() {
        for (servers, most) in [(1, 0), (2, 1), (3, 1), (5, 2), (10, 5)] {
            let mut detector = OutlierDetector::new(OutlierConfig::default(), servers);
            for server in 0..servers {
                fail(&mut detector, server, START);
            }
            assert_eq!(detector.ejected(START), most, "{servers}");
        }
    }

    #[test]
    fn failures_of_an_ejected_server_do_not_prolong_its_ejection() {
        let mut detector = OutlierDetector::new(OutlierConfig::default(), 2);
        assert!(fail(&mut detector, 0, START));
        assert!(!fail(&mut detector, 0, START.after(Span::from_secs(4))));
        assert!(!detector.is_ejected(0, START.after(Span::from_secs(5))));
    }
}
