//! Suggestions for misspelt names.

use strsim::osa_distance;

/// The candidate closest to `name`, if it is close enough.
///
/// The distance counts insertions, deletions, replacements and swaps of neighbours, ignoring case. It may be a third of
/// the longer word's characters, and at least one. Of two equally close candidates the earlier wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: String = name.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    let length = name.chars().count();
    if name.is_empty() || length > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let word: String = candidate.chars().flat_map(char::to_lowercase).collect();
            let word_length = word.chars().count();
            let allowed = (length.max(word_length) / 3).max(1);
            if length.abs_diff(word_length) > allowed {
                return None;
            }
            let steps = osa_distance(&name, &word);
            (steps <= allowed).then_some((steps, candidate))
        })
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, candidate)| candidate)
}

/// Help for a word that is not one of `names`.
pub fn suggest(word: &str, names: &[&str]) -> String {
    let allowed = names.join(", ");
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? allowed: {allowed}"),
        None => format!("allowed: {allowed}"),
    }
}

/// Longer words are no typos, and the distance takes quadratic time.
const LONGEST: usize = 128;

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
        for (a, b, steps) in
            [("", "", 0), ("", "abc", 3), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ca", "abc", 3)]
        {
            assert_eq!(osa_distance(a, b), steps, "{a} {b}");
        }
    }
}
