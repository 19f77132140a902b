//! From moments to curves. Times come in milliseconds and leave in seconds.

/// Points of a curve.
pub(super) type Curve = Vec<(f64, f64)>;

/// The number of moments up to each time, from zero until `end`.
pub(super) fn counted(moments: &[u64], end: u64) -> Curve {
    let counts = moments.iter().zip(1_u32..).map(|(at, count)| (seconds(*at), f64::from(count)));
    let total = moments.len() as f64;
    [(0.0, 0.0)].into_iter().chain(counts).chain([(seconds(end), total)]).collect()
}

/// The number of moments in the last `window` at each time; a moment exactly one window ago no longer counts.
pub(super) fn in_the_last(window: u64, moments: &[u64], end: u64) -> Vec<(u64, u64)> {
    let mut changes: Vec<u64> = moments.iter().flat_map(|at| [*at, *at + window]).filter(|at| *at <= end).collect();
    changes.extend([0, end]);
    changes.sort_unstable();
    changes.dedup();
    let count = |now: u64| moments.iter().filter(|at| **at <= now && now < **at + window).count() as u64;
    changes.into_iter().map(|now| (now, count(now))).collect()
}

/// The highest value of a course.
pub(super) fn most(course: &[(u64, u64)]) -> u64 {
    course.iter().map(|(_, value)| *value).max().unwrap_or(0)
}

/// A course as a curve, without redundant points.
pub(super) fn curve(course: &[(u64, u64)]) -> Curve {
    let last = course.len().saturating_sub(1);
    let news = course.iter().enumerate().filter(|(place, (_, value))| {
        let before = place.checked_sub(1).and_then(|place| course.get(place));
        *place == last || before.is_none_or(|(_, before)| before != value)
    });
    news.map(|(_, (at, value))| (seconds(*at), *value as f64)).collect()
}

/// At most one point per `apart` milliseconds: the last of each stretch.
pub(super) fn thinned(course: &[(u64, u64)], apart: u64) -> Vec<(u64, u64)> {
    let ends_stretch = |(place, (at, _)): &(usize, &(u64, u64))| {
        course.get(place + 1).is_none_or(|(next, _)| next / apart != at / apart)
    };
    course.iter().enumerate().filter(ends_stretch).map(|(_, point)| *point).collect()
}

pub(super) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_window_old_no_longer_counts() {
        let course = in_the_last(10, &[0, 5, 5, 12], 20);
        assert_eq!(course, [(0, 1), (5, 3), (10, 2), (12, 3), (15, 1), (20, 1)]);
        assert_eq!(most(&course), 3);
    }

    #[test]
    fn curves_keep_what_changes_and_their_end() {
        assert_eq!(curve(&[(0, 1), (1, 1), (2, 3), (3, 3)]), [(0.0, 1.0), (0.002, 3.0), (0.003, 3.0)]);
        assert_eq!(thinned(&[(0, 1), (4, 2), (9, 3), (10, 4)], 10), [(9, 3), (10, 4)]);
    }
}
