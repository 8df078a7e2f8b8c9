//! Events of the recorder that could not be published: counted, and noted once per topic.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Counts by topic. The recorder has two topics.
#[derive(Debug, Default)]
pub(crate) struct UnpublishedEvents {
    by_topic: BTreeMap<String, u64>,
}

impl UnpublishedEvents {
    /// Counts an event. Returns a note for the first one of its topic.
    pub(crate) fn count(&mut self, topic: &str, error: &dyn Display) -> Option<String> {
        let counted = self.by_topic.entry(topic.to_owned()).or_default();
        *counted += 1;
        (*counted == 1).then(|| {
            format!(
                "WARNING: an event of [{topic}] is not published, and further ones are only counted: {error}"
            )
        })
    }

    /// Sum of all topics.
    pub(crate) fn total(&self) -> u64 {
        self.by_topic.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_topic_is_noted_and_all_are_counted() {
        let mut unpublished = UnpublishedEvents::default();
        let notes: Vec<_> = ["/a", "/a", "/b", "/a"]
            .into_iter()
            .filter_map(|topic| unpublished.count(topic, &"no space"))
            .collect();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("[/a]") && notes[0].ends_with(": no space"));
        assert_eq!(unpublished.total(), 4);
    }
}
