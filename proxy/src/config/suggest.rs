//! Suggestions for misspelt words.

/// The known word nearest to `word`, if one is near enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A very long word is hostile and not worth comparing.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    // An abbreviation, as `near` for `nearest`, counts if it can be only one word.
    if let [whole] = known
        .iter()
        .filter(|known| word.len() >= 3 && known.starts_with(&word))
        .collect::<Vec<_>>()[..]
    {
        return Some(whole);
    }
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A remedy: the nearest word, or else all words if they are few enough for a list.
pub(crate) fn remedy<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    const LISTED: usize = 30;
    if let Some(meant) = nearest(word, known.clone()) {
        return Some(format!("did you mean `{meant}`?"));
    }
    let all: Vec<&str> = known.into_iter().collect();
    (1..=LISTED)
        .contains(&all.len())
        .then(|| format!("known are: {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_offered_and_a_far_one_is_not() {
        let known = ["servers", "hash", "timeout"];
        assert_eq!(nearest("server", known), Some("servers"));
        assert_eq!(nearest("Timeotu", known), Some("timeout"));
        assert_eq!(nearest("serv", known), Some("servers"));
        assert_eq!(nearest("weight", known), None);
        assert_eq!(
            remedy("weight", known).as_deref(),
            Some("known are: servers, hash, timeout")
        );
    }
}
