//! How many requests an upstream can have in flight, learned from how it answers (SPEC 5.8).

mod aimd;
mod envoy;
mod gradient2;
mod sample;
#[cfg(test)]
mod vectors;
mod vegas;

use tollgate_core::{Span, Time};

pub use aimd::Aimd;
pub use envoy::{EnvoyGradient, GradientMode};
pub use gradient2::Gradient2;
pub use sample::{RttSample, SampleWindow, WindowConfig};
pub use vegas::Vegas;

/// The name of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptiveAlgorithm {
    /// A limit that does not move.
    Fixed,
    /// Reacts to refusals and timeouts.
    Aimd,
    /// Estimates the queue at the upstream.
    Vegas,
    /// Compares the present time with its average.
    Gradient2,
    /// Compares the present time with a best one that it measures: Envoy's gradient, paced.
    Gradient,
    /// Envoy's gradient as published.
    Envoy,
}

/// A limit on requests in flight, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// How the limit moves.
    pub algorithm: AdaptiveAlgorithm,
    /// Where it starts.
    pub initial: u32,
    /// The smallest limit; at least 1.
    pub min: u32,
    /// The largest limit.
    pub max: u32,
    /// Merges samples first.
    pub window: Option<WindowConfig>,
}

impl Default for AdaptiveConfig {
    fn default() -> AdaptiveConfig {
        AdaptiveConfig::of(AdaptiveConfig::DEFAULT)
    }
}

impl AdaptiveConfig {
    /// The algorithm that is used unless another is chosen.
    pub const DEFAULT: AdaptiveAlgorithm = AdaptiveAlgorithm::Gradient;

    /// The published defaults of an algorithm; for Vegas, windows of 100 ms (decision 86).
    pub fn of(algorithm: AdaptiveAlgorithm) -> AdaptiveConfig {
        let (initial, min, max) = match algorithm {
            AdaptiveAlgorithm::Fixed => (100, 100, 100),
            AdaptiveAlgorithm::Aimd | AdaptiveAlgorithm::Gradient2 => (20, 20, 200),
            AdaptiveAlgorithm::Vegas => (20, 1, 1000),
            AdaptiveAlgorithm::Gradient => (20, 3, 1000),
            AdaptiveAlgorithm::Envoy => (3, 3, 1000),
        };
        let window = match algorithm {
            AdaptiveAlgorithm::Gradient2 => Some(WindowConfig::default()),
            AdaptiveAlgorithm::Vegas => {
                Some(WindowConfig { length: Span::from_millis(100), ..WindowConfig::default() })
            }
            AdaptiveAlgorithm::Fixed
            | AdaptiveAlgorithm::Aimd
            | AdaptiveAlgorithm::Gradient
            | AdaptiveAlgorithm::Envoy => None,
        };
        AdaptiveConfig { algorithm, initial, min, max, window }
    }

    /// Always this many.
    pub fn fixed(limit: u32) -> AdaptiveConfig {
        let algorithm = AdaptiveAlgorithm::Fixed;
        AdaptiveConfig { algorithm, initial: limit, min: limit, max: limit, window: None }
    }
}

/// A limit on requests in flight that follows what the upstream can carry.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    controller: Controller,
    window: Option<SampleWindow>,
}

#[derive(Clone, Debug)]
enum Controller {
    Fixed(u32),
    Aimd(Aimd),
    Vegas(Vegas),
    Gradient2(Gradient2),
    Envoy(EnvoyGradient),
}

impl AdaptiveLimit {
    /// The limit at its start.
    pub fn new(config: AdaptiveConfig) -> AdaptiveLimit {
        let min = config.min.max(1);
        let max = config.max.max(min);
        let initial = config.initial.clamp(min, max);
        let controller = match config.algorithm {
            AdaptiveAlgorithm::Fixed => Controller::Fixed(initial),
            AdaptiveAlgorithm::Aimd => Controller::Aimd(Aimd::new(initial, min, max)),
            AdaptiveAlgorithm::Vegas => Controller::Vegas(Vegas::new(initial, min, max)),
            AdaptiveAlgorithm::Gradient2 => Controller::Gradient2(Gradient2::new(initial, min, max)),
            AdaptiveAlgorithm::Gradient => {
                Controller::Envoy(EnvoyGradient::new(GradientMode::Paced, initial, min, max))
            }
            AdaptiveAlgorithm::Envoy => {
                Controller::Envoy(EnvoyGradient::new(GradientMode::Published, initial, min, max))
            }
        };
        AdaptiveLimit { controller, window: config.window.map(SampleWindow::new) }
    }

    /// How many requests may be in flight; at least 1.
    pub fn limit(&self) -> u32 {
        let limit = match &self.controller {
            Controller::Fixed(limit) => *limit,
            Controller::Aimd(aimd) => aimd.limit(),
            Controller::Vegas(vegas) => vegas.limit(),
            Controller::Gradient2(gradient) => gradient.limit(),
            Controller::Envoy(envoy) => envoy.limit(),
        };
        limit.max(1)
    }

    /// Adds the sample of a request that ended now.
    pub fn record(&mut self, now: Time, sample: RttSample, random: u64) {
        let sample = match &mut self.window {
            Some(window) => match window.add(now, sample) {
                Some(merged) => merged,
                None => return,
            },
            None => sample,
        };
        match &mut self.controller {
            Controller::Fixed(_) => {}
            Controller::Aimd(aimd) => aimd.record(sample),
            Controller::Vegas(vegas) => vegas.record(sample, random),
            Controller::Gradient2(gradient) => gradient.record(sample),
            Controller::Envoy(envoy) => envoy.record(now, sample, random),
        }
    }
}
