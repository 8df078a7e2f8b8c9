//! Outbox: large payloads are shared, small ones share a datagram, budget and
//! limits hold, memory is reused.

use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Timestamp;
use pteros_rtps::wire::{DataHead, Heartbeat, Submessage};

const OWN: GuidPrefix = GuidPrefix([1; 12]);
const PEER: GuidPrefix = GuidPrefix([2; 12]);
const WRITER: EntityId = EntityId::new([0, 0, 6], EntityId::KIND_WRITER_NO_KEY);

fn route() -> Arc<[Locator]> {
    Arc::from([Locator::udp_v4([10, 0, 0, 1], 7411)].as_slice())
}

fn head(sequence: i64) -> DataHead<'static> {
    DataHead {
        writer: WRITER,
        sequence: SequenceNumber(sequence),
        ..DataHead::default()
    }
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        first: SequenceNumber(1),
        last: SequenceNumber(1),
        count: 1,
        is_final: true,
        liveliness: false,
        group_info: None,
    }
}

#[test]
fn a_large_payload_is_shared_and_a_heartbeat_follows_it() {
    let payload = Bytes::from(vec![7; 1001]);
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    assert!(builder.info_destination(PEER));
    assert!(builder.info_timestamp(Some(Timestamp::from_nanos(1))));
    assert!(builder.data(&head(1), &payload));
    assert!(builder.heartbeat(&heartbeat()));
    assert!(builder.finish());

    let datagram = outbox.iter().next().unwrap();
    assert_eq!(datagram.to, &*route());
    let [before, body, after] = datagram.parts;
    assert_eq!(body.as_ptr(), payload.as_ptr());
    assert_eq!(before.len(), 20 + 16 + 12 + 24);
    assert_eq!(after.len(), 3 + Heartbeat::SIZE_BYTES);
    assert_eq!(datagram.size_bytes(), outbox.size_bytes());

    let whole = datagram.to_vec();
    let mut reader = MessageReader::new(&whole, PEER).unwrap();
    let heard: Vec<_> = reader.by_ref().collect();
    assert_eq!((heard.len(), reader.error()), (4, None));
    let (source, Submessage::Data(data)) = heard[2] else {
        panic!("a DATA");
    };
    assert_eq!(source.timestamp, Some(Timestamp::from_nanos(1)));
    assert_eq!(data.payload[..1001], payload);
    assert_eq!(heard[3].1, Submessage::Heartbeat(heartbeat()));
}

#[test]
fn small_payloads_share_a_datagram_and_a_second_large_one_does_not() {
    let small = Bytes::from(vec![1; Outbox::INLINE_PAYLOAD_MAX_BYTES]);
    let large = Bytes::from(vec![2; Outbox::INLINE_PAYLOAD_MAX_BYTES + 1]);
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 65_000);
    assert!(builder.data(&head(1), &small));
    assert!(builder.data(&head(2), &large));
    assert!(!builder.data(&head(3), &large));
    assert!(builder.data(&head(3), &small));
    assert!(builder.finish());
    let whole = outbox.iter().next().unwrap().to_vec();
    let sizes: Vec<usize> = MessageReader::new(&whole, PEER)
        .unwrap()
        .map(|(_, submessage)| match submessage {
            Submessage::Data(data) => data.payload.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes, [512, 516, 512]);
}

#[test]
fn no_datagram_exceeds_the_budget() {
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 20 + 24 + 600 + 31);
    assert!(builder.data(&head(1), &Bytes::from(vec![0; 597])));
    assert_eq!(builder.remaining_bytes(), 31);
    assert!(!builder.heartbeat(&heartbeat()));
    assert!(!builder.data(&head(2), &Bytes::from(vec![0; 8])));
    assert!(builder.info_destination(PEER));
    assert!(!builder.info_destination(OWN));
    assert!(builder.finish());
    assert_eq!(outbox.size_bytes(), 20 + 24 + 600 + 16);

    let mut builder = outbox.begin(OWN, &route(), 1 << 20);
    assert!(!builder.data(&head(2), &Bytes::from(vec![0; 70_000])));
    assert!(
        !builder.finish(),
        "a datagram without submessages is not sent"
    );
    assert_eq!(outbox.len(), 1);
}

#[test]
fn a_payload_may_fill_the_datagram_to_its_last_byte() {
    let inline = Outbox::INLINE_PAYLOAD_MAX_BYTES;
    for payload_bytes in [inline, 2 * inline] {
        let payload = Bytes::from(vec![1; payload_bytes]);
        let whole = 20 + 24 + payload_bytes;
        for (budget_bytes, fits) in [(whole, true), (whole - 1, false)] {
            let mut outbox = Outbox::new();
            let mut builder = outbox.begin(OWN, &route(), budget_bytes);
            assert_eq!(builder.data(&head(1), &payload), fits, "{budget_bytes}");
        }
    }
}

#[test]
fn an_abandoned_datagram_is_not_sent() {
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    builder.heartbeat(&heartbeat());
    drop(builder);
    let mut builder = outbox.begin(OWN, &route(), 1400);
    builder.heartbeat(&heartbeat());
    builder.finish();
    assert_eq!(outbox.len(), 1);
    assert_eq!(outbox.size_bytes(), 20 + Heartbeat::SIZE_BYTES);
}

#[test]
fn a_full_outbox_takes_no_more_until_cleared_and_keeps_its_memory() {
    let mut outbox = Outbox::with_limit(2);
    let fill = |outbox: &mut Outbox| {
        let mut taken = 0;
        for sequence in 1..=3 {
            let mut builder = outbox.begin(OWN, &route(), 1400);
            builder.data(&head(sequence), &Bytes::from_static(&[0; 100]));
            taken += usize::from(builder.finish());
        }
        taken
    };
    assert_eq!(fill(&mut outbox), 2);
    assert!(outbox.is_full());
    let place = outbox.iter().next().unwrap().parts[0].as_ptr();
    outbox.clear();
    assert!(outbox.is_empty());
    assert_eq!(fill(&mut outbox), 2);
    assert_eq!(outbox.iter().next().unwrap().parts[0].as_ptr(), place);
}

#[test]
fn destination_and_timestamp_are_written_where_they_change_and_fit() {
    let mut outbox = Outbox::new();
    let stamp = |nanos| Some(Timestamp::from_nanos(nanos));
    let mut builder = outbox.begin(OWN, &route(), 20 + 16 + 12);
    assert_eq!(builder.size_bytes(), 20);
    // A message begins without either.
    assert!(builder.info_timestamp(None) && builder.info_destination(GuidPrefix::UNKNOWN));
    assert_eq!(builder.size_bytes(), 20);
    assert!(builder.info_destination(PEER) && builder.info_destination(PEER));
    assert_eq!(builder.size_bytes(), 20 + 16);
    assert!(builder.info_timestamp(stamp(1)) && builder.info_timestamp(stamp(1)));
    assert_eq!((builder.size_bytes(), builder.remaining_bytes()), (48, 0));
    assert!(!builder.info_timestamp(stamp(2)) && !builder.info_destination(OWN));
    assert_eq!(builder.size_bytes(), 48);
    // Neither is worth a datagram.
    assert!(!builder.finish());

    for (budget, fits) in [(20 + 16, true), (20 + 15, false)] {
        let mut builder = outbox.begin(OWN, &route(), budget);
        assert_eq!(builder.info_destination(PEER), fits);
    }
    for (budget, fits) in [(20 + 12, true), (20 + 11, false)] {
        let mut builder = outbox.begin(OWN, &route(), budget);
        assert_eq!(builder.info_timestamp(stamp(1)), fits);
    }
}
