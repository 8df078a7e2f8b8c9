//! Name suggestions: close names, for "did you mean" in errors.
//!
//! The edit distance counts insertions, deletions, replacements and swaps of
//! neighbours. A name is also close if only its last segment matches, since
//! `String` for `std_msgs/msg/String` is the most common slip.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

/// Up to three of `known` that are close to `wanted`, the closest first.
pub fn close_names<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    let wanted_lower = wanted.to_lowercase();
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let whole = edit_distance(&wanted_lower, &lower);
            // One edit within a segment is likelier than another package.
            let end = edit_distance(last_segment(&wanted_lower), last_segment(&lower));
            let close_end = end == 0 || (end == 1 && !wanted.contains('/'));
            if whole <= allowed {
                Some((whole, name))
            } else {
                close_end.then_some((allowed + 1 + end, name))
            }
        })
        .collect();
    found.sort();
    found.dedup();
    found
        .into_iter()
        .take(SUGGESTIONS_MAX)
        .map(|(_, name)| name.to_string())
        .collect()
}

/// `; did you mean a, b or c?`, or the full stop of the sentence if no name is close.
pub fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let close = close_names(wanted, known);
    match close.split_last() {
        None => ".".into(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// Whether `wanted` is `known` with one slip: one letter too many, too few or another, or
/// two neighbours swapped, within one segment. Names with other digits are other names,
/// as `/camera1` and `/camera2`, and so are segments of less than four letters.
pub fn is_slip_of(wanted: &str, known: &str) -> bool {
    if wanted.matches('/').count() != known.matches('/').count() {
        return false;
    }
    let pairs = wanted.split('/').zip(known.split('/'));
    let mut different = pairs.filter(|(a, b)| a != b);
    let (Some((a, b)), None) = (different.next(), different.next()) else {
        return false;
    };
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    b.chars().count() >= 4 && digits(a) == digits(b) && edit_distance(a, b) == 1
}

const SUGGESTIONS_MAX: usize = 3;

fn last_segment(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Optimal string alignment distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_in_one_segment_is_told_from_another_name() {
        for (wanted, known) in [
            ("/chater", "/chatter"),
            ("/robot/sacn", "/robot/scan"),
            ("/robto1/scan", "/robot1/scan"),
            ("/add_two_int", "/add_two_ints"),
        ] {
            assert!(is_slip_of(wanted, known), "{wanted}");
        }
        for (wanted, known) in [
            ("/front/image_raw", "/rear/image_raw"),
            ("/robot2/get_parameters", "/robot1/get_parameters"),
            ("/camera2", "/camera1"),
            ("/camera2", "/camera"),
            ("/scan", "/scan"),
            ("/scan/raw", "/scan"),
            ("/odo", "/odom_filtered"),
            ("/tf", "/t"),
        ] {
            assert!(!is_slip_of(wanted, known), "{wanted}");
        }
    }

    #[test]
    fn typos_are_recognised_and_unrelated_names_are_not() {
        let topics = ["/chatter", "/scan", "/camera/image"];
        assert_eq!(close_names("/chater", topics), ["/chatter"]);
        assert_eq!(close_names("/sacn", topics), ["/scan"]);
        assert_eq!(close_names("scan", topics), ["/scan"]);
        assert_eq!(close_names("/image", topics), ["/camera/image"]);
        assert!(close_names("/odometry", topics).is_empty());
        let types = ["std_msgs/msg/String", "std_msgs/msg/Int8"];
        assert_eq!(close_names("Strin", types), ["std_msgs/msg/String"]);
    }

    #[test]
    fn several_suggestions_read_as_a_sentence() {
        assert_eq!(
            did_you_mean("ab", ["aa", "ac", "zz"]),
            "; did you mean aa or ac?"
        );
        assert_eq!(did_you_mean("ab", ["zz"]), ".");
    }
}
