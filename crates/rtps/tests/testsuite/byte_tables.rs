//! Byte layout of each submessage: little endian as written and read here, big
//! endian as others may write it (RTPS 2.5 §9.4.5).

use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, ProtocolVersion, VendorId};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::seq::{FragmentNumber, SampleIdentity, SequenceNumber};
use pteros_rtps::time::Timestamp;
use pteros_rtps::wire::{
    AckNack, DataFragHead, DataHead, FragmentSet, Gap, Header, Heartbeat, HeartbeatFrag,
    InlineQosHead, NackFrag, SequenceSet, StatusInfo, Submessage, SubmessageHeader, WireError,
};

const OWN: GuidPrefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
const PEER: GuidPrefix = GuidPrefix([0xa1; 12]);
const READER: EntityId = EntityId::new([0, 0, 5], EntityId::KIND_READER_NO_KEY);
const WRITER: EntityId = EntityId::new([0, 0, 6], EntityId::KIND_WRITER_NO_KEY);

/// Bytes of a table: hexadecimal, spaces and line ends as one likes.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| (byte as char).to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Reads one submessage, header included.
fn parse(bytes: &[u8]) -> Result<Submessage<'_>, WireError> {
    let header = SubmessageHeader {
        id: bytes[0],
        flags: bytes[1],
        length: (bytes.len() - 4) as u16,
    };
    Submessage::parse(header, &bytes[4..])
}

/// A message of us with these submessages behind the header.
fn message(submessages: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header::ours(PEER).write(&mut out);
    out.extend_from_slice(submessages);
    out
}

fn route() -> Arc<[Locator]> {
    Arc::from([Locator::udp_v4([10, 0, 0, 1], 7411)].as_slice())
}

#[test]
fn header() {
    let mut out = Vec::new();
    Header::ours(OWN).write(&mut out);
    assert_eq!(out, hex("52545053 0203 0150 0102030405060708090a0b0c"));
    assert_eq!(Header::parse(&out), Ok(Header::ours(OWN)));
    assert_eq!(
        Header::parse(&hex("52545053 0301 0150 0102030405060708090a0b0c")),
        Err(WireError::UnsupportedVersion(3))
    );
    // A later minor version is read; the older magic of RTPX is not.
    assert!(Header::parse(&hex("52545053 0209 0150 0102030405060708090a0b0c")).is_ok());
    assert_eq!(
        Header::parse(&hex("52545058 0203 0150 0102030405060708090a0b0c")),
        Err(WireError::NotRtps)
    );
}

#[test]
fn heartbeat() {
    let heartbeat = Heartbeat {
        reader: READER,
        writer: WRITER,
        first: SequenceNumber(2),
        last: SequenceNumber((1 << 32) + 3),
        count: 7,
        is_final: true,
        liveliness: false,
        group_info: None,
    };
    let little = hex("07 03 1c00 00000504 00000603
        00000000 02000000 01000000 03000000 07000000");
    let big = hex("07 02 001c 00000504 00000603
        00000000 00000002 00000001 00000003 00000007");
    let mut out = Vec::new();
    heartbeat.write(&mut out);
    assert_eq!(out, little);
    assert_eq!(parse(&little), Ok(Submessage::Heartbeat(heartbeat)));
    assert_eq!(parse(&big), Ok(Submessage::Heartbeat(heartbeat)));
}

#[test]
fn a_heartbeat_may_be_empty_but_not_backwards() {
    let range = |first: u32, last: u32| {
        let mut bytes = hex("07 01 1c00 00000504 00000603");
        for word in [0, first, 0, last, 1] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        parse(&bytes).map(|_| ())
    };
    assert_eq!(range(1, 0), Ok(()));
    assert_eq!(range(5, 4), Ok(()));
    assert_eq!(range(5, 3), Err(WireError::InvalidSequence));
    assert_eq!(range(0, 0), Err(WireError::InvalidSequence));
}

#[test]
fn acknack() {
    let numbers = [SequenceNumber(1236), SequenceNumber(1237)];
    let acknack = AckNack {
        reader: READER,
        writer: WRITER,
        state: SequenceSet::from_numbers(SequenceNumber(1234), numbers),
        count: 9,
        is_final: false,
    };
    let little = hex("06 01 1c00 00000504 00000603
        00000000 d2040000 04000000 00000030 09000000");
    let big = hex("06 00 001c 00000504 00000603
        00000000 000004d2 00000004 30000000 00000009");
    let mut out = Vec::new();
    acknack.write(&mut out);
    assert_eq!(out, little);
    assert_eq!(parse(&little), Ok(Submessage::AckNack(acknack)));
    assert_eq!(parse(&big), Ok(Submessage::AckNack(acknack)));
}

#[test]
fn gap() {
    let gap = Gap::range(READER, WRITER, SequenceNumber(3), SequenceNumber(1 << 40));
    let little = hex("08 01 1c00 00000504 00000603
        00000000 03000000 00010000 01000000 00000000");
    let big = hex("08 00 001c 00000504 00000603
        00000000 00000003 00000100 00000001 00000000");
    let mut out = Vec::new();
    gap.write(&mut out);
    assert_eq!(out, little);
    assert_eq!(parse(&little), Ok(Submessage::Gap(gap)));
    assert_eq!(parse(&big), Ok(Submessage::Gap(gap)));
    assert_eq!(gap.list.base(), SequenceNumber((1 << 40) + 1));
    let zero = hex("08 01 1c00 00000504 00000603
        00000000 00000000 00000000 01000000 00000000");
    assert_eq!(parse(&zero), Err(WireError::InvalidSequence));
}

#[test]
fn nack_frag_and_heartbeat_frag() {
    let nack = NackFrag {
        reader: READER,
        writer: WRITER,
        sequence: SequenceNumber(8),
        state: FragmentSet::from_numbers(FragmentNumber(3), [FragmentNumber(3)]),
        count: 2,
    };
    let mut out = Vec::new();
    nack.write(&mut out);
    assert_eq!(
        out,
        hex("12 01 2000 00000504 00000603 00000000 08000000
            03000000 01000000 00000080 02000000")
    );
    assert_eq!(parse(&out), Ok(Submessage::NackFrag(nack)));
    let big = hex("12 00 0020 00000504 00000603 00000000 00000008
        00000003 00000001 80000000 00000002");
    assert_eq!(parse(&big), Ok(Submessage::NackFrag(nack)));

    let heartbeat = HeartbeatFrag {
        reader: READER,
        writer: WRITER,
        sequence: SequenceNumber(8),
        last_fragment: FragmentNumber(4),
        count: 1,
    };
    let mut out = Vec::new();
    heartbeat.write(&mut out);
    assert_eq!(
        out,
        hex("13 01 1800 00000504 00000603 00000000 08000000 04000000 01000000")
    );
    assert_eq!(out.len(), HeartbeatFrag::SIZE_BYTES);
    assert_eq!(parse(&out), Ok(Submessage::HeartbeatFrag(heartbeat)));
    let big = hex("13 00 0018 00000504 00000603 00000000 00000008 00000004 00000001");
    assert_eq!(parse(&big), Ok(Submessage::HeartbeatFrag(heartbeat)));
}

#[test]
fn data_with_inline_qos_in_both_forms_of_the_related_sample() {
    let related = SampleIdentity {
        writer: PEER.with(READER),
        sequence: SequenceNumber(5),
    };
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sequence: SequenceNumber(1),
        inline_qos: InlineQosHead {
            related_sample_identity: Some(related),
            ..InlineQosHead::NONE
        },
        key_only: false,
    };
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    assert!(builder.data(&head, &Bytes::from_static(&[0, 1, 0, 0, 0x2a])));
    assert!(builder.finish());
    let datagram = outbox.iter().next().unwrap().to_vec();
    let expected = hex("15 07 5800 0000 1000 00000000 00000603 00000000 01000000
        8300 1800 a1a1a1a1a1a1a1a1a1a1a1a1 00000504 00000000 05000000
        0f80 1800 a1a1a1a1a1a1a1a1a1a1a1a1 00000504 00000000 05000000
        0100 0000
        00010000 2a000000");
    assert_eq!(&datagram[20..], expected);
    let Ok(Submessage::Data(data)) = parse(&expected) else {
        panic!("a DATA");
    };
    assert_eq!(data.inline_qos.related_sample_identity(), Some(related));
    assert_eq!(data.payload, [0, 1, 0, 0, 0x2a, 0, 0, 0]);
    assert_eq!(head.size_bytes() + 8, expected.len());

    let big = hex("15 06 0030 0000 0010 00000000 00000603 00000000 00000001
        800f 0018 a1a1a1a1a1a1a1a1a1a1a1a1 00000504 00000000 00000005
        0001 0000");
    let Ok(Submessage::Data(data)) = parse(&big) else {
        panic!("a DATA");
    };
    assert_eq!(data.inline_qos.related_sample_identity(), Some(related));
}

#[test]
fn a_restored_sample_names_its_original() {
    let original = SampleIdentity {
        writer: PEER.with(WRITER),
        sequence: SequenceNumber((1 << 32) + 5),
    };
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sequence: SequenceNumber(1),
        inline_qos: InlineQosHead {
            original_writer_info: Some(original),
            ..InlineQosHead::NONE
        },
        key_only: false,
    };
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    assert!(builder.data(&head, &Bytes::from_static(&[0, 1, 0, 0])));
    assert!(builder.finish());
    let datagram = outbox.iter().next().unwrap().to_vec();
    let expected = hex("15 07 3800 0000 1000 00000000 00000603 00000000 01000000
        6100 1800 a1a1a1a1a1a1a1a1a1a1a1a1 00000603 01000000 05000000
        0100 0000
        00010000");
    assert_eq!(&datagram[20..], expected);
    let Ok(Submessage::Data(data)) = parse(&expected) else {
        panic!("a DATA");
    };
    assert_eq!(data.inline_qos.original_writer_info(), Some(original));
    assert_eq!(data.inline_qos.related_sample_identity(), None);
}

#[test]
fn a_disposal_carries_status_and_key_hash() {
    let head = DataHead {
        writer: EntityId::SPDP_WRITER,
        reader: EntityId::SPDP_READER,
        sequence: SequenceNumber(2),
        inline_qos: InlineQosHead {
            status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
            key_hash: Some(PEER.with(EntityId::PARTICIPANT).to_bytes()),
            ..InlineQosHead::NONE
        },
        key_only: false,
    };
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    assert!(builder.data(&head, &Bytes::new()));
    builder.finish();
    let datagram = outbox.iter().next().unwrap().to_vec();
    assert_eq!(
        &datagram[20..],
        hex("15 03 3400 0000 1000 000100c7 000100c2 00000000 02000000
            7000 1000 a1a1a1a1a1a1a1a1a1a1a1a1 000001c1
            7100 0400 00000003
            0100 0000")
    );
    let Ok(Submessage::Data(data)) = parse(&datagram[20..]) else {
        panic!("a DATA");
    };
    let status = data.inline_qos.status_info().unwrap();
    assert!(status.is_disposed() && status.is_unregistered());
    assert_eq!(
        data.inline_qos.key_hash().map(Guid::from_bytes),
        Some(PEER.with(EntityId::PARTICIPANT))
    );
}

#[test]
fn data_frag_yields_exactly_its_fragments() {
    let head = DataFragHead {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sequence: SequenceNumber(1),
        first_fragment: FragmentNumber(3),
        fragment_count: 1,
        fragment_size: 1000,
        sample_size: 2003,
        ..DataFragHead::default()
    };
    let mut outbox = Outbox::new();
    let mut builder = outbox.begin(OWN, &route(), 1400);
    assert!(builder.data_frag(&head, Bytes::from_static(&[1, 2, 3])));
    builder.finish();
    let datagram = outbox.iter().next().unwrap().to_vec();
    assert_eq!(
        &datagram[20..],
        hex("16 01 2400 0000 1c00 00000000 00000603 00000000 01000000
            03000000 0100 e803 d3070000 01020300")
    );
    let Ok(Submessage::DataFrag(fragment)) = parse(&datagram[20..]) else {
        panic!("a DATA_FRAG");
    };
    assert_eq!(fragment.payload, [1, 2, 3]);
    assert_eq!(
        (fragment.fragments_total(), fragment.offset_bytes()),
        (3, 2000)
    );
}

#[test]
fn contradictory_fragments_are_refused() {
    let fragment = |first: u32, count: u16, size: u16, sample: u32, payload: usize| {
        let mut bytes = hex("16 01 0000 0000 1c00 00000000 00000603 00000000 01000000");
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        bytes.extend_from_slice(&sample.to_le_bytes());
        bytes.resize(bytes.len() + payload, 0);
        parse(&bytes).map(|_| ())
    };
    let invalid = Err(WireError::InvalidFragment);
    assert_eq!(fragment(1, 2, 100, 250, 200), Ok(()));
    assert_eq!(fragment(2, 2, 100, 250, 150), Ok(()));
    assert_eq!(fragment(0, 1, 100, 250, 100), invalid, "first is zero");
    assert_eq!(fragment(1, 0, 100, 250, 0), invalid, "no fragments");
    assert_eq!(fragment(1, 1, 0, 250, 0), invalid, "size is zero");
    assert_eq!(
        fragment(1, 1, 100, 50, 50),
        invalid,
        "larger than the sample"
    );
    assert_eq!(fragment(3, 2, 100, 250, 50), invalid, "past the last one");
    assert_eq!(fragment(u32::MAX, u16::MAX, 100, 250, 0), invalid);
    assert_eq!(
        fragment(1, 1, 100, 250, 104),
        invalid,
        "more than its declared size"
    );
    assert_eq!(fragment(1, 1, 100, 250, 99), Err(WireError::Truncated));
}

#[test]
fn info_submessages_change_what_follows() {
    let heartbeat = "07 03 1c00 00000000 00000603 00000000 01000000 00000000 01000000 01000000";
    let submessages = [
        "09 01 0800 05000000 00000080",        // 5.5 s
        "0e 01 0c00 0102030405060708090a0b0c", // for us
        heartbeat,
        "0e 01 0c00 b1b1b1b1b1b1b1b1b1b1b1b1", // for somebody else
        heartbeat,
        "0e 01 0c00 000000000000000000000000", // for all
        "09 03 0000",                          // no stamp
        "0c 01 1400 00000000 0201 0110 c1c1c1c1c1c1c1c1c1c1c1c1",
        // Reply to 10.0.0.9:7500, and no multicast.
        "0f 01 1c00 01000000 01000000 4c1d0000 000000000000000000000000 0a000009",
        "01 01 0000",          // PAD
        "80 01 0400 deadbeef", // another vendor's
        heartbeat,
    ]
    .map(hex)
    .concat();
    let bytes = message(&submessages);
    let mut reader = MessageReader::new(&bytes, OWN).unwrap();
    let heard: Vec<Source> = reader
        .by_ref()
        .filter(|(_, submessage)| matches!(submessage, Submessage::Heartbeat(_)))
        .map(|(source, _)| source)
        .collect();
    assert_eq!(reader.error(), None);
    let [first, second] = heard[..] else {
        panic!("two heartbeats are for us: {heard:?}");
    };
    assert_eq!((first.prefix, first.destination), (PEER, OWN));
    assert_eq!(first.timestamp, Some(Timestamp::from_nanos(5_500_000_000)));
    assert_eq!(second.prefix, GuidPrefix([0xc1; 12]));
    assert_eq!(second.vendor, VendorId::CYCLONE);
    assert_eq!(second.version, ProtocolVersion { major: 2, minor: 1 });
    assert_eq!(
        (second.destination, second.timestamp),
        (GuidPrefix::UNKNOWN, None)
    );
    let reply = Locator::udp_v4([10, 0, 0, 9], 7500);
    assert_eq!(
        (second.reply_unicast, second.reply_multicast),
        (Some(reply), None)
    );
}

#[test]
fn info_reply_ip4_yields_the_same_locator() {
    let bytes = message(&hex("0d 01 0800 0900000a 4c1d0000 01 01 0000"));
    let (source, _) = MessageReader::new(&bytes, OWN).unwrap().last().unwrap();
    assert_eq!(
        source.reply_unicast,
        Some(Locator::udp_v4([10, 0, 0, 9], 7500))
    );
}

#[test]
fn a_last_submessage_of_length_zero_goes_to_the_end() {
    let bytes = message(&hex(
        "15 05 0000 0000 1000 00000000 00000603 00000000 01000000 00010000 01020304",
    ));
    let mut reader = MessageReader::new(&bytes, OWN).unwrap();
    let Some((_, Submessage::Data(data))) = reader.next() else {
        panic!("a DATA");
    };
    assert_eq!(data.payload, [0, 1, 0, 0, 1, 2, 3, 4]);
    assert_eq!((reader.next(), reader.error()), (None, None));
}

#[test]
fn an_unknown_submessage_is_skipped_and_an_invalid_one_ends_the_message() {
    let good = "07 03 1c00 00000000 00000603 00000000 01000000 00000000 01000000 01000000";
    let bad = "07 03 1c00 00000000 00000603 00000000 00000000 00000000 01000000 01000000";
    let bytes = message(&[hex("2a 01 0400 00000000"), hex(good), hex(bad), hex(good)].concat());
    let mut reader = MessageReader::new(&bytes, OWN).unwrap();
    let heartbeats = reader
        .by_ref()
        .filter(|(_, submessage)| matches!(submessage, Submessage::Heartbeat(_)))
        .count();
    assert_eq!(heartbeats, 1);
    assert_eq!(reader.error(), Some(WireError::InvalidSequence));
}

#[test]
fn a_vendor_may_add_fields_before_the_inline_qos() {
    let bytes = hex(
        "15 07 0000 0000 1400 00000000 00000603 00000000 01000000 ffffffff
        7100 0400 00000001 0100 0000 00010000",
    );
    let Ok(Submessage::Data(data)) = parse(&bytes) else {
        panic!("a DATA");
    };
    assert_eq!(data.inline_qos.status_info(), Some(StatusInfo::DISPOSED));
    assert_eq!(data.payload, [0, 1, 0, 0]);
    let short = hex("15 05 0000 0000 0c00 00000000 00000603 00000000 01000000");
    assert_eq!(parse(&short), Err(WireError::InvalidLength));
    let both = hex("15 0d 0000 0000 1000 00000000 00000603 00000000 01000000 00010000");
    assert_eq!(parse(&both), Err(WireError::InvalidFlags));
}
