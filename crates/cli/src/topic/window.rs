//! Sliding window over the last measurements, and its statistics.

use std::collections::VecDeque;

/// A bounded queue of numbers that drops the oldest.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    values: VecDeque<f64>,
    size_max: usize,
}

/// Statistics of a window, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    pub sum: f64,
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Population standard deviation, as in ros2.
    pub deviation: f64,
}

impl SlidingWindow {
    /// An empty window for at most `size_max` values; at least 1.
    pub fn new(size_max: usize) -> Self {
        Self {
            values: VecDeque::new(),
            size_max: size_max.max(1),
        }
    }

    /// Adds a value. A full window drops its oldest.
    pub fn push_or_drop_oldest(&mut self, value: f64) {
        if self.values.len() == self.size_max {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The oldest value still held.
    pub fn oldest(&self) -> Option<f64> {
        self.values.front().copied()
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// The statistics; `None` for an empty window.
    pub fn summary(&self) -> Option<Summary> {
        if self.values.is_empty() {
            return None;
        }
        let count = self.values.len();
        let sum: f64 = self.values.iter().sum();
        let mean = sum / count as f64;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Summary {
            count,
            sum,
            mean,
            min: self.values.iter().copied().fold(f64::INFINITY, f64::min),
            max: self
                .values
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max),
            deviation: (squares / count as f64).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_values_count() {
        let mut window = SlidingWindow::new(2);
        assert_eq!(window.summary(), None);
        for value in [100.0, 1.0, 3.0] {
            window.push_or_drop_oldest(value);
        }
        let summary = window.summary().unwrap();
        assert_eq!((summary.count, summary.sum, summary.mean), (2, 4.0, 2.0));
        assert_eq!(
            (summary.min, summary.max, summary.deviation),
            (1.0, 3.0, 1.0)
        );
        assert_eq!(window.oldest(), Some(1.0));
    }
}
