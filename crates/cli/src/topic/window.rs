//! The last so many measurements and what they say.

use std::collections::VecDeque;

/// A bounded queue of numbers; the oldest makes room.
#[derive(Clone, Debug)]
pub struct Window {
    values: VecDeque<f64>,
    size_max: usize,
}

/// What a window says, in the unit that was put in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values there are.
    pub count: usize,
    /// Their sum.
    pub sum: f64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their standard deviation as of a whole population, as ros2 has it.
    pub deviation: f64,
}

impl Window {
    /// An empty window for at most `size_max` values, which is at least 1.
    pub fn new(size_max: usize) -> Self {
        Self {
            values: VecDeque::new(),
            size_max: size_max.max(1),
        }
    }

    /// Adds a value; the oldest makes room.
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

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// What the values say; nothing of no values.
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
        let mut window = Window::new(2);
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
