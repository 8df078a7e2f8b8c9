//! "Did you mean": names a slip or two away.

/// `; did you mean a or b?`, or `; the way out` where none is close.
pub fn did_you_mean<'k>(
    wanted: &str,
    known: impl IntoIterator<Item = &'k str>,
    way_out: &str,
) -> String {
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    let mut close: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(slips, _)| *slips <= allowed)
        .collect();
    close.sort();
    close.dedup();
    let close: Vec<&str> = close.into_iter().take(3).map(|(_, name)| name).collect();
    match close.split_last() {
        None => format!("; {way_out}"),
        Some((only, [])) => format!("; did you mean {only:?}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// Up to twelve names for a message, sorted.
pub fn listed<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    const SHOWN_MAX: usize = 12;
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => "none".into(),
        count if count > SHOWN_MAX => format!(
            "{} and {} more",
            names[..SHOWN_MAX].join(", "),
            count - SHOWN_MAX
        ),
        _ => names.join(", "),
    }
}

/// Insertions, deletions, replacements and swapped neighbours; capital letters and
/// dashes for underscores are no slip.
fn distance(a: &str, b: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace('-', "_").chars().collect();
    let (a, b): (Vec<char>, Vec<char>) = (plain(a), plain(b));
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["namespace", "name", "respawn"];
        assert_eq!(
            did_you_mean("namespce", known, "look it up"),
            "; did you mean \"namespace\"?"
        );
        let swapped = did_you_mean("anme", known, "look it up");
        assert_eq!(swapped, "; did you mean \"name\"?");
        assert_eq!(did_you_mean("colour", known, "look it up"), "; look it up");
    }
}
