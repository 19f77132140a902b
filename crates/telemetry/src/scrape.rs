//! All registered metric families as text.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::exposition::{Exposition, to_text, without_prefix};
use crate::page::{MetricFamilies, MetricsPage};

/// The registry of metric families, in the order in which they are written.
pub struct Scrape {
    registry: Registry,
    families: Families,
    names: MetricNames,
}

/// How the names of metrics begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricNames {
    /// `tollgate_requests_denied_total`.
    #[default]
    Prefixed,
    /// `requests_denied_total`, for sites whose scraper adds a prefix or a job label of its own.
    Bare,
}

/// Shared by the registry's collector and [`Scrape::register`].
#[derive(Clone, Default)]
struct Families(Arc<RwLock<Vec<Box<dyn MetricFamilies>>>>);

impl Default for Scrape {
    fn default() -> Scrape {
        let families = Families::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(families.clone()));
        Scrape { registry, families, names: MetricNames::default() }
    }
}

impl Scrape {
    /// With names that begin like this.
    pub fn with_names(self, names: MetricNames) -> Scrape {
        Scrape { names, ..self }
    }

    /// Adds the families of a component behind those registered before.
    pub fn register(&self, families: impl MetricFamilies + 'static) {
        self.families.0.write().push(Box::new(families));
    }

    /// The metrics page with current values.
    pub fn text(&self, exposition: Exposition) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap_or_default(); // writing to a String cannot fail
        let text = match exposition {
            Exposition::OpenMetrics => text,
            Exposition::Text => to_text(&text),
        };
        match self.names {
            MetricNames::Prefixed => text,
            MetricNames::Bare => without_prefix(&text),
        }
    }
}

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = MetricsPage(encoder);
        self.0.read().iter().try_for_each(|families| families.write(&mut page))
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} components", self.0.read().len())
    }
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scrape").field(&self.families).finish()
    }
}
