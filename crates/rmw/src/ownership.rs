//! OWNERSHIP EXCLUSIVE at a subscription: of several publishers only the
//! strongest living one is heard (DDS 1.4 §2.2.3.9.2).
//!
//! A publisher becomes owner by writing: when there is no owner, when it
//! outranks the owner, or when the owner has left, lost its liveliness or
//! missed the deadline. Ranks are strengths; of equal ones the lower GUID
//! wins, so that every reader chooses alike. What others write is counted and
//! dropped: it is neither lost nor an update for the deadline.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, Ownership};
use pteros_rtps::time::{Duration, Instant};

/// The matched publishers of an exclusive subscription and which one is heard.
/// Bounded by the reader's limit of matched writers.
pub(crate) struct Owners {
    deadline: Duration,
    strengths: BTreeMap<Guid, i32>,
    /// Of the one instance that a topic without key has.
    owner: Option<Owner>,
    /// Samples of publishers that were not the owner.
    pub(crate) outranked: u64,
}

/// Who is heard, of one instance.
pub(crate) struct Owner {
    pub(crate) guid: Guid,
    wrote_at: Instant,
}

impl Owners {
    /// `None` where every publisher is heard.
    pub(crate) fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.ownership == Ownership::Exclusive).then(|| Self {
            deadline: reader.deadline,
            strengths: BTreeMap::new(),
            owner: None,
            outranked: 0,
        })
    }

    /// A publisher matched, or announces another strength.
    pub(crate) fn note_strength(&mut self, writer: Guid, strength: i32) {
        self.strengths.insert(writer, strength);
    }

    /// The reader's deadline is another one.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// A publisher is gone. What it wrote before and is still under way is
    /// heard until another takes over.
    pub(crate) fn forget(&mut self, writer: Guid) {
        self.strengths.remove(&writer);
    }

    /// Whether a sample of `writer` is heard. `alive` says whether a publisher
    /// keeps its liveliness contract.
    pub(crate) fn admits(
        &mut self,
        now: Instant,
        writer: Guid,
        alive: impl Fn(Guid) -> bool,
    ) -> bool {
        let mut owner = self.owner.take();
        let heard = self.judge(&mut owner, now, writer, alive);
        self.owner = owner;
        heard
    }

    /// As [`Owners::admits`], for the instance that `owner` belongs to.
    pub(crate) fn judge(
        &mut self,
        owner: &mut Option<Owner>,
        now: Instant,
        writer: Guid,
        alive: impl Fn(Guid) -> bool,
    ) -> bool {
        let heard = match owner {
            None => true,
            Some(owner) if owner.guid == writer => true,
            Some(owner) => {
                self.strengths.contains_key(&writer)
                    && (self.rank(writer) > self.rank(owner.guid)
                        || owner.wrote_at.after(self.deadline) < now
                        || !alive(owner.guid))
            }
        };
        if heard {
            *owner = Some(Owner {
                guid: writer,
                wrote_at: now,
            });
        } else {
            self.outranked += 1;
        }
        heard
    }

    /// Those that are gone rank below all.
    fn rank(&self, writer: Guid) -> Option<(i32, Reverse<Guid>)> {
        let strength = *self.strengths.get(&writer)?;
        Some((strength, Reverse(writer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};

    fn writer(n: u8) -> Guid {
        GuidPrefix([n; 12]).with(EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY))
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn owners(strengths: &[(u8, i32)], deadline: Duration) -> Owners {
        let qos = EndpointQos {
            ownership: Ownership::Exclusive,
            deadline,
            ..EndpointQos::default()
        };
        let mut owners = Owners::new(&qos).unwrap();
        for (n, strength) in strengths {
            owners.note_strength(writer(*n), *strength);
        }
        owners
    }

    /// Who of the publishers that write in that order is heard, all alive.
    fn heard(owners: &mut Owners, order: &[u8]) -> Vec<u8> {
        let admits = |n: &u8| owners.admits(at_ms(0), writer(*n), |_| true);
        order.iter().copied().filter(admits).collect()
    }

    #[test]
    fn a_shared_topic_has_no_owner() {
        assert!(Owners::new(&EndpointQos::default()).is_none());
    }

    #[test]
    fn the_strongest_that_has_written_is_heard() {
        let mut owners = owners(&[(1, 5), (2, 7), (3, -1)], Duration::INFINITE);
        assert_eq!(
            heard(&mut owners, &[3, 1, 3, 1, 2, 1, 3, 2]),
            [3, 1, 1, 2, 2]
        );
        assert_eq!(owners.outranked, 3);
    }

    #[test]
    fn of_equal_strength_the_lower_guid_wins_whoever_came_first() {
        let mut owners = owners(&[(1, 4), (2, 4)], Duration::INFINITE);
        assert_eq!(heard(&mut owners, &[2, 1, 2, 1]), [2, 1, 1]);
    }

    #[test]
    fn a_weaker_one_takes_over_from_an_owner_that_left() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(heard(&mut owners, &[1, 2]), [1]);
        owners.forget(writer(1));
        // What the owner wrote before it left may still come.
        assert_eq!(heard(&mut owners, &[1, 2, 1, 2]), [1, 2, 2]);
        owners.note_strength(writer(1), 9);
        assert_eq!(heard(&mut owners, &[2, 1, 2]), [2, 1]);
    }

    #[test]
    fn a_weaker_one_takes_over_while_the_owner_is_silent() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(heard(&mut owners, &[1]), [1]);
        assert!(!owners.admits(at_ms(1), writer(2), |_| true));
        assert!(owners.admits(at_ms(2), writer(2), |w| w != writer(1)));
        // Its own sample proves that it lives again.
        assert!(owners.admits(at_ms(3), writer(1), |_| true));
        assert!(!owners.admits(at_ms(4), writer(2), |_| true));
    }

    #[test]
    fn a_missed_deadline_hands_over_until_the_strong_one_writes_again() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::from_millis(100));
        let mut at = |ms, n| owners.admits(at_ms(ms), writer(n), |_| true);
        assert!(at(0, 1));
        assert!(!at(100, 2));
        assert!(at(101, 2));
        assert!(at(150, 1));
        assert!(!at(200, 2));
    }

    #[test]
    fn a_strength_that_changes_counts_from_the_next_sample_on() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(heard(&mut owners, &[1, 2]), [1]);
        owners.note_strength(writer(2), 10);
        assert_eq!(heard(&mut owners, &[1, 2, 1]), [1, 2]);
    }
}
