//! The counts of decisions by rule, tier and mode: bounded, found without a lock, and never going back.
//!
//! A [`Book`] owns every series by its labels for as long as the process lives. A [`Table`] is one generation's shortcut
//! into it: rules by number, tiers by place, and a series looked up once and then remembered. Only names that rules
//! files spell out become labels; whatever else callers send counts as [`OTHER`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tollgate_core::Request;
use tollgate_engine::DecidedBy;
use tollgate_rules::ruleset::{Rule, RuleBody, RuleId, RuleSet};

use super::counter::Counter;

/// Stands for every value that must not be a label of its own.
pub const OTHER: &str = "__other__";

/// Most series by rule. With those of [`OTHER`] and all fixed ones they stay below 10,000 (P29).
pub(super) const SERIES_MAX: usize = 9_000;

/// Most tiers that are told apart.
const TIERS_MAX: usize = 64;

/// How a request ended, or what a shadow rule would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Allowed,
    Denied,
    ShadowDenied,
}

/// Names one series. Tier and mode are empty for shadow rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    pub(super) kind: Kind,
    pub(super) namespace: Arc<str>,
    pub(super) rule: Arc<str>,
    pub(super) tier: Arc<str>,
    pub(super) mode: Option<DecidedBy>,
}

/// All series there are.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<BTreeMap<Labels, Arc<Counter>>>);

impl Book {
    /// The series of these labels; that of [`OTHER`] when there are too many.
    fn counter(&self, labels: Labels) -> Arc<Counter> {
        let mut series = self.0.lock();
        if let Some(known) = series.get(&labels) {
            return known.clone();
        }
        let full = series.len() >= SERIES_MAX;
        let other = || Arc::<str>::from(OTHER);
        let labels = match full {
            true => Labels { namespace: other(), rule: other(), tier: other(), ..labels },
            false => labels,
        };
        series.entry(labels).or_default().clone()
    }

    /// Makes room in a full book: series of rules that are gone go, too. Until then they stay, and stay what they were.
    fn tidy(&self, rules: &RuleSet) {
        let mut series = self.0.lock();
        if series.len() < SERIES_MAX {
            return;
        }
        let there: HashSet<(&str, &str)> = rules.rules().iter().map(|rule| (&*rule.namespace, &*rule.name)).collect();
        series.retain(|labels, _| {
            labels.rule.is_empty() || &*labels.rule == OTHER || there.contains(&(&*labels.namespace, &*labels.rule))
        });
    }

    /// What every series counts, in the order of their labels.
    pub(super) fn read(&self) -> Vec<(Labels, u64)> {
        let series: Vec<(Labels, Arc<Counter>)> =
            self.0.lock().iter().map(|(labels, counter)| (labels.clone(), counter.clone())).collect();
        series.into_iter().map(|(labels, counter)| (labels, counter.sum())).collect()
    }
}

/// One generation's way into the book.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) generation: u64,
    pub(super) rules: Vec<Slot>,
    /// No tier, any other tier, and those with a name.
    tiers: Vec<Arc<str>>,
    /// Where no rule decided, by namespace.
    undecided: HashMap<Arc<str>, Slot>,
    undecided_by_default: Slot,
    undecided_elsewhere: Slot,
}

/// The place of a tier in its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tier(usize);

/// The series of one rule.
#[derive(Debug)]
pub(super) struct Slot {
    about: About,
    /// By tier; made when the rule first decides.
    rows: OnceLock<Box<[Row]>>,
    shadow: OnceLock<Arc<Counter>>,
}

/// What a slot counts for. Names are copied when the first series is made: most of many rules never decide anything.
#[derive(Debug)]
enum About {
    Rule(Arc<RuleBody>),
    /// Requests of a namespace that no rule decided.
    Namespace(Arc<str>),
}

/// The series of one rule and tier, by mode and outcome.
type Row = OnceLock<Box<[OnceLock<Arc<Counter>>; 2 * MODES]>>;

/// How many modes there are.
const MODES: usize = DecidedBy::ALL.len();

impl Table {
    pub(super) fn new(generation: u64, rules: &RuleSet, book: &Book) -> Table {
        book.tidy(rules);
        let named = rules.tiers().into_iter().take(TIERS_MAX).map(Arc::from);
        let namespaces: HashSet<&str> = rules.rules().iter().map(|rule| rule.namespace.as_str()).collect();
        let undecided = namespaces.into_iter().map(|name| (Arc::from(name), Slot::without_rule(name)));
        Table {
            generation,
            rules: rules.rules().iter().map(Slot::of).collect(),
            tiers: [Arc::from(""), Arc::from(OTHER)].into_iter().chain(named).collect(),
            undecided: undecided.collect(),
            undecided_by_default: Slot::without_rule(Request::DEFAULT_NAMESPACE),
            undecided_elsewhere: Slot::without_rule(OTHER),
        }
    }

    #[inline]
    pub(super) fn tier(&self, sent: Option<&str>) -> Tier {
        let Some(sent) = sent else { return Tier(0) };
        let named = self.tiers.get(2..).unwrap_or_default();
        Tier(named.binary_search_by(|tier| (**tier).cmp(sent)).map_or(1, |place| place + 2))
    }

    pub(super) fn rule(&self, id: RuleId) -> Option<&Slot> {
        self.rules.get(id.0 as usize)
    }

    /// Where requests count that no rule decided.
    pub(super) fn undecided(&self, namespace: &str) -> &Slot {
        match namespace {
            Request::DEFAULT_NAMESPACE => &self.undecided_by_default,
            _ => self.undecided.get(namespace).unwrap_or(&self.undecided_elsewhere),
        }
    }

    #[inline]
    pub(super) fn count(&self, book: &Book, slot: &Slot, kind: Kind, tier: Tier, mode: DecidedBy) {
        let rows = slot.rows.get_or_init(|| self.tiers.iter().map(|_| Row::new()).collect());
        let row = rows.get(tier.0).map(|row| row.get_or_init(Box::default));
        let cell = row.and_then(|row| row.get(2 * (mode as usize) + usize::from(kind == Kind::Denied)));
        if let Some(cell) = cell {
            cell.get_or_init(|| book.counter(self.labels(slot, kind, tier, mode))).add_one();
        }
    }

    fn labels(&self, slot: &Slot, kind: Kind, tier: Tier, mode: DecidedBy) -> Labels {
        let tier = self.tiers.get(tier.0).cloned().unwrap_or_else(|| Arc::from(OTHER));
        Labels { kind, namespace: slot.namespace(), rule: slot.rule(), tier, mode: Some(mode) }
    }

    /// Counts for a rule of another generation, by its name; slower.
    pub(super) fn count_foreign(&self, book: &Book, rule: &Rule, kind: Kind, tier: Tier, mode: DecidedBy) {
        let slot = Slot::of(rule);
        book.counter(self.labels(&slot, kind, tier, mode)).add_one();
    }
}

impl Slot {
    fn new(about: About) -> Slot {
        Slot { about, rows: OnceLock::new(), shadow: OnceLock::new() }
    }

    pub(super) fn of(rule: &Rule) -> Slot {
        Slot::new(About::Rule(rule.body().clone()))
    }

    fn without_rule(namespace: &str) -> Slot {
        Slot::new(About::Namespace(Arc::from(namespace)))
    }

    fn namespace(&self) -> Arc<str> {
        match &self.about {
            About::Rule(rule) => Arc::from(&*rule.namespace),
            About::Namespace(namespace) => namespace.clone(),
        }
    }

    fn rule(&self) -> Arc<str> {
        match &self.about {
            About::Rule(rule) => Arc::from(&*rule.name),
            About::Namespace(_) => Arc::from(""),
        }
    }

    /// A shadow rule would have refused.
    pub(super) fn count_shadow(&self, book: &Book) {
        let labels = || Labels {
            kind: Kind::ShadowDenied,
            namespace: self.namespace(),
            rule: self.rule(),
            tier: Arc::from(""),
            mode: None,
        };
        self.shadow.get_or_init(|| book.counter(labels())).add_one();
    }
}
