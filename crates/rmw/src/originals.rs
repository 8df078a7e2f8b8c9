//! Samples that a publisher brings along from an earlier life of it, or of
//! another: a subscription that had them already is spared the repetition
//! (RTPS 2.5 §8.7.9, DDS 1.4 §2.2.3.4).
//!
//! A sample is known by who wrote it first and its number there. Publishers
//! hand over in order, so one number per writer says what was had of it. It is
//! kept after the writer is gone, for that is when it is needed. What others say
//! to have from a writer is noted by itself: no peer can make a living writer
//! unheard.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::seq::SampleIdentity;

/// Writers remembered per subscription: restarts of its publishers. Beyond it
/// the one heard longest ago is forgotten; its samples may then come again.
const WRITERS_MAX: usize = 1_024;

/// What one subscription has had of durable publishers.
#[derive(Debug, Default)]
pub(crate) struct Originals {
    /// Matched publishers whose samples outlive them.
    durable: BTreeSet<Guid>,
    had: BTreeMap<Guid, Had>,
    heard: u64,
    /// Samples that had come before.
    pub repeated: u64,
}

#[derive(Debug, Default)]
struct Had {
    /// Of the writer itself.
    through: i64,
    /// Of what others brought as its.
    brought: i64,
    /// When it was last heard, counted in samples.
    heard: u64,
}

impl Originals {
    /// A publisher matched whose samples outlive it.
    pub fn note_durable(&mut self, writer: Guid) {
        self.durable.insert(writer);
    }

    /// A publisher is gone; what was had of it stays known.
    pub fn forget_durable(&mut self, writer: Guid) {
        self.durable.remove(&writer);
    }

    /// Whether the subscription has not had the sample.
    pub fn admits(
        &mut self,
        writer: Guid,
        sequence: i64,
        original: Option<SampleIdentity>,
    ) -> bool {
        let (writer, number) = match original {
            Some(original) => (original.writer, original.sequence.0),
            None if self.durable.contains(&writer) => (writer, sequence),
            None => return true,
        };
        self.heard += 1;
        if self.had.len() >= WRITERS_MAX
            && !self.had.contains_key(&writer)
            && let Some(oldest) = self.had.iter().min_by_key(|(_, had)| had.heard)
        {
            let oldest = *oldest.0;
            self.had.remove(&oldest);
        }
        let had = self.had.entry(writer).or_default();
        had.heard = self.heard;
        let (known, noted) = match original {
            Some(_) => (had.through.max(had.brought), &mut had.brought),
            None => (had.through, &mut had.through),
        };
        if number <= known {
            self.repeated += 1;
            return false;
        }
        *noted = number;
        true
    }

    /// The writers of a participant that began anew count from 1 again.
    pub fn forget_participant(&mut self, prefix: GuidPrefix) {
        let all = self.had.iter_mut();
        for (_, had) in all.filter(|(writer, _)| writer.prefix == prefix) {
            had.brought = had.brought.max(had.through);
            had.through = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_rtps::seq::SequenceNumber;

    use crate::sample::tests::item_of;
    use crate::sample::{Item, Kin};

    impl Originals {
        fn admits_item(&mut self, item: &Item) -> bool {
            let original = item.original();
            self.admits(item.meta.publisher, item.meta.sequence, original)
        }
    }

    fn live(writer: u8, n: i64) -> Item {
        item_of(writer, n)
    }

    /// Sample `n` of `writer`, brought by `by` under another number.
    fn brought(by: u8, writer: u8, n: i64) -> Item {
        Item {
            kin: Kin::new(
                Some(SampleIdentity {
                    writer: live(writer, n).meta.publisher,
                    sequence: SequenceNumber(n),
                }),
                None,
            ),
            ..live(by, n + 100)
        }
    }

    #[test]
    fn what_was_had_of_an_earlier_life_does_not_come_again() {
        let mut originals = Originals::default();
        originals.note_durable(live(1, 0).meta.publisher);
        assert!((1..=3).all(|n| originals.admits_item(&live(1, n))));
        originals.forget_durable(live(1, 0).meta.publisher);
        originals.note_durable(live(2, 0).meta.publisher);
        let come: Vec<_> = (1..=5)
            .filter(|n| originals.admits_item(&brought(2, 1, *n)))
            .collect();
        assert_eq!((come, originals.repeated), (vec![4, 5], 3));
        // Its own samples, and a third life that has both.
        assert!(originals.admits_item(&live(2, 1)));
        assert!(!originals.admits_item(&brought(3, 1, 5)));
        assert!(!originals.admits_item(&brought(3, 2, 1)));
        assert!(originals.admits_item(&brought(3, 2, 2)));
    }

    #[test]
    fn nobody_makes_a_living_writer_unheard_by_claiming_its_samples() {
        let mut originals = Originals::default();
        originals.note_durable(live(1, 0).meta.publisher);
        assert!(originals.admits_item(&live(1, 1)));
        assert!(originals.admits_item(&brought(9, 1, i64::MAX - 100)));
        assert!(originals.admits_item(&live(1, 2)));
        assert!(!originals.admits_item(&live(1, 2)));
    }

    #[test]
    fn a_process_that_began_anew_under_its_old_name_is_heard_from_its_first_sample() {
        let mut originals = Originals::default();
        let writer = live(1, 0).meta.publisher;
        originals.note_durable(writer);
        assert!((1..=3).all(|n| originals.admits_item(&live(1, n))));
        originals.forget_participant(writer.prefix);
        assert!(originals.admits_item(&live(1, 1)));
        // Of its earlier life it brings nothing new.
        assert!(!originals.admits_item(&brought(1, 1, 3)));
    }

    #[test]
    fn of_too_many_writers_the_one_heard_longest_ago_is_forgotten() {
        let mut originals = Originals::default();
        assert!(originals.admits_item(&brought(9, 1, 5)));
        for n in 0..WRITERS_MAX {
            let mut item = brought(9, 1, 1);
            let original = item.kin.as_mut().unwrap().original.as_mut().unwrap();
            original.writer.prefix.0[..8].copy_from_slice(&(n as u64).to_le_bytes());
            assert!(originals.admits_item(&item));
        }
        assert_eq!(originals.had.len(), WRITERS_MAX);
        assert!(originals.admits_item(&brought(9, 1, 1)));
    }
}
