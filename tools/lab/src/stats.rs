//! Non-parametric statistics of repeated measurements, by order only.
//!
//! Conclusions rest on repeats, not on samples, because the samples of one run are
//! not independent. The confidence interval of a median over `n` repeats is a pair
//! of order statistics, chosen by the binomial distribution (Conover, Practical
//! Nonparametric Statistics, 3.2). Few repeats do not reach 95 %, so the interval
//! has its actual confidence.
//!
//! Two implementations differ if all repeats of one lie below all repeats of the
//! other. For equal ones that happens once in C(2n, n) (3 repeats: 5 %, 5 repeats:
//! 0.4 %).

use crate::measurement::{Better, Statistic};

/// Confidence that an interval should have.
const CONFIDENCE: f64 = 0.95;
/// Relative differences below this are irrelevant.
const EQUAL: f64 = 0.05;
/// With fewer repeats of either one a difference is not judged.
pub const REPEATS_MIN: usize = 3;
/// A relative spread of repeats above this shows a disturbed machine.
pub const NOISY: f64 = 0.3;

/// The quantile at `at`, with linear interpolation between ranks. NaN without
/// values. `sorted` must be sorted.
pub fn quantile(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = at.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    let share = position - position.floor();
    sorted[low] * (1.0 - share) + sorted[high] * share
}

/// The values in ascending order, without NaNs.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The median. For an even count the mean of the two middle values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// A statistic of values.
pub fn statistic(of: Statistic, values: &[f64]) -> f64 {
    match of {
        Statistic::Median => median(values.iter().copied()),
        Statistic::P95 => quantile(&sorted(values.iter().copied()), 0.95),
        Statistic::Mean => values.iter().sum::<f64>() / values.len() as f64,
    }
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Its probability.
    pub confidence: f64,
}

/// The confidence interval of the median: the tightest pair of order statistics
/// with 95 %, or the extremes with their own confidence. `None` without values.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values.iter().copied());
    let count = sorted.len();
    if count == 0 {
        return None;
    }
    // The median is outside of the pair (r, n - 1 - r) when at most r of n lie on
    // one side of it: 2 P(Binomial(n, 1/2) <= r).
    let mut rank = 0;
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut outside = chance;
    let mut confidence = 1.0 - 2.0 * outside;
    for next in 1..count / 2 {
        chance *= (count - next + 1) as f64 / next as f64;
        outside += chance;
        if 1.0 - 2.0 * outside < CONFIDENCE {
            break;
        }
        rank = next;
        confidence = 1.0 - 2.0 * outside;
    }
    Some(Interval {
        low: sorted[rank],
        high: sorted[count - 1 - rank],
        confidence: confidence.max(0.0),
    })
}

/// The relative spread: range divided by the median.
pub fn spread(values: &[f64]) -> f64 {
    let sorted = sorted(values.iter().copied());
    match (sorted.first(), sorted.last()) {
        (Some(least), Some(most)) => (most - least) / quantile(&sorted, 0.5).abs().max(1e-12),
        _ => 0.0,
    }
}

/// Significance of a difference between two implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Significance {
    /// The first is significantly better.
    Better,
    /// The first is significantly worse.
    Worse,
    /// Less than 5 % apart.
    Equal,
    /// Different, but the repeats overlap, or there are fewer than [`REPEATS_MIN`].
    Unclear,
}

/// Whether the first value is worse than the second by more than 5 %.
pub fn is_behind(first: f64, second: f64, better: Better) -> bool {
    let is_different = (first - second).abs() > EQUAL * second.abs();
    is_different
        && match better {
            Better::Lower => first > second,
            Better::Higher => first < second,
            Better::Neither => false,
        }
}

/// Compares the first with the second.
pub fn compare(first: &[f64], second: &[f64], better: Better) -> Significance {
    let (a, b) = (
        sorted(first.iter().copied()),
        sorted(second.iter().copied()),
    );
    let (Some(a_least), Some(a_most)) = (a.first(), a.last()) else {
        return Significance::Unclear;
    };
    let (Some(b_least), Some(b_most)) = (b.first(), b.last()) else {
        return Significance::Unclear;
    };
    let (of_a, of_b) = (quantile(&a, 0.5), quantile(&b, 0.5));
    if (of_a - of_b).abs() <= EQUAL * of_b.abs() {
        return Significance::Equal;
    }
    let apart = a_most < b_least || b_most < a_least;
    if !apart || a.len().min(b.len()) < REPEATS_MIN {
        return Significance::Unclear;
    }
    match (better, of_a < of_b) {
        (Better::Lower, true) | (Better::Higher, false) => Significance::Better,
        (Better::Lower, false) | (Better::Higher, true) => Significance::Worse,
        (Better::Neither, _) => Significance::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_textbook() {
        // R: quantile(c(1, 2, 3, 4, 10), c(0, .25, .5, .95, 1)), type 7.
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        let of = |at| quantile(&values, at);
        assert_eq!([of(0.0), of(0.25), of(0.5), of(1.0)], [1.0, 2.0, 3.0, 10.0]);
        assert!((of(0.95) - 8.8).abs() < 1e-9);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median([]).is_nan());
        assert_eq!(statistic(Statistic::Mean, &values), 4.0);
    }

    #[test]
    fn an_interval_reports_the_confidence_that_it_reached() {
        // Binomial tables: 1 - 2 / 2^n for the extremes.
        let of = |n: u32| interval(&(1..=n).map(f64::from).collect::<Vec<_>>()).expect("some");
        assert_eq!((of(3).low, of(3).high, of(3).confidence), (1.0, 3.0, 0.75));
        assert_eq!(of(5).confidence, 0.9375);
        assert_eq!(of(6).confidence, 0.96875);
        // n = 10: ranks 2 and 9 have 97.9 %, 3 and 8 only 89.1 %.
        assert_eq!((of(10).low, of(10).high), (2.0, 9.0));
        assert!((of(10).confidence - 0.978_515_625).abs() < 1e-12);
        // n = 20: ranks 6 and 15, 95.9 %.
        assert_eq!((of(20).low, of(20).high), (6.0, 15.0));
        assert_eq!(of(1).confidence, 0.0);
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn a_difference_counts_when_no_repeats_overlap() {
        use Significance::{Better as Wins, Equal, Unclear, Worse};
        let of = |a: &[f64], b: &[f64]| compare(a, b, Better::Lower);
        assert_eq!(of(&[10.0, 11.0, 12.0], &[20.0, 21.0, 30.0]), Wins);
        assert_eq!(of(&[20.0, 21.0, 30.0], &[10.0, 11.0, 12.0]), Worse);
        assert_eq!(of(&[10.0, 11.0, 25.0], &[20.0, 21.0, 30.0]), Unclear);
        assert_eq!(of(&[10.0, 10.2], &[10.3, 10.4]), Equal);
        assert_eq!(of(&[10.0], &[20.0]), Unclear);
        assert_eq!(
            compare(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0], Better::Higher),
            Wins
        );
        assert_eq!(of(&[10.0, 11.0], &[20.0, 21.0]), Unclear, "too few");
        assert_eq!(of(&[], &[1.0]), Unclear);
    }

    #[test]
    fn widely_scattered_repeats_are_reported() {
        assert!(spread(&[100.0, 105.0, 110.0]) < NOISY);
        assert!(spread(&[100.0, 105.0, 180.0]) > NOISY);
    }
}
