//! Suggestions for misspelt names.

/// The candidate closest to `name`, if it is close enough.
///
/// The distance counts insertions, deletions, replacements and swaps of neighbours, ignoring case. It may be a third of
/// the longer word's characters, and at least one. Of two equally close candidates the earlier wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    if name.is_empty() || name.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let word: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            let allowed = (name.len().max(word.len()) / 3).max(1);
            if name.len().abs_diff(word.len()) > allowed {
                return None;
            }
            let steps = distance(&name, &word);
            (steps <= allowed).then_some((steps, candidate))
        })
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
}

/// Help for a word that is not one of `names`.
pub(crate) fn suggest(word: &str, names: &[&str]) -> String {
    let allowed = names.join(", ");
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? allowed: {allowed}"),
        None => format!("allowed: {allowed}"),
    }
}

/// Longer words are no typos, and the distance takes quadratic time.
const LONGEST: usize = 128;

/// Damerau-Levenshtein distance (optimal string alignment), with three rolling rows.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let fields = ["window", "requests", "burst", "algorithm", "align"];
        let cases = [
            ("widnow", Some("window")),
            ("request", Some("requests")),
            ("Burst", Some("burst")),
            ("algoritm", Some("algorithm")),
            ("zzz", None),
            ("", None),
            ("w", None),
        ];
        for (typo, meant) in cases {
            assert_eq!(nearest(typo, fields), meant, "{typo}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), fields), None);
    }

    #[test]
    fn distance_counts_swaps_once() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, steps) in
            [("", "", 0), ("", "abc", 3), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ca", "abc", 3)]
        {
            assert_eq!(distance(&letters(a), &letters(b)), steps, "{a} {b}");
        }
    }
}
