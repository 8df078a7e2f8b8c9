//! Instances of keyed topics on the wire (RTPS 2.5 §8.7.4, §9.6.4.8–9), sent and
//! received.

use bytes::Bytes;
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::time::Instant;
use pteros_rtps::wire::{Data, Header, StatusInfo, Submessage};
use pteros_rtps::writer::{NewChange, ReaderProxyConfig, Writer, WriterConfig};

const KEY: [u8; 16] = [5; 16];
const KEY_PAYLOAD: [u8; 8] = [0, 1, 0, 0, 5, 0, 0, 0];

fn writer_guid() -> Guid {
    GuidPrefix([1; 12]).with(EntityId::new([0, 1, 0], EntityId::KIND_WRITER_WITH_KEY))
}

fn reader_guid() -> Guid {
    GuidPrefix([2; 12]).with(EntityId::new([0, 2, 0], EntityId::KIND_READER_WITH_KEY))
}

fn route() -> Route {
    Route::by_socket(&[Locator::udp_v4([10, 0, 0, 1], 7411)], false)
}

fn writer() -> Writer {
    let mut writer = Writer::new(WriterConfig::new(writer_guid(), EndpointQos::default()));
    let reader = ReaderProxyConfig {
        guid: reader_guid(),
        qos: EndpointQos::default().into(),
        route: route(),
        expects_inline_qos: false,
        vendor: VendorId::CYCLONE,
        content_filter: None,
        payload_form: None,
    };
    assert!(writer.match_reader(Instant::ZERO, reader));
    writer
}

/// Best effort: it needs no heartbeat.
fn reader() -> Reader {
    let qos = EndpointQos {
        reliability: Reliability::BestEffort,
        ..EndpointQos::default()
    };
    let mut reader = Reader::new(ReaderConfig::new(reader_guid(), qos));
    let writer = WriterProxyConfig {
        guid: writer_guid(),
        qos: EndpointQos::default().into(),
        route: route(),
        vendor: VendorId::CYCLONE,
    };
    assert!(reader.match_writer(Instant::ZERO, writer));
    reader
}

/// The datagrams of one change.
fn sent(kind: ChangeKind) -> Vec<Vec<u8>> {
    let mut writer = writer();
    let mut outbox = Outbox::new();
    let change = NewChange {
        payload: Bytes::from_static(&KEY_PAYLOAD),
        kind,
        key_hash: Some(KEY),
        ..NewChange::default()
    };
    writer.write(Instant::ZERO, change).unwrap();
    while writer.poll_transmit(Instant::ZERO, &mut outbox) {}
    outbox.iter().map(|d| d.parts.concat()).collect()
}

fn each_data(datagrams: &[Vec<u8>], mut f: impl FnMut(&Source, &Data<'_>)) {
    for datagram in datagrams {
        let message = MessageReader::new(datagram, GuidPrefix([2; 12])).unwrap();
        for (source, submessage) in message {
            if let Submessage::Data(data) = submessage {
                f(&source, &data);
            }
        }
    }
}

#[test]
fn a_sample_carries_its_key_hash_and_a_dispose_key_and_status() {
    for (kind, status) in [
        (ChangeKind::Alive, None),
        (ChangeKind::Disposed, Some(StatusInfo::DISPOSED)),
        (ChangeKind::Unregistered, Some(StatusInfo::UNREGISTERED)),
        (
            ChangeKind::DisposedUnregistered,
            Some(StatusInfo::DISPOSED_UNREGISTERED),
        ),
    ] {
        let mut seen = 0;
        each_data(&sent(kind), |_, data| {
            seen += 1;
            assert_eq!(data.inline_qos.key_hash(), Some(KEY));
            assert_eq!(data.inline_qos.status_info(), status);
            assert_eq!(data.key_only, kind != ChangeKind::Alive);
            assert_eq!(data.payload, KEY_PAYLOAD);
        });
        assert_eq!(seen, 1, "{kind:?}");
    }
}

#[test]
fn status_info_is_big_endian_in_any_submessage() {
    let datagrams = sent(ChangeKind::DisposedUnregistered);
    // PID_STATUS_INFO 0x0071, 4 bytes.
    let wanted = [0x71, 0, 4, 0, 0, 0, 0, 3];
    let found = datagrams.iter().any(|d| d.windows(8).any(|w| w == wanted));
    assert!(found, "{datagrams:02x?}");
}

fn all(reader: &mut Reader) -> Vec<CacheChange> {
    std::iter::from_fn(|| reader.poll_sample()).collect()
}

#[test]
fn dispose_and_unregister_are_read_with_any_payload() {
    let mut reader = reader();
    each_data(&sent(ChangeKind::Disposed), |source, data| {
        reader.handle_data(Instant::ZERO, source, data);
    });
    let [end] = &all(&mut reader)[..] else {
        panic!("one change");
    };
    assert_eq!((end.kind, end.key_only), (ChangeKind::Disposed, true));
    assert_eq!((end.key_hash, &*end.payload), (Some(KEY), &KEY_PAYLOAD[..]));
    // Cyclone DDS's dds_writedispose: a sample and its end in one.
    each_data(&sent(ChangeKind::Disposed), |source, data| {
        let both = Data {
            sequence: data.sequence.next(),
            key_only: false,
            ..*data
        };
        reader.handle_data(Instant::ZERO, source, &both);
    });
    let [both] = &all(&mut reader)[..] else {
        panic!("one change");
    };
    assert_eq!((both.kind, both.key_only), (ChangeKind::Disposed, false));
}

#[test]
fn a_key_without_status_is_a_registration_and_no_sample() {
    let mut reader = reader();
    let source = Source::of(Header::ours(writer_guid().prefix));
    each_data(&sent(ChangeKind::Alive), |_, data| {
        let key = Data {
            key_only: true,
            ..*data
        };
        reader.handle_data(Instant::ZERO, &source, &key);
        let next = Data {
            sequence: data.sequence.next(),
            ..*data
        };
        reader.handle_data(Instant::ZERO, &source, &next);
    });
    let numbers: Vec<i64> = all(&mut reader).iter().map(|c| c.sequence.0).collect();
    assert_eq!(numbers, [2]);
    assert_eq!(reader.stats().lost, 0);
}
