//! The endpoints of others: one small record for each, from which all that it
//! announced is put together when somebody asks. Found by GUID, by participant
//! and by topic.
//!
//! Most endpoints of a graph match nothing here, and every process knows them
//! all. What a record has of its own is its topic's name and what sets its
//! USER_DATA apart; the rest it shares with others of its [`Kind`].

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;

use super::kinds::{Kind, Kinds, hash_of};

/// A remote endpoint as it is kept.
#[derive(Clone, Copy)]
pub struct RemoteEndpoint<'a> {
    prefix: GuidPrefix,
    record: &'a Record,
}

#[derive(PartialEq)]
pub(super) struct Record {
    entity: EntityId,
    /// How much of `text` is the topic's name; the rest is USER_DATA's own part.
    topic_bytes: u32,
    /// Bytes that USER_DATA begins and ends with as its kind's example does.
    head: u32,
    tail: u32,
    kind: Arc<Kind>,
    /// Locators of its own, shared with others of its participant.
    places: Option<Arc<Places>>,
    text: Box<[u8]>,
}

#[derive(PartialEq)]
struct Places {
    unicast: Vec<Locator>,
    multicast: Vec<Locator>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Remotes {
    /// Each participant's, in the order of their ids.
    by_participant: BTreeMap<GuidPrefix, Vec<Record>>,
    /// With the hash of the topic, which is no proof of it.
    by_topic: BTreeSet<(u32, Guid)>,
    kinds: Kinds,
}

impl<'a> RemoteEndpoint<'a> {
    /// Its identity.
    pub fn guid(self) -> Guid {
        self.prefix.with(self.record.entity)
    }

    /// Name of its topic as it stands on the wire.
    pub fn topic(self) -> &'a str {
        let (topic, _) = self.record.parts();
        // It was text when it was kept.
        core::str::from_utf8(topic).unwrap_or_default()
    }

    /// Name of its type as it stands on the wire.
    pub fn type_name(self) -> &'a str {
        &self.record.kind.bare.type_name
    }

    /// Its USER_DATA. Allocates.
    pub fn user_data(self) -> Vec<u8> {
        self.record.user_data()
    }

    /// The DDS publisher or subscriber that it is presented with, if it told.
    pub fn group(self) -> Option<Guid> {
        self.record.kind.bare.group
    }

    /// Whether it is announced to those alone who have proved who they are.
    pub(super) fn is_discovery_protected(self) -> bool {
        self.record.kind.bare.is_discovery_protected()
    }

    /// All that it announced, put together. Allocates.
    pub fn data(self) -> EndpointData {
        let Record { kind, places, .. } = self.record;
        let qos = match self.record.is_the_example() {
            true => kind.qos.clone(),
            false => {
                let mut qos = kind.bare.qos.clone();
                qos.user_data = self.record.user_data();
                qos
            }
        };
        let places = places.as_deref();
        EndpointData {
            guid: self.guid(),
            topic: String::from(self.topic()),
            qos,
            unicast: places.map_or_else(Vec::new, |p| p.unicast.clone()),
            multicast: places.map_or_else(Vec::new, |p| p.multicast.clone()),
            ..kind.bare.clone()
        }
    }

    /// Whether it announced just this.
    pub(super) fn says(self, record: &Record) -> bool {
        self.record == record
    }

    /// Whether a match of before does not hold for what it announces now.
    pub(super) fn breaks_off(self, data: &EndpointData) -> bool {
        self.topic() != data.topic || self.record.kind.bare.qos.breaks_match(&data.qos)
    }
}

impl Record {
    fn parts(&self) -> (&[u8], &[u8]) {
        let at = self.topic_bytes as usize;
        self.text.split_at_checked(at).unwrap_or_default()
    }

    fn user_data(&self) -> Vec<u8> {
        let example = &self.kind.qos.user_data;
        let (_, own) = self.parts();
        let after = example.len().saturating_sub(self.tail as usize);
        let head = example.get(..self.head as usize).unwrap_or_default();
        let tail = example.get(after..).unwrap_or_default();
        [head, own, tail].concat()
    }

    fn is_the_example(&self) -> bool {
        let (_, own) = self.parts();
        own.is_empty() && self.head as usize == self.kind.qos.user_data.len()
    }
}

impl Remotes {
    /// The record that `data` would have here. Policies that others announce as
    /// well are theirs from now on.
    pub(super) fn record(&mut self, data: &mut EndpointData) -> Record {
        let kind = self.kinds.of(data);
        let (own, example) = (&data.qos.user_data, &kind.qos.user_data);
        let head = common(own.iter(), example.iter());
        let (own, example) = (
            own.get(head..).unwrap_or_default(),
            example.get(head..).unwrap_or_default(),
        );
        let tail = common(own.iter().rev(), example.iter().rev());
        let middle = own.get(..own.len().saturating_sub(tail));
        let record = Record {
            entity: data.guid.entity,
            topic_bytes: narrow(data.topic.len()),
            head: narrow(head),
            tail: narrow(tail),
            places: self.places_of(data),
            text: [data.topic.as_bytes(), middle.unwrap_or_default()]
                .concat()
                .into(),
            kind,
        };
        if record.is_the_example() {
            data.qos = record.kind.qos.clone();
        }
        record
    }

    /// Its own locators; an endpoint has those of the one before, or none.
    fn places_of(&self, data: &EndpointData) -> Option<Arc<Places>> {
        if data.unicast.is_empty() && data.multicast.is_empty() {
            return None;
        }
        let before = self.by_participant.get(&data.guid.prefix);
        let before = before.and_then(|list| list.last()?.places.clone());
        let is_same = |p: &Arc<Places>| p.unicast == data.unicast && p.multicast == data.multicast;
        Some(before.filter(is_same).unwrap_or_else(|| {
            Arc::new(Places {
                unicast: data.unicast.clone(),
                multicast: data.multicast.clone(),
            })
        }))
    }

    /// Keeps a record; true if there was another one of that GUID.
    pub(super) fn insert(&mut self, prefix: GuidPrefix, record: Record) -> bool {
        let guid = prefix.with(record.entity);
        let was_known = self.remove(guid);
        let topic = RemoteEndpoint {
            prefix,
            record: &record,
        };
        self.by_topic.insert((short_hash(topic.topic()), guid));
        let list = self.by_participant.entry(prefix).or_default();
        if list.len() == list.capacity() {
            // By a quarter: there are many, and few grow on.
            list.reserve_exact((list.len() / 4).max(2));
        }
        let at = list.partition_point(|other| other.entity < record.entity);
        list.insert(at, record);
        was_known
    }

    /// Forgets one; false if there is none.
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

/// How many bytes two begin with alike.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

fn short_hash(topic: &str) -> u32 {
    let hash = hash_of(topic);
    #[expect(clippy::cast_possible_truncation, reason = "half of it will do")]
    let half = (hash ^ hash >> 32) as u32;
    half
}

/// Lengths of parameters, which discovery bounds.
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

    /// One of a participant's endpoints, with a bit of everything.
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

    fn keep(remotes: &mut Remotes, data: &EndpointData) -> bool {
        let mut copy = data.clone();
        let record = remotes.record(&mut copy);
        assert_eq!(copy, *data);
        remotes.insert(data.guid.prefix, record)
    }

    /// Participants in an order of their own, and all that they announce.
    fn town() -> (Remotes, Vec<EndpointData>) {
        let mut remotes = Remotes::default();
        let all = [3, 1, 2].map(|p| (1..=200).map(move |number| endpoint(p, number)));
        let all: Vec<_> = all.into_iter().flatten().collect();
        for data in &all {
            assert!(!keep(&mut remotes, data));
        }
        (remotes, all)
    }

    #[test]
    fn what_is_kept_of_an_endpoint_says_all_that_it_announced() {
        let (mut remotes, all) = town();
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
            assert!(same.says(&record));
            let mut other = data.clone();
            other.qos.user_data.push(b';');
            let record = remotes.record(&mut other);
            let same = remotes.find(data.guid).expect("it is kept");
            assert!(!same.says(&record));
        }
    }

    #[test]
    fn endpoints_are_found_by_topic_as_it_is_now_until_they_are_gone() {
        let (mut remotes, all) = town();
        let on = |remotes: &Remotes, topic: &str, writers| {
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
    fn policies_and_locators_that_endpoints_have_in_common_are_kept_once() {
        let mut remotes = Remotes::default();
        for number in 1..=100 {
            let mut data = endpoint(1, 1);
            data.guid = guid(1, number, READER);
            keep(&mut remotes, &data);
        }
        let records = &remotes.by_participant[&GuidPrefix([1; 12])];
        let first = &records[0];
        for record in records {
            assert!(Arc::ptr_eq(&record.kind, &first.kind));
            let (a, b) = (record.places.as_ref(), first.places.as_ref());
            assert!(a.zip(b).is_some_and(|(a, b)| Arc::ptr_eq(a, b)));
        }
    }
}
