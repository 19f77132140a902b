//! The reservation of a stream: how much more must be reserved before a passage goes on.

/// Output tokens that are reserved for a stream.
///
/// A passage is passed on only when the tokens up to its end are reserved. So what was passed on never exceeds what was
/// reserved, and a stream holds at most one step that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBudget {
    reserved: u64,
    step: u64,
}

impl OutputBudget {
    /// A stream for which this much is reserved, extended by steps.
    pub fn new(reserved: u64, step: u64) -> OutputBudget {
        OutputBudget { reserved, step: step.max(1) }
    }

    /// What is reserved now.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Tokens to reserve before a passage that ends at `output_tokens` is passed on: whole steps, or `None` if they are
    /// reserved already.
    pub fn missing(&self, output_tokens: u64) -> Option<u64> {
        let beyond = output_tokens.checked_sub(self.reserved).filter(|beyond| *beyond > 0)?;
        Some(beyond.div_ceil(self.step).saturating_mul(self.step))
    }

    /// The tokens have been reserved.
    pub fn extend(&mut self, tokens: u64) {
        self.reserved = self.reserved.saturating_add(tokens);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extends_by_whole_steps() {
        let mut budget = OutputBudget::new(100, 50);
        assert_eq!(budget.missing(0), None);
        assert_eq!(budget.missing(100), None);
        assert_eq!(budget.missing(101), Some(50));
        assert_eq!(budget.missing(151), Some(100), "a passage may be longer than a step");
        budget.extend(50);
        assert_eq!((budget.missing(150), budget.reserved()), (None, 150));
        assert_eq!(OutputBudget::new(0, 0).missing(3), Some(3));
        assert_eq!(OutputBudget::new(0, 7).missing(u64::MAX), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn never_passes_on_what_is_not_reserved(
            first in 0..500u64,
            step in 0..300u64,
            passages in proptest::collection::vec(0..700u64, 0..50),
        ) {
            let (mut budget, mut passed) = (OutputBudget::new(first, step), 0);
            for tokens in passages {
                passed += tokens;
                if let Some(missing) = budget.missing(passed) {
                    budget.extend(missing);
                }
                prop_assert!(passed <= budget.reserved());
                prop_assert!(budget.reserved() < passed + step.max(1) || budget.reserved() == first);
            }
        }
    }
}
