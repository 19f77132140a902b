//! By which numbers the overrides of a directory refer to a rule.

use tollgate_core::Time;

use crate::directory::PackedOverride;

/// The numbers of a rule in a directory, by which overrides refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleNumbers {
    /// That of its name.
    pub(super) name: u32,
    /// That of its name within plans: such an override applies in every plan. [`UNKNOWN`] for a rule outside of plans,
    /// and where another rule has this name.
    pub(super) in_plans: u32,
    /// That of overrides of every rule; [`UNKNOWN`] if there are none.
    pub(super) every: u32,
}

/// The number of a rule that a directory does not know.
pub(super) const UNKNOWN: u32 = u32::MAX;

impl RuleNumbers {
    /// Whether an override or grant names the rule, by its own name or by its name within plans.
    #[inline]
    pub(super) fn are_named_by(&self, other: &PackedOverride) -> bool {
        other.rule == self.name || other.rule == self.in_plans
    }

    /// The override in force among those of one identity: by the rule's own name, else by its name within plans, else
    /// one of every rule.
    #[inline]
    pub(super) fn find<'a>(&self, overrides: &'a [PackedOverride], wall: Time) -> Option<&'a PackedOverride> {
        let numbered = |number: u32| overrides.iter().find(|other| other.rule == number && other.holds(wall));
        let known = |number: u32| if number == UNKNOWN { None } else { numbered(number) };
        numbered(self.name).or_else(|| known(self.in_plans)).or_else(|| known(self.every))
    }
}
