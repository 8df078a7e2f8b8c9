//! OWNERSHIP EXCLUSIVE at a subscription: only samples of the strongest living
//! publisher are delivered (DDS 1.4 §2.2.3.9.2).
//!
//! A publisher becomes owner by writing when there is no owner, or when its
//! ownership strength is higher. It also takes over when the owner has left, lost
//! liveliness or missed the deadline. Of equal strengths the lower GUID wins, so that all readers agree.
//! Samples of other publishers are counted and dropped. They are neither lost nor
//! an update for the deadline.

use alloc::collections::BTreeMap;
use core::cmp::Reverse;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, Ownership};
use pteros_rtps::time::{Duration, Instant};

/// The matched publishers of an exclusive subscription, and the owner. Bounded by
/// the reader's limit of matched writers.
pub struct Owners {
    deadline: Duration,
    strengths: BTreeMap<Guid, i32>,
    /// The owner of the single instance of a topic without key.
    owner: Option<Owner>,
    /// Samples of publishers that were not the owner.
    pub outranked: u64,
}

/// The owner of one instance.
pub struct Owner {
    pub guid: Guid,
    wrote_at: Instant,
}

impl Owners {
    /// `None` where ownership is shared.
    pub fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.ownership == Ownership::Exclusive).then(|| Self {
            deadline: reader.deadline,
            strengths: BTreeMap::new(),
            owner: None,
            outranked: 0,
        })
    }

    /// Adds a matched publisher, or updates its strength.
    pub fn note_strength(&mut self, writer: Guid, strength: i32) {
        self.strengths.insert(writer, strength);
    }

    /// Applies a changed deadline of the reader.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Removes a publisher. Its earlier samples are delivered until another one
    /// takes over.
    pub fn forget(&mut self, writer: Guid) {
        self.strengths.remove(&writer);
    }

    /// Whether a sample of `writer` is delivered. `alive` returns whether a
    /// publisher keeps its liveliness contract.
    pub fn admits(&mut self, now: Instant, writer: Guid, alive: impl Fn(Guid) -> bool) -> bool {
        let mut owner = self.owner.take();
        let is_accepted = self.admits_instance(&mut owner, now, writer, alive);
        self.owner = owner;
        is_accepted
    }

    /// As [`Owners::admits`], for the instance of `owner`.
    pub fn admits_instance(
        &mut self,
        owner: &mut Option<Owner>,
        now: Instant,
        writer: Guid,
        alive: impl Fn(Guid) -> bool,
    ) -> bool {
        let is_accepted = match owner {
            None => true,
            Some(owner) if owner.guid == writer => true,
            Some(owner) => {
                self.strengths.contains_key(&writer)
                    && (self.rank(writer) > self.rank(owner.guid)
                        || owner.wrote_at.after(self.deadline) < now
                        || !alive(owner.guid))
            }
        };
        if is_accepted {
            *owner = Some(Owner {
                guid: writer,
                wrote_at: now,
            });
        } else {
            self.outranked += 1;
        }
        is_accepted
    }

    /// Removed publishers rank below all.
    fn rank(&self, writer: Guid) -> Option<(i32, Reverse<Guid>)> {
        let strength = *self.strengths.get(&writer)?;
        Some((strength, Reverse(writer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
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

    /// The publishers whose samples are delivered, for writes in that order, all
    /// alive.
    fn accepted(owners: &mut Owners, order: &[u8]) -> Vec<u8> {
        let admits = |n: &u8| owners.admits(at_ms(0), writer(*n), |_| true);
        order.iter().copied().filter(admits).collect()
    }

    #[test]
    fn a_shared_topic_has_no_owner() {
        assert!(Owners::new(&EndpointQos::default()).is_none());
    }

    #[test]
    fn the_strongest_writer_that_has_written_is_delivered() {
        let mut owners = owners(&[(1, 5), (2, 7), (3, -1)], Duration::INFINITE);
        assert_eq!(
            accepted(&mut owners, &[3, 1, 3, 1, 2, 1, 3, 2]),
            [3, 1, 1, 2, 2]
        );
        assert_eq!(owners.outranked, 3);
    }

    #[test]
    fn of_equal_strength_the_lower_guid_wins_in_any_order() {
        let mut owners = owners(&[(1, 4), (2, 4)], Duration::INFINITE);
        assert_eq!(accepted(&mut owners, &[2, 1, 2, 1]), [2, 1, 1]);
    }

    #[test]
    fn a_weaker_writer_takes_over_from_a_removed_owner() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(accepted(&mut owners, &[1, 2]), [1]);
        owners.forget(writer(1));
        // Samples that the owner wrote before it left may still arrive.
        assert_eq!(accepted(&mut owners, &[1, 2, 1, 2]), [1, 2, 2]);
        owners.note_strength(writer(1), 9);
        assert_eq!(accepted(&mut owners, &[2, 1, 2]), [2, 1]);
    }

    #[test]
    fn a_weaker_writer_takes_over_while_the_owner_is_not_alive() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(accepted(&mut owners, &[1]), [1]);
        assert!(!owners.admits(at_ms(1), writer(2), |_| true));
        assert!(owners.admits(at_ms(2), writer(2), |w| w != writer(1)));
        // Its own sample proves that it is alive again.
        assert!(owners.admits(at_ms(3), writer(1), |_| true));
        assert!(!owners.admits(at_ms(4), writer(2), |_| true));
    }

    #[test]
    fn a_missed_deadline_changes_the_owner_until_the_stronger_writes_again() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::from_millis(100));
        let mut at = |ms, n| owners.admits(at_ms(ms), writer(n), |_| true);
        assert!(at(0, 1));
        assert!(!at(100, 2));
        assert!(at(101, 2));
        assert!(at(150, 1));
        assert!(!at(200, 2));
    }

    #[test]
    fn a_changed_strength_applies_from_the_next_sample_on() {
        let mut owners = owners(&[(1, 9), (2, 1)], Duration::INFINITE);
        assert_eq!(accepted(&mut owners, &[1, 2]), [1]);
        owners.note_strength(writer(2), 10);
        assert_eq!(accepted(&mut owners, &[1, 2, 1]), [1, 2]);
    }
}
