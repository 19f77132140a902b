//! Names beside the ends of lines, moved apart so that none covers another.

/// Places near `wanted`, at least `gap` apart and between `top` and `bottom` while they fit; in the order of `wanted`.
pub(super) fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    let want = |index: &usize| wanted.get(*index).copied().unwrap_or(top);
    order.sort_by(|a, b| want(a).total_cmp(&want(b)));
    let mut places: Vec<f64> = order.iter().map(want).collect();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    let mut result = wanted.to_vec();
    for (index, place) in order.into_iter().zip(places) {
        if let Some(slot) = result.get_mut(index) {
            *slot = place;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_touch_move_apart() {
        assert_eq!(apart(&[50.0, 10.0, 52.0], 16.0, 0.0, 100.0), [50.0, 10.0, 66.0]);
    }

    #[test]
    fn names_stay_inside_while_they_fit() {
        assert_eq!(apart(&[98.0, 99.0], 16.0, 0.0, 100.0), [84.0, 100.0]);
    }
}
