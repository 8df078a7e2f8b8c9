//! Inline QoS with effects on the reader: directed write (RTPS 2.5 §8.7.7,
//! PID_DIRECTED_WRITE), and unknown must-understand parameters (§9.4.2.11.2). The
//! bytes are written by hand: this stack sends neither.

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::{Data, DataFrag, Header, Heartbeat, Submessage};

const DIRECTED_WRITE: u16 = 0x0057;
/// No parameter of any version, to be understood or left.
const UNKNOWN_MUST_UNDERSTAND: u16 = 0x7ffa;
const PAYLOAD: [u8; 8] = [0, 1, 0, 0, 5, 0, 0, 0];

fn guid(participant: u8, kind: u8) -> Guid {
    GuidPrefix([participant; 12]).with(EntityId::new([0, 1, 0], kind))
}

fn writer() -> Guid {
    guid(1, EntityId::KIND_WRITER_NO_KEY)
}

fn us() -> Guid {
    guid(2, EntityId::KIND_READER_NO_KEY)
}

fn another() -> Guid {
    guid(3, EntityId::KIND_READER_NO_KEY)
}

fn reader(reliability: Reliability) -> Reader {
    let qos = EndpointQos {
        reliability,
        ..EndpointQos::default()
    };
    let mut reader = Reader::new(ReaderConfig::new(us(), qos));
    let writer = WriterProxyConfig {
        guid: writer(),
        qos: EndpointQos::default().into(),
        route: Route::by_socket(&[Locator::udp_v4([10, 0, 0, 1], 7411)], false),
        vendor: VendorId::OPENDDS,
    };
    assert!(reader.match_writer(Instant::ZERO, writer));
    reader
}

/// The writer has 1 to `last`, and requests an answer.
fn heartbeat(last: i64) -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: writer().entity,
        first: SequenceNumber::FIRST,
        last: SequenceNumber(last),
        count: u32::try_from(last).unwrap(),
        is_final: false,
        liveliness: false,
        group_info: None,
    }
}

/// Both kinds of reader, each with number 1 in hand.
fn readers() -> [Reader; 2] {
    [Reliability::BestEffort, Reliability::Reliable].map(|reliability| {
        let mut reader = reader(reliability);
        if reliability == Reliability::Reliable {
            reader.handle_heartbeat(Instant::ZERO, &source(), &heartbeat(1));
        }
        receive(&mut reader, 1, &[]);
        reader
    })
}

fn source() -> Source {
    Source::of(Header::ours(writer().prefix))
}

/// Reader UNKNOWN, the writer, the number.
fn ids(number: u8) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&writer().entity.to_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, number, 0, 0, 0]);
    bytes
}

fn inline_qos(parameters: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, value) in parameters {
        bytes.extend_from_slice(&id.to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(value.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(value);
    }
    bytes.extend_from_slice(&[1, 0, 0, 0]);
    bytes
}

/// The reader gets a sample with these parameters, if it takes it.
fn receive(reader: &mut Reader, number: u8, parameters: &[(u16, Vec<u8>)]) {
    let body = [
        vec![0, 0, 16, 0],
        ids(number),
        inline_qos(parameters),
        PAYLOAD.to_vec(),
    ];
    let body = body.concat();
    // Little endian, inline QoS, data.
    let data = Data::parse(0x07, &body).unwrap();
    reader.handle_data(Instant::ZERO, &source(), &data);
}

/// The same in two fragments of four bytes; only the first has the parameters.
fn receive_fragments(reader: &mut Reader, number: u8, parameters: &[(u16, Vec<u8>)]) {
    for (index, bytes) in (1..).zip(PAYLOAD.chunks(4)) {
        let (flags, qos) = match index {
            1 => (0x03, inline_qos(parameters)),
            _ => (0x01, Vec::new()),
        };
        let fragments = vec![index, 0, 0, 0, 1, 0, 4, 0, 8, 0, 0, 0];
        let body = [
            vec![0, 0, 28, 0],
            ids(number),
            fragments,
            qos,
            bytes.to_vec(),
        ];
        let body = body.concat();
        let data = DataFrag::parse(flags, &body).unwrap();
        reader.handle_data_frag(Instant::ZERO, &source(), &data);
    }
}

fn sequence(guids: &[Guid]) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(guids.len()).unwrap(), 0, 0, 0];
    guids.iter().for_each(|g| bytes.extend(g.to_bytes()));
    bytes
}

fn numbers(reader: &mut Reader) -> Vec<i64> {
    let all = std::iter::from_fn(|| reader.poll_sample());
    all.map(|change| change.sequence.0).collect()
}

#[test]
fn a_sample_directed_at_others_is_not_delivered() {
    let ours = us().to_bytes().to_vec();
    let theirs = another().to_bytes().to_vec();
    for mut reader in readers() {
        receive(&mut reader, 2, &[(DIRECTED_WRITE, sequence(&[another()]))]);
        let both = sequence(&[another(), us()]);
        receive(&mut reader, 3, &[(DIRECTED_WRITE, both)]);
        // As OpenDDS writes it: a parameter for each.
        receive(&mut reader, 4, &[(DIRECTED_WRITE, theirs.clone())]);
        let each = [
            (DIRECTED_WRITE, theirs.clone()),
            (DIRECTED_WRITE, ours.clone()),
        ];
        receive(&mut reader, 5, &each);
        receive(&mut reader, 6, &[(DIRECTED_WRITE, sequence(&[]))]);
        receive_fragments(&mut reader, 7, &[(DIRECTED_WRITE, sequence(&[another()]))]);
        receive_fragments(&mut reader, 8, &[(DIRECTED_WRITE, sequence(&[us()]))]);
        receive(&mut reader, 9, &[]);
        assert_eq!(numbers(&mut reader), [1, 3, 5, 8, 9]);
        let stats = reader.stats();
        assert_eq!((stats.filtered, stats.lost), (4, 0));
    }
}

#[test]
fn a_sample_with_an_unknown_must_understand_parameter_is_dropped() {
    for mut reader in readers() {
        receive(&mut reader, 2, &[(UNKNOWN_MUST_UNDERSTAND, vec![0; 4])]);
        receive_fragments(&mut reader, 3, &[(UNKNOWN_MUST_UNDERSTAND, vec![0; 4])]);
        // An unknown parameter without the flag has no effect.
        receive(
            &mut reader,
            4,
            &[(UNKNOWN_MUST_UNDERSTAND & 0x3fff, vec![0; 4])],
        );
        receive_fragments(
            &mut reader,
            5,
            &[(UNKNOWN_MUST_UNDERSTAND & 0x3fff, vec![0; 4])],
        );
        assert_eq!(numbers(&mut reader), [1, 4, 5]);
        assert_eq!(reader.stats().lost, 0);
    }
}

#[test]
fn dropped_samples_are_acknowledged() {
    let [_, mut reader] = readers();
    receive(&mut reader, 2, &[(DIRECTED_WRITE, sequence(&[another()]))]);
    receive_fragments(&mut reader, 3, &[(UNKNOWN_MUST_UNDERSTAND, vec![0; 4])]);
    let mut outbox = Outbox::new();
    let later = Instant::ZERO + Duration::from_secs(1);
    reader.handle_timeout(later);
    reader.handle_heartbeat(later, &source(), &heartbeat(3));
    while reader.poll_transmit(later, &mut outbox) {}
    let datagrams: Vec<Vec<u8>> = outbox.iter().map(|d| d.parts.concat()).collect();
    let mut acknowledged = Vec::new();
    for datagram in &datagrams {
        for (_, submessage) in MessageReader::new(datagram, writer().prefix).unwrap() {
            if let Submessage::AckNack(acknack) = submessage {
                assert!(acknack.state.is_empty(), "asks for {acknack:?}");
                acknowledged.push(acknack.state.base().0);
            }
        }
    }
    assert_eq!(acknowledged.last(), Some(&4));
}
