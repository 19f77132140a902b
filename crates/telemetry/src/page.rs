//! Writes the metrics page.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::histogram::HistogramFigures;

/// Writes its own metric families onto the page. Every component that counts something implements it.
pub trait MetricFamilies: Send + Sync {
    /// Appends the current values. Called for every scrape.
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result;
}

impl<F: MetricFamilies> MetricFamilies for Arc<F> {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        F::write(self, page)
    }
}

/// Takes one metric family after the other. Counter names are given without `_total`.
pub struct MetricsPage<'a>(pub(crate) DescriptorEncoder<'a>);

impl MetricsPage<'_> {
    /// A counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        encoder.encode_counter::<NoLabelSet, _, f64>(&count, None)
    }

    /// A counter with labels: one value per label set.
    pub fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in series {
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// A gauge with labels: one value per label set.
    pub fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A histogram without labels.
    pub fn histogram(&mut self, name: &str, help: &str, values: &HistogramFigures) -> fmt::Result {
        let HistogramFigures { sum, count, buckets } = values;
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
    }

    /// A histogram with labels: one distribution per label set.
    pub fn histograms<'d, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl Iterator<Item = (L, &'d HistogramFigures)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, values) in series {
            let HistogramFigures { sum, count, buckets } = values;
            encoder.encode_family(&labels)?.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)?;
        }
        Ok(())
    }

    /// Constant labels about the program, such as its version.
    pub fn info(&mut self, name: &str, help: &str, labels: impl EncodeLabelSet) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
    }
}
