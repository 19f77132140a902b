//! Suggestions for misspelt words.

use strsim::osa_distance;

/// Longer texts get no suggestion: the distance takes time that grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate closest to `word` regardless of case, if at most a third of the longer text differs, or one letter.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let close = candidates.into_iter().filter_map(|candidate| {
        let other = candidate.to_lowercase();
        let other_length = other.chars().count();
        let allowed = (length.max(other_length) / 3).max(1);
        if length.abs_diff(other_length) > allowed {
            return None;
        }
        let distance = osa_distance(&word, &other);
        (distance <= allowed).then_some((distance, candidate))
    });
    close.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Help for a word that is not one of `names`.
pub(crate) fn suggest(word: &str, names: &[&str]) -> String {
    let allowed = names.join(", ");
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? allowed: {allowed}"),
        None => format!("allowed: {allowed}"),
    }
}
