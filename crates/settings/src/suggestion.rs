//! "Did you mean": the known name that a misspelt one most likely stands for.

/// The candidate nearest to `text`, if one is near enough to be worth mentioning: at most a third of
/// its letters wrong (insertions, deletions, substitutions and swaps of neighbours count one each), or
/// one of the two a prefix of the other.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = normalised(text);
    candidates
        .into_iter()
        .map(|candidate| (distance(&text, &normalised(candidate)), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// The known names nearest to `text`, the nearest first: by the whole name or by its last part, three at most.
pub fn ranked<'a>(text: &str, names: &[&'a str]) -> Vec<&'a str> {
    let text = normalised(text);
    let last = |name: &str| normalised(name.rsplit('.').next().unwrap_or(name));
    let of = |name: &str| {
        let whole = strsim::damerau_levenshtein(&text, &normalised(name));
        whole.min(distance(&last(&text), &last(name)) + usize::from(text.contains('.')))
    };
    let mut ranked: Vec<_> = names.iter().map(|name| (of(name), *name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    let is_near = |(distance, _): &(usize, &str)| *distance <= (text.chars().count() / 3).max(1);
    ranked.into_iter().filter(is_near).take(3).map(|(_, name)| name).collect()
}

/// Case and the choice of separator are never what was meant, and `+` is written `p` in names.
fn normalised(text: &str) -> String {
    let letter = |c: char| match c {
        '-' => '_',
        '+' => 'p',
        c => c.to_ascii_lowercase(),
    };
    // Nothing near a known name is this long, and the distance takes quadratic time.
    text.chars().take(64).map(letter).collect()
}

fn distance(a: &str, b: &str) -> usize {
    let shorter = a.len().min(b.len());
    if a != b && shorter >= 3 && (a.starts_with(b) || b.starts_with(a)) {
        return 1;
    }
    strsim::damerau_levenshtein(a, b)
}

/// `names` as a list for people: `a, b, c`.
pub fn enumerate<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// `names` as a choice for people: `one of a, b, c`, or the only name there is.
pub fn one_of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let several = names.clone().nth(1).is_some();
    let names = enumerate(names);
    if several { format!("one of {names}") } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["buffers", "duration", "flows", "seed", "default_inside"];

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("bufers", KEYS), Some("buffers"));
        assert_eq!(nearest("dur", KEYS), Some("duration"));
        assert_eq!(nearest("flwos", KEYS), Some("flows"));
        assert_eq!(nearest("Default-Inside", KEYS), Some("default_inside"));
        assert_eq!(nearest("sede", KEYS), Some("seed"));
        assert_eq!(nearest("rss++", ["rss", "rsspp"]), Some("rsspp"));
    }

    #[test]
    fn says_nothing_rather_than_nonsense() {
        assert_eq!(nearest("colour", KEYS), None);
        assert_eq!(nearest("", KEYS), None);
        assert_eq!(nearest(&"x".repeat(100_000), KEYS), None);
        assert_eq!(nearest("seed", []), None);
    }
}
