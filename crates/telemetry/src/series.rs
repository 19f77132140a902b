//! Counts of decisions by rule, tier and mode: bounded, found without a lock, monotonic.
//!
//! A [`SeriesRegistry`] owns every series by its labels for as long as the process lives. A [`GenerationSeries`] is the
//! index of one generation: rules by id, tiers by position; a series is looked up once. Only names in rules files
//! become labels; other values of callers count as [`OTHER`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tollgate_core::Request;
use tollgate_engine::DecidedBy;
use tollgate_ruleset::{Rule, RuleBody, RuleId, RuleSet};

use super::counter::Counter;

/// Stands for every value that must not be a label of its own.
pub const OTHER: &str = "__other__";

/// Most series by rule. With those of [`OTHER`] and all fixed ones they stay below 10,000 (P29).
pub(super) const SERIES_MAX: usize = 9_000;

/// Most tiers with their own label.
const TIERS_MAX: usize = 64;

/// The metric that a series belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SeriesKind {
    Allowed,
    Denied,
    ShadowDenied,
}

/// The labels of one series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesLabels {
    pub(super) kind: SeriesKind,
    pub(super) namespace: Arc<str>,
    pub(super) rule: Arc<str>,
    pub(super) tier: Arc<str>,
    pub(super) mode: DecidedBy,
}

/// All series.
#[derive(Debug, Default)]
pub(super) struct SeriesRegistry(Mutex<BTreeMap<SeriesLabels, Arc<Counter>>>);

impl SeriesRegistry {
    /// The series of these labels; that of [`OTHER`] when there are too many.
    fn counter(&self, labels: SeriesLabels) -> Arc<Counter> {
        let mut series = self.0.lock();
        if let Some(known) = series.get(&labels) {
            return known.clone();
        }
        let full = series.len() >= SERIES_MAX;
        let other = || Arc::<str>::from(OTHER);
        let labels = match full {
            true => SeriesLabels { namespace: other(), rule: other(), tier: other(), ..labels },
            false => labels,
        };
        series.entry(labels).or_default().clone()
    }

    /// If the registry is full, removes the series of removed rules. Until then they keep their values.
    fn evict_removed_rules(&self, rules: &RuleSet) {
        let mut series = self.0.lock();
        if series.len() < SERIES_MAX {
            return;
        }
        let there: HashSet<(&str, &str)> = rules.rules().iter().map(|rule| (&*rule.namespace, &*rule.name)).collect();
        series.retain(|labels, _| {
            labels.rule.is_empty() || &*labels.rule == OTHER || there.contains(&(&*labels.namespace, &*labels.rule))
        });
    }

    /// The value of every series, ordered by labels.
    pub(super) fn read(&self) -> Vec<(SeriesLabels, u64)> {
        let series: Vec<(SeriesLabels, Arc<Counter>)> =
            self.0.lock().iter().map(|(labels, counter)| (labels.clone(), counter.clone())).collect();
        series.into_iter().map(|(labels, counter)| (labels, counter.sum())).collect()
    }
}

/// The series of one generation.
#[derive(Debug)]
pub(super) struct GenerationSeries {
    pub(super) generation: u64,
    pub(super) rules: Vec<RuleSeries>,
    /// No tier, any other tier, then the named ones.
    tiers: Vec<Arc<str>>,
    /// Requests that no rule decided, by namespace.
    undecided: HashMap<Arc<str>, RuleSeries>,
    undecided_by_default: RuleSeries,
    undecided_other: RuleSeries,
}

/// The index of a tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierIndex(usize);

/// The series of one rule.
#[derive(Debug)]
pub(super) struct RuleSeries {
    subject: SeriesSubject,
    /// By tier; made when the rule first decides.
    tiers: OnceLock<Box<[TierSeries]>>,
}

/// What a series is about. Names are copied with the first count: most rules never decide.
#[derive(Debug)]
enum SeriesSubject {
    Rule(Arc<RuleBody>),
    /// Requests of a namespace that no rule decided.
    Namespace(Arc<str>),
}

/// The series of one rule and tier, by kind and mode.
type TierSeries = OnceLock<Box<[OnceLock<Arc<Counter>>; KINDS * MODES]>>;

/// The number of kinds.
const KINDS: usize = 3;

/// The number of modes.
const MODES: usize = DecidedBy::ALL.len();

impl GenerationSeries {
    pub(super) fn new(generation: u64, rules: &RuleSet, registry: &SeriesRegistry) -> GenerationSeries {
        registry.evict_removed_rules(rules);
        let named = rules.tiers().into_iter().take(TIERS_MAX).map(Arc::from);
        let namespaces: HashSet<&str> = rules.rules().iter().map(|rule| rule.namespace.as_str()).collect();
        let undecided = namespaces.into_iter().map(|name| (Arc::from(name), RuleSeries::without_rule(name)));
        GenerationSeries {
            generation,
            rules: rules.rules().iter().map(RuleSeries::of).collect(),
            tiers: [Arc::from(""), Arc::from(OTHER)].into_iter().chain(named).collect(),
            undecided: undecided.collect(),
            undecided_by_default: RuleSeries::without_rule(Request::DEFAULT_NAMESPACE),
            undecided_other: RuleSeries::without_rule(OTHER),
        }
    }

    #[inline]
    pub(super) fn tier(&self, sent: Option<&str>) -> TierIndex {
        let Some(sent) = sent else { return TierIndex(0) };
        let named = self.tiers.get(2..).unwrap_or_default();
        TierIndex(named.binary_search_by(|tier| (**tier).cmp(sent)).map_or(1, |place| place + 2))
    }

    pub(super) fn rule(&self, id: RuleId) -> Option<&RuleSeries> {
        self.rules.get(id.0 as usize)
    }

    /// The series of requests that no rule decided.
    pub(super) fn undecided(&self, namespace: &str) -> &RuleSeries {
        match namespace {
            Request::DEFAULT_NAMESPACE => &self.undecided_by_default,
            _ => self.undecided.get(namespace).unwrap_or(&self.undecided_other),
        }
    }

    #[inline]
    pub(super) fn count(
        &self,
        registry: &SeriesRegistry,
        series: &RuleSeries,
        kind: SeriesKind,
        tier: TierIndex,
        mode: DecidedBy,
    ) {
        let tiers = series.tiers.get_or_init(|| self.tiers.iter().map(|_| TierSeries::new()).collect());
        let row = tiers.get(tier.0).map(|row| row.get_or_init(Box::default));
        let cell = row.and_then(|row| row.get(kind as usize * MODES + mode as usize));
        if let Some(cell) = cell {
            cell.get_or_init(|| registry.counter(self.labels(series, kind, tier, mode))).add_one();
        }
    }

    fn labels(&self, series: &RuleSeries, kind: SeriesKind, tier: TierIndex, mode: DecidedBy) -> SeriesLabels {
        let tier = self.tiers.get(tier.0).cloned().unwrap_or_else(|| Arc::from(OTHER));
        SeriesLabels { kind, namespace: series.namespace(), rule: series.rule(), tier, mode }
    }

    /// Counts for a rule of another generation, by name; slower.
    pub(super) fn count_by_name(
        &self,
        registry: &SeriesRegistry,
        rule: &Rule,
        kind: SeriesKind,
        tier: TierIndex,
        mode: DecidedBy,
    ) {
        let series = RuleSeries::of(rule);
        registry.counter(self.labels(&series, kind, tier, mode)).add_one();
    }
}

impl RuleSeries {
    fn new(subject: SeriesSubject) -> RuleSeries {
        RuleSeries { subject, tiers: OnceLock::new() }
    }

    pub(super) fn of(rule: &Rule) -> RuleSeries {
        RuleSeries::new(SeriesSubject::Rule(rule.body().clone()))
    }

    fn without_rule(namespace: &str) -> RuleSeries {
        RuleSeries::new(SeriesSubject::Namespace(Arc::from(namespace)))
    }

    fn namespace(&self) -> Arc<str> {
        match &self.subject {
            SeriesSubject::Rule(rule) => Arc::from(&*rule.namespace),
            SeriesSubject::Namespace(namespace) => namespace.clone(),
        }
    }

    fn rule(&self) -> Arc<str> {
        match &self.subject {
            SeriesSubject::Rule(rule) => Arc::from(&*rule.name),
            SeriesSubject::Namespace(_) => Arc::from(""),
        }
    }
}
