//! Remote endpoints (the graph cache of the protocol): one small record each,
//! indexed by GUID, by participant and by topic.
//!
//! Most endpoints of a graph match nothing here, and every process stores them all.
//! A record holds the topic name and the individual part of USER_DATA. It shares
//! the rest with others through an [`InternedEndpoint`]. The full announcement is
//! rebuilt on request.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::memory_budget::RecordCharge;

use super::interned_qos::{EndpointInterner, InternedEndpoint, hash_of};

/// A stored remote endpoint.
#[derive(Clone, Copy)]
pub struct RemoteEndpoint<'a> {
    prefix: GuidPrefix,
    record: &'a EndpointRecord,
}

#[derive(PartialEq)]
pub(super) struct EndpointRecord {
    entity: EntityId,
    /// The length of the topic name in `text`; the rest is the individual part of
    /// USER_DATA.
    topic_bytes: u32,
    /// Bytes at the start and end of USER_DATA that equal those of the interned
    /// example.
    head: u32,
    tail: u32,
    interned: Arc<InternedEndpoint>,
    /// Its own locators, shared with others of its participant.
    locators: Option<Arc<EndpointLocators>>,
    text: Box<[u8]>,
    pub(super) charge: RecordCharge,
}

#[derive(PartialEq)]
struct EndpointLocators {
    unicast: Vec<Locator>,
    multicast: Vec<Locator>,
}

/// All of them.
#[derive(Default)]
pub(super) struct RemoteEndpoints {
    /// The endpoints of each participant, in the order of their ids.
    by_participant: BTreeMap<GuidPrefix, Vec<EndpointRecord>>,
    /// By the hash of the topic, which may collide.
    by_topic: BTreeSet<(u32, Guid)>,
    interner: EndpointInterner,
}

impl<'a> RemoteEndpoint<'a> {
    /// Its GUID.
    pub fn guid(self) -> Guid {
        self.prefix.with(self.record.entity)
    }

    /// The topic name in its wire form.
    pub fn topic(self) -> &'a str {
        let (topic, _) = self.record.parts();
        // It was text when it was stored.
        core::str::from_utf8(topic).unwrap_or_default()
    }

    /// The type name in its wire form.
    pub fn type_name(self) -> &'a str {
        &self.record.interned.common.type_name
    }

    /// Its USER_DATA. Allocates.
    pub fn user_data(self) -> Vec<u8> {
        self.record.user_data()
    }

    /// The DDS publisher or subscriber it belongs to, if announced.
    pub fn group(self) -> Option<Guid> {
        self.record.interned.common.group
    }

    /// Whether only authenticated participants receive its announcement.
    pub(super) fn is_discovery_protected(self) -> bool {
        self.record.interned.common.is_discovery_protected()
    }

    /// Its full announcement. Allocates.
    pub fn data(self) -> EndpointData {
        let EndpointRecord {
            interned, locators, ..
        } = self.record;
        let qos = if self.record.matches_example() {
            interned.qos.clone()
        } else {
            let mut qos = interned.common.qos.clone();
            qos.user_data = self.record.user_data();
            qos
        };
        let locators = locators.as_deref();
        EndpointData {
            guid: self.guid(),
            topic: String::from(self.topic()),
            qos,
            unicast: locators.map_or_else(Vec::new, |p| p.unicast.clone()),
            multicast: locators.map_or_else(Vec::new, |p| p.multicast.clone()),
            ..interned.common.clone()
        }
    }

    /// Whether its announcement equals this record.
    pub(super) fn equals(self, record: &EndpointRecord) -> bool {
        self.record == record
    }

    /// Whether its changed announcement ends its present matches.
    pub(super) fn breaks_match(self, data: &EndpointData) -> bool {
        self.topic() != data.topic || self.record.interned.common.qos.breaks_match(&data.qos)
    }
}

impl EndpointRecord {
    fn parts(&self) -> (&[u8], &[u8]) {
        let at = self.topic_bytes as usize;
        self.text.split_at_checked(at).unwrap_or_default()
    }

    fn user_data(&self) -> Vec<u8> {
        let example = &self.interned.qos.user_data;
        let (_, own) = self.parts();
        let after = example.len().saturating_sub(self.tail as usize);
        let head = example.get(..self.head as usize).unwrap_or_default();
        let tail = example.get(after..).unwrap_or_default();
        [head, own, tail].concat()
    }

    fn matches_example(&self) -> bool {
        let (_, own) = self.parts();
        own.is_empty() && self.head as usize == self.interned.qos.user_data.len()
    }
}

impl RemoteEndpoints {
    /// The record for `data`. Policies that others announce, too, are shared
    /// afterwards.
    pub(super) fn record(&mut self, data: &mut EndpointData) -> EndpointRecord {
        let interned = self.interner.intern(data);
        let (own, example) = (&data.qos.user_data, &interned.qos.user_data);
        let head = common_length(own.iter(), example.iter());
        let (own, example) = (
            own.get(head..).unwrap_or_default(),
            example.get(head..).unwrap_or_default(),
        );
        let tail = common_length(own.iter().rev(), example.iter().rev());
        let middle = own.get(..own.len().saturating_sub(tail));
        let record = EndpointRecord {
            entity: data.guid.entity,
            topic_bytes: narrow(data.topic.len()),
            head: narrow(head),
            tail: narrow(tail),
            locators: self.locators_of(data),
            text: [data.topic.as_bytes(), middle.unwrap_or_default()]
                .concat()
                .into(),
            interned,
            charge: RecordCharge::default(),
        };
        if record.matches_example() {
            data.qos = record.interned.qos.clone();
        }
        record
    }

    /// Its own locators, shared with the previous endpoint if equal; `None` without
    /// any.
    fn locators_of(&self, data: &EndpointData) -> Option<Arc<EndpointLocators>> {
        if data.unicast.is_empty() && data.multicast.is_empty() {
            return None;
        }
        let before = self.by_participant.get(&data.guid.prefix);
        let before = before.and_then(|list| list.last()?.locators.clone());
        let is_same =
            |p: &Arc<EndpointLocators>| p.unicast == data.unicast && p.multicast == data.multicast;
        Some(before.filter(is_same).unwrap_or_else(|| {
            Arc::new(EndpointLocators {
                unicast: data.unicast.clone(),
                multicast: data.multicast.clone(),
            })
        }))
    }

    /// Stores a record; true if it replaces one with that GUID.
    pub(super) fn insert(&mut self, prefix: GuidPrefix, record: EndpointRecord) -> bool {
        let guid = prefix.with(record.entity);
        let was_known = self.remove(guid);
        let topic = RemoteEndpoint {
            prefix,
            record: &record,
        };
        self.by_topic.insert((short_hash(topic.topic()), guid));
        let list = self.by_participant.entry(prefix).or_default();
        if list.len() == list.capacity() {
            // Grow by a quarter: there are many lists, and few keep growing.
            list.reserve_exact((list.len() / 4).max(2));
        }
        let at = list.partition_point(|other| other.entity < record.entity);
        list.insert(at, record);
        was_known
    }

    /// Removes one; false if there is none.
    pub(super) fn remove(&mut self, guid: Guid) -> bool {
        let Some(topic) = self.find(guid).map(|known| short_hash(known.topic())) else {
            return false;
        };
        self.by_topic.remove(&(topic, guid));
        if let Some(list) = self.by_participant.get_mut(&guid.prefix) {
            list.retain(|record| record.entity != guid.entity);
            if list.is_empty() {
                self.by_participant.remove(&guid.prefix);
            }
        }
        true
    }

    pub(super) fn find(&self, guid: Guid) -> Option<RemoteEndpoint<'_>> {
        let list = self.by_participant.get(&guid.prefix)?;
        let at = list.binary_search_by_key(&guid.entity, |record| record.entity);
        let record = list.get(at.ok()?)?;
        Some(RemoteEndpoint {
            prefix: guid.prefix,
            record,
        })
    }

    /// Those on `topic` that are writers, or readers.
    pub(super) fn on_topic(
        &self,
        topic: &str,
        writers: bool,
    ) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        let hash = short_hash(topic);
        let last = GuidPrefix([0xff; 12]).with(EntityId::from_bytes([0xff; 4]));
        self.by_topic
            .range((hash, Guid::UNKNOWN)..=(hash, last))
            .filter(move |(_, guid)| guid.entity.is_writer() == writers)
            .filter_map(|(_, guid)| self.find(*guid))
            .filter(move |endpoint| endpoint.topic() == topic)
    }

    /// Those of one participant.
    pub(super) fn of(&self, prefix: GuidPrefix) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        let list = self.by_participant.get(&prefix).into_iter().flatten();
        list.map(move |record| RemoteEndpoint { prefix, record })
    }

    pub(super) fn count_of(&self, prefix: GuidPrefix) -> usize {
        self.by_participant.get(&prefix).map_or(0, Vec::len)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        self.by_participant.iter().flat_map(|(prefix, list)| {
            list.iter().map(|record| RemoteEndpoint {
                prefix: *prefix,
                record,
            })
        })
    }

    pub(super) fn len(&self) -> usize {
        self.by_topic.len()
    }
}

/// The length of the common prefix.
fn common_length<'a>(
    one: impl Iterator<Item = &'a u8>,
    other: impl Iterator<Item = &'a u8>,
) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

pub(super) fn short_hash(topic: &str) -> u32 {
    let hash = hash_of(topic);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of the hash is enough"
    )]
    let half = (hash ^ hash >> 32) as u32;
    half
}

/// Lengths of parameters, which discovery limits.
fn narrow(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_filter::ContentFilterProperty;
    use crate::qos::{EndpointQos, History};
    use alloc::format;
    use alloc::string::ToString;
    use bytes::Bytes;

    const WRITER: u8 = 3;
    const READER: u8 = 4;

    fn guid(participant: u8, number: u8, kind: u8) -> Guid {
        GuidPrefix([participant; 12]).with(EntityId::new([0, 0, number], kind))
    }

    /// An endpoint of a participant, with many properties set.
    fn endpoint(participant: u8, number: u8) -> EndpointData {
        let kind = if number.is_multiple_of(2) {
            WRITER
        } else {
            READER
        };
        let user_data = match number % 7 {
            0 => String::new(),
            1 => "typehash=RIHS01_0123;".into(),
            2 => format!("typehash=RIHS01_0123;serviceid={participant}.{number};"),
            3 => format!("serviceid={participant}.{number};typehash=RIHS01_0123;"),
            4 => "aaaa"[..usize::from(number % 5)].to_string(),
            5 => "typehash=RIHS01_0123;typehash=RIHS01_0123;".into(),
            _ => format!("{number}"),
        };
        let qos = EndpointQos {
            history: History::KeepLast(u32::from(number % 3) + 1),
            user_data: user_data.into_bytes(),
            ..EndpointQos::default()
        };
        let at = Locator::udp_v4([10, 0, 0, participant], 7411);
        let name = format!("rt/topic{}", number % 10);
        let mut data = EndpointData::new(guid(participant, number, kind), &name, "a_type", qos);
        if number % 4 < 2 {
            data.unicast = alloc::vec![at];
        }
        if number % 8 == 1 {
            data.multicast = alloc::vec![at, at];
        }
        data.expects_inline_qos = number.is_multiple_of(9);
        data.type_information = (number % 3 == 1).then(|| Bytes::from_static(b"what it is"));
        data.max_serialized_size = (number % 5 == 1).then_some(9);
        data.content_filter =
            (number % 6 == 1).then(|| ContentFilterProperty::new(&name, "x > 1", &[]));
        data.group = number
            .is_multiple_of(11)
            .then(|| guid(participant, number, 8));
        data
    }

    fn keep(remotes: &mut RemoteEndpoints, data: &EndpointData) -> bool {
        let mut copy = data.clone();
        let record = remotes.record(&mut copy);
        assert_eq!(copy, *data);
        remotes.insert(data.guid.prefix, record)
    }

    /// Several participants, unordered, with all their announcements.
    fn populated() -> (RemoteEndpoints, Vec<EndpointData>) {
        let mut remotes = RemoteEndpoints::default();
        let all = [3, 1, 2].map(|p| (1..=200).map(move |number| endpoint(p, number)));
        let all: Vec<_> = all.into_iter().flatten().collect();
        for data in &all {
            assert!(!keep(&mut remotes, data));
        }
        (remotes, all)
    }

    #[test]
    fn a_stored_endpoint_reproduces_its_full_announcement() {
        let (mut remotes, all) = populated();
        assert_eq!(remotes.len(), all.len());
        assert_eq!(remotes.iter().count(), all.len());
        for data in &all {
            let known = remotes.find(data.guid).expect("it is kept").data();
            assert_eq!(known, *data);
            let known = remotes.find(data.guid).expect("it is kept");
            assert_eq!((known.topic(), known.group()), (&*data.topic, data.group));
            assert_eq!(known.user_data(), data.qos.user_data);
        }
        for data in &all {
            let record = remotes.record(&mut data.clone());
            let same = remotes.find(data.guid).expect("it is kept");
            assert!(same.equals(&record));
            let mut other = data.clone();
            other.qos.user_data.push(b';');
            let record = remotes.record(&mut other);
            let same = remotes.find(data.guid).expect("it is kept");
            assert!(!same.equals(&record));
        }
    }

    #[test]
    fn endpoints_are_found_by_their_present_topic_until_they_are_removed() {
        let (mut remotes, all) = populated();
        let on = |remotes: &RemoteEndpoints, topic: &str, writers| {
            let found = remotes.on_topic(topic, writers);
            found.map(RemoteEndpoint::guid).collect::<Vec<_>>()
        };
        let is_on = |data: &&EndpointData| data.topic == "rt/topic4" && data.is_writer();
        let mut expected: Vec<Guid> = all.iter().filter(is_on).map(|data| data.guid).collect();
        expected.sort();
        assert_eq!(on(&remotes, "rt/topic4", true), expected);
        assert_eq!(on(&remotes, "rt/topic4", false), []);
        let moved = EndpointData {
            topic: "rt/elsewhere".into(),
            ..all.iter().find(is_on).expect("some are").clone()
        };
        assert!(keep(&mut remotes, &moved));
        assert_eq!(on(&remotes, "rt/elsewhere", true), [moved.guid]);
        expected.retain(|guid| *guid != moved.guid);
        assert_eq!(on(&remotes, "rt/topic4", true), expected);
        for data in &all {
            assert!(remotes.remove(data.guid));
            assert!(!remotes.remove(data.guid));
        }
        assert_eq!((remotes.len(), remotes.iter().count()), (0, 0));
        assert!(remotes.by_participant.is_empty());
        assert_eq!(on(&remotes, "rt/topic4", true), []);
    }

    #[test]
    fn equal_policies_and_locators_are_stored_once() {
        let mut remotes = RemoteEndpoints::default();
        for number in 1..=100 {
            let mut data = endpoint(1, 1);
            data.guid = guid(1, number, READER);
            keep(&mut remotes, &data);
        }
        let records = &remotes.by_participant[&GuidPrefix([1; 12])];
        let first = &records[0];
        for record in records {
            assert!(Arc::ptr_eq(&record.interned, &first.interned));
            let (a, b) = (record.locators.as_ref(), first.locators.as_ref());
            assert!(a.zip(b).is_some_and(|(a, b)| Arc::ptr_eq(a, b)));
        }
    }
}
