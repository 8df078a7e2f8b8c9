//! Name suggestions for errors in launch files.

use pteros::msg::suggest::close_names;

/// `; did you mean a or b?`, or `; hint` if no name is close.
pub fn did_you_mean<'k>(
    wanted: &str,
    known: impl IntoIterator<Item = &'k str>,
    hint: &str,
) -> String {
    let close = close_names(wanted, known);
    match close.split_last() {
        None => format!("; {hint}"),
        Some((only, [])) => format!("; did you mean {only:?}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// At most twelve names, sorted, for an error text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_gets_a_suggestion_and_an_unrelated_one_none() {
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
