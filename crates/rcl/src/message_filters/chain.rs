//! Chain: filters of one input, one behind the other.

use std::fmt;

/// A filter with one input.
pub trait MessageFilter<M>: Send {
    /// Takes a message, and returns the stamps and messages that it passes on.
    fn pass(&mut self, stamp: i64, message: M) -> Vec<(i64, M)>;

    /// Drops what it keeps: time has gone back, or has another source.
    fn clear(&mut self) {}
}

/// A closure passes on or drops, and may change a message.
impl<M, F> MessageFilter<M> for F
where
    F: FnMut(i64, M) -> Option<M> + Send,
{
    fn pass(&mut self, stamp: i64, message: M) -> Vec<(i64, M)> {
        self(stamp, message)
            .map(|message| (stamp, message))
            .into_iter()
            .collect()
    }
}

/// Filters, one behind the other; itself a filter. Without filters it passes everything on.
pub struct Chain<M> {
    filters: Vec<Box<dyn MessageFilter<M>>>,
}

impl<M> Chain<M> {
    /// A chain without filters.
    pub fn new() -> Self {
        Self {
            filters: Vec::new(),
        }
    }

    /// Adds a filter at the end.
    pub fn with(mut self, filter: impl MessageFilter<M> + 'static) -> Self {
        self.filters.push(Box::new(filter));
        self
    }
}

impl<M> Default for Chain<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> MessageFilter<M> for Chain<M> {
    fn pass(&mut self, stamp: i64, message: M) -> Vec<(i64, M)> {
        let mut passed = vec![(stamp, message)];
        for filter in &mut self.filters {
            let each = passed.into_iter();
            passed = each
                .flat_map(|(stamp, message)| filter.pass(stamp, message))
                .collect();
        }
        passed
    }

    fn clear(&mut self) {
        self.filters.iter_mut().for_each(|filter| filter.clear());
    }
}

impl<M> fmt::Debug for Chain<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("filters", &self.filters.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;

    #[test]
    fn a_chain_passes_on_what_all_its_filters_pass() {
        let mut chain = Chain::new()
            .with(Cache::new(2))
            .with(|_: i64, message: i64| (message % 2 == 0).then_some(message * 10))
            .with(Chain::new());
        assert_eq!(chain.pass(5, 2), [(5, 20)]);
        assert!(chain.pass(6, 3).is_empty());
        chain.clear();
        assert_eq!(Chain::default().pass(7, "all"), [(7, "all")]);
    }
}
