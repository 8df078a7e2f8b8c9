//! Damaged datagrams: cut off at every byte, every byte changed. Nothing panics or
//! reads past the end, and parsed values obey their rules.

use crate::vectors;

use std::collections::BTreeSet;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData, ParticipantMessageData};
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::wire::{Cursor, Endianness, Header, Submessage, SubmessageHeader};
use vectors::{SCENARIOS, load};

/// Reads everything there is to read; returns how many submessages were.
fn read_all(datagram: &[u8]) -> usize {
    let Ok(reader) = MessageReader::new(datagram, GuidPrefix::UNKNOWN) else {
        return 0;
    };
    let mut count = 0;
    for (_, submessage) in reader {
        count += 1;
        look_at(&submessage);
    }
    // The same without leaving out what is for others.
    let mut at = Cursor::new(&datagram[Header::SIZE_BYTES..], Endianness::Little);
    while let Ok(header) = SubmessageHeader::parse(&mut at) {
        let Ok(body) = header.body(&mut at) else {
            break;
        };
        if let Ok(submessage) = Submessage::parse(header, body) {
            look_at(&submessage);
        }
    }
    count
}

fn look_at(submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Data(data) => {
            assert!(data.sequence.0 > 0);
            let _ = (data.change_kind(), data.inline_qos.key_hash());
            let _ = data.inline_qos.related_sample_identity();
            let _ = data.inline_qos.unknown_must_understand();
            let _ = data.inline_qos.is_directed_to_others(Guid::UNKNOWN);
            read_payload(data.payload);
        }
        Submessage::DataFrag(fragment) => {
            let end = fragment.offset_bytes() + fragment.payload.len();
            assert!(end <= fragment.sample_size as usize);
            assert!(fragment.fragments_total() >= fragment.first_fragment.0);
        }
        Submessage::AckNack(acknack) => {
            assert!(acknack.state.iter().count() <= 256);
            assert!(acknack.state.iter().all(|n| n >= acknack.state.base()));
        }
        Submessage::Gap(gap) => assert!(gap.start.0 > 0 && gap.list.base().0 > 0),
        Submessage::NackFrag(nack) => assert!(nack.state.iter().all(|n| n.0 > 0)),
        Submessage::Heartbeat(heartbeat) => assert!(heartbeat.last >= heartbeat.first.previous()),
        Submessage::InfoReply(reply) => {
            let _ = (reply.unicast.iter().count(), reply.multicast.iter().count());
        }
        _ => {}
    }
}

/// A payload as each kind of discovery data, whatever it is.
fn read_payload(payload: &[u8]) {
    if let Ok(mut data) = ParticipantData::parse(payload) {
        // Each vendor announces its product version in its own parameter; we write
        // only ours.
        data.product = data.product.filter(|_| data.vendor == VendorId::PTEROS);
        assert_eq!(ParticipantData::parse(&data.encode()).as_ref(), Ok(&data));
    }
    if let Ok(data) = EndpointData::parse(payload) {
        assert!(EndpointData::parse(&data.encode()).is_ok());
    }
    let _ = ParticipantMessageData::parse(payload);
}

/// One datagram of each shape (kinds and rough sizes of its submessages), short
/// ones only: damage to the middle of a long payload finds nothing new.
fn shapes() -> Vec<Vec<u8>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for scenario in SCENARIOS {
        for captured in load(scenario) {
            let message = captured.message;
            let mut shape = vec![message[7]];
            let mut at = Cursor::new(&message[20..], Endianness::Little);
            while let Ok(header) = SubmessageHeader::parse(&mut at) {
                let body = header.body(&mut at).unwrap();
                let size = (body.len() / 256) as u8;
                shape.extend([header.id, header.flags, size]);
            }
            if message.len() < 1500 && seen.insert(shape) {
                found.push(message);
            }
        }
    }
    found
}

#[test]
fn datagrams_cut_off_at_every_byte() {
    for scenario in SCENARIOS {
        for (index, captured) in load(scenario).into_iter().enumerate() {
            let message = captured.message;
            let whole = read_all(&message);
            // Every tenth datagram at every byte of its headers; the others, and
            // long payloads, at some bytes.
            let step = if index % 10 == 0 { 1 } else { 37 };
            let cuts = (0..message.len()).filter(|at| at % 97 == 0 || *at < 1200 && at % step == 0);
            for cut in cuts {
                assert!(read_all(&message[..cut]) <= whole);
            }
        }
    }
}

#[test]
fn datagrams_with_every_byte_changed() {
    let shapes = shapes();
    assert!(shapes.len() > 60, "{} shapes", shapes.len());
    for mut message in shapes {
        for at in 0..message.len() {
            let before = message[at];
            for change in [0x01, 0xff] {
                message[at] = before ^ change;
                read_all(&message);
            }
            message[at] = before;
        }
    }
}

#[test]
fn lengths_and_counts_of_every_size() {
    for mut message in shapes() {
        for at in (0..message.len().saturating_sub(4)).step_by(4) {
            let before: [u8; 4] = message[at..at + 4].try_into().unwrap();
            for word in [0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff_u32] {
                message[at..at + 4].copy_from_slice(&word.to_le_bytes());
                read_all(&message);
            }
            message[at..at + 4].copy_from_slice(&before);
        }
    }
}
