//! Whether a server passes its active health checks.

/// The state of one server: results in a row change it, one result does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthTracker {
    healthy_after: u32,
    unhealthy_after: u32,
    is_healthy: bool,
    /// Results in a row that contradict the state.
    in_a_row: u32,
    is_checked: bool,
}

impl HealthTracker {
    /// Healthy until the first check; that one decides alone.
    pub fn new(healthy_after: u32, unhealthy_after: u32) -> HealthTracker {
        HealthTracker { healthy_after, unhealthy_after, is_healthy: true, in_a_row: 0, is_checked: false }
    }

    /// A check ended. True if that changed the state.
    pub fn checked(&mut self, passed: bool) -> bool {
        if passed == self.is_healthy {
            (self.in_a_row, self.is_checked) = (0, true);
            return false;
        }
        self.in_a_row += 1;
        let enough = if passed { self.healthy_after } else { self.unhealthy_after };
        if self.is_checked && self.in_a_row < enough {
            return false;
        }
        *self = HealthTracker { is_healthy: passed, in_a_row: 0, is_checked: true, ..*self };
        true
    }

    /// Whether the server may be used.
    pub fn is_healthy(&self) -> bool {
        self.is_healthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_a_row_change_the_state() {
        let mut health = HealthTracker::new(2, 3);
        assert!(!health.checked(true));
        assert_eq!(
            [false, false, true, false, false, false].map(|passed| health.checked(passed)),
            [false, false, false, false, false, true]
        );
        assert!(!health.is_healthy());
        assert_eq!([true, false, true, true].map(|passed| health.checked(passed)), [false, false, false, true]);
        assert!(health.is_healthy());
    }

    #[test]
    fn the_first_check_decides_alone() {
        let mut health = HealthTracker::new(2, 3);
        assert!(health.checked(false) && !health.is_healthy());
        assert!(!health.checked(true) && health.checked(true));
    }
}
