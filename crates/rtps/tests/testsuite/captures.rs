//! Captures of real ROS 2 graphs with Cyclone DDS and Fast DDS: every submessage,
//! participant, endpoint and sample is parsed.
//!
//! The expected content is in `vectors/*.expected`. Those lists were checked
//! against another decoder (see vectors/README.md).

use crate::vectors;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData, ParticipantMessageData};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::qos::{History, Reliability};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{
    Cursor, Endianness, Header, SecureKind, Submessage, SubmessageHeader, WireError,
};
use vectors::{SCENARIOS, load};

/// All submessages of a message, whomever they are for.
fn submessages(message: &[u8]) -> Result<Vec<Submessage<'_>>, WireError> {
    Header::parse(message)?;
    let mut at = Cursor::new(&message[Header::SIZE_BYTES..], Endianness::Little);
    let mut found = Vec::new();
    while !at.rest().is_empty() {
        let header = SubmessageHeader::parse(&mut at)?;
        let body = header.body(&mut at)?;
        found.push(Submessage::parse(header, body)?);
    }
    Ok(found)
}

fn kind_name(submessage: &Submessage<'_>) -> String {
    match submessage {
        Submessage::Data(_) => "DATA".into(),
        Submessage::DataFrag(_) => "DATA_FRAG".into(),
        Submessage::Heartbeat(_) => "HEARTBEAT".into(),
        Submessage::HeartbeatFrag(_) => "HEARTBEAT_FRAG".into(),
        Submessage::AckNack(_) => "ACKNACK".into(),
        Submessage::NackFrag(_) => "NACK_FRAG".into(),
        Submessage::Gap(_) => "GAP".into(),
        Submessage::InfoTimestamp(_) => "INFO_TS".into(),
        Submessage::InfoDestination(_) => "INFO_DST".into(),
        Submessage::InfoSource(_) => "INFO_SRC".into(),
        Submessage::InfoReply(_) => "INFO_REPLY".into(),
        Submessage::Pad => "PAD".into(),
        Submessage::Secure(kind, _) => match kind {
            SecureKind::Body => "SEC_BODY".into(),
            SecureKind::Prefix => "SEC_PREFIX".into(),
            SecureKind::Postfix => "SEC_POSTFIX".into(),
            SecureKind::RtpsPrefix => "SRTPS_PREFIX".into(),
            SecureKind::RtpsPostfix => "SRTPS_POSTFIX".into(),
        },
        Submessage::Unknown(id) => format!("0x{id:02x}"),
    }
}

/// The content of a scenario's datagrams as lines of text.
#[derive(Default)]
struct Inventory {
    counts: BTreeMap<String, u32>,
    participants: BTreeMap<GuidPrefix, String>,
    products: BTreeSet<([u8; 2], Option<String>)>,
    endpoints: BTreeMap<Guid, (EndpointData, String)>,
    samples: BTreeMap<(Guid, i64), String>,
    endings: BTreeSet<String>,
    assertions: BTreeSet<String>,
    fragments: BTreeMap<(Guid, i64), Vec<Option<u8>>>,
}

impl Inventory {
    fn of(scenario: &str) -> Self {
        let mut inventory = Self::default();
        for (index, captured) in load(scenario).iter().enumerate() {
            let header = Header::parse(&captured.message).unwrap();
            let found = submessages(&captured.message)
                .unwrap_or_else(|error| panic!("{scenario} datagram {index}: {error}"));
            for submessage in &found {
                let is_fast = header.vendor == VendorId::FAST_DDS;
                assert!(
                    !matches!(submessage, Submessage::Unknown(id) if !is_fast || *id != 0x80),
                    "{scenario} datagram {index}: {submessage:?}"
                );
                *inventory.counts.entry(kind_name(submessage)).or_default() += 1;
                inventory.note(header.prefix, submessage);
            }
        }
        inventory
    }

    fn note(&mut self, prefix: GuidPrefix, submessage: &Submessage<'_>) {
        match submessage {
            Submessage::Data(data) => {
                let writer = prefix.with(data.writer);
                if data.inline_qos.change_kind() != ChangeKind::Alive {
                    self.endings
                        .insert(format!("{:?} {writer}", data.change_kind()));
                    return;
                }
                match data.writer {
                    EntityId::SPDP_WRITER => self.note_participant(data.payload),
                    EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_WRITER => {
                        self.note_endpoint(data.payload);
                    }
                    EntityId::WLP_WRITER => {
                        let message = ParticipantMessageData::parse(data.payload).unwrap();
                        assert_eq!(message.prefix, prefix);
                        self.assertions
                            .insert(format!("{prefix} {:?}", message.liveliness_kind().unwrap()));
                    }
                    id if id.is_builtin() => {}
                    _ => {
                        let related = data
                            .inline_qos
                            .related_sample_identity()
                            .map(|id| format!(" related {} {}", id.writer, id.sequence))
                            .unwrap_or_default();
                        self.samples.insert(
                            (writer, data.sequence.0),
                            format!("{} bytes{related}", data.payload.len()),
                        );
                    }
                }
            }
            Submessage::DataFrag(fragment) => {
                let sample = self
                    .fragments
                    .entry((prefix.with(fragment.writer), fragment.sequence.0))
                    .or_insert_with(|| vec![None; fragment.sample_size as usize]);
                assert_eq!(sample.len(), fragment.sample_size as usize);
                let at = fragment.offset_bytes();
                for (place, byte) in sample[at..].iter_mut().zip(fragment.payload) {
                    *place = Some(*byte);
                }
            }
            _ => {}
        }
    }

    fn note_participant(&mut self, payload: &[u8]) {
        let data = ParticipantData::parse(payload).unwrap();
        let mut line = format!(
            "{:?} {}.{} endpoints 0x{:08x} lease {}",
            data.vendor,
            data.version.major,
            data.version.minor,
            data.builtin_endpoints,
            seconds(data.lease)
        );
        if let Some(domain) = data.domain_id {
            write!(line, " domain {domain}").unwrap();
        }
        for (what, list) in [
            ("meta", &data.metatraffic_unicast),
            ("meta-multicast", &data.metatraffic_multicast),
            ("user", &data.default_unicast),
            ("user-multicast", &data.default_multicast),
        ] {
            for locator in list {
                write!(line, " {what} {locator}").unwrap();
            }
        }
        write!(line, " data {}", text(&data.user_data)).unwrap();
        if let Some(name) = &data.entity_name {
            write!(line, " name {name}").unwrap();
        }
        for (id, token) in &data.security_tokens {
            write!(line, " token 0x{id:04x} {} bytes", token.len()).unwrap();
        }
        let mut again = ParticipantData::parse(&data.encode()).unwrap();
        if data.vendor == VendorId::CYCLONE {
            // Its own form is read only.
            again.product = data.product;
        }
        assert_eq!(again, data);
        let product = data.product.map(|product| product.to_string());
        self.products.insert((data.vendor.0, product));
        self.participants.insert(data.prefix, line);
    }

    fn note_endpoint(&mut self, payload: &[u8]) {
        let data = EndpointData::parse(payload).unwrap();
        let line = endpoint_line(&data);
        let mut expected = data.clone();
        if !data.is_writer() {
            // Meaningless for readers, and not written for them.
            expected.qos.lifespan = Duration::INFINITE;
        }
        assert_eq!(EndpointData::parse(&data.encode()).unwrap(), expected);
        self.endpoints.insert(data.guid, (data, line));
    }

    fn to_lines(&self) -> String {
        let mut out = String::new();
        for (kind, count) in &self.counts {
            writeln!(out, "submessages {kind} {count}").unwrap();
        }
        for (prefix, line) in &self.participants {
            writeln!(out, "participant {prefix} {line}").unwrap();
        }
        for (guid, (data, line)) in &self.endpoints {
            let kind = if data.is_writer() { "writer" } else { "reader" };
            writeln!(out, "{kind} {guid} {line}").unwrap();
        }
        for ending in &self.endings {
            writeln!(out, "ending {ending}").unwrap();
        }
        for assertion in &self.assertions {
            writeln!(out, "alive {assertion}").unwrap();
        }
        for ((writer, sequence), line) in &self.samples {
            let topic = self.topic(*writer);
            writeln!(out, "sample {writer} #{sequence} {topic} {line}").unwrap();
        }
        for ((writer, sequence), bytes) in &self.fragments {
            let topic = self.topic(*writer);
            let have = bytes.iter().flatten().count();
            writeln!(
                out,
                "fragmented {writer} #{sequence} {topic} {have} of {} bytes",
                bytes.len()
            )
            .unwrap();
        }
        out
    }

    fn topic(&self, writer: Guid) -> &str {
        self.endpoints
            .get(&writer)
            .map_or("-", |(data, _)| &data.topic)
    }
}

fn endpoint_line(data: &EndpointData) -> String {
    let qos = &data.qos;
    let reliability = match qos.reliability {
        Reliability::Reliable => "reliable",
        Reliability::BestEffort => "best-effort",
    };
    let history = match qos.history {
        History::KeepLast(depth) => format!("last-{depth}"),
        History::KeepAll => "all".into(),
    };
    let mut line = format!(
        "{} {} {reliability} {:?} {history}",
        data.topic, data.type_name, qos.durability
    );
    for (what, span) in [
        ("blocking", qos.max_blocking_time),
        ("deadline", qos.deadline),
        ("lifespan", qos.lifespan),
        ("lease", qos.lease_duration),
    ] {
        write!(line, " {what} {}", seconds(span)).unwrap();
    }
    for locator in &data.unicast {
        write!(line, " at {locator}").unwrap();
    }
    if !qos.representation.is_empty() {
        write!(line, " representation {:?}", qos.representation).unwrap();
    }
    if let Some(information) = &data.type_information {
        write!(line, " type-information {} bytes", information.len()).unwrap();
    }
    write!(line, " data {}", text(&qos.user_data)).unwrap();
    line
}

fn seconds(span: Duration) -> String {
    if span.is_infinite() {
        return "infinite".into();
    }
    format!("{}", span.as_nanos() as f64 / 1e9)
}

fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

#[test]
fn everything_captured_is_read_and_found() {
    for scenario in SCENARIOS {
        let lines = Inventory::of(scenario).to_lines();
        let path = vectors::folder().join(format!("{scenario}.expected"));
        let expected = std::fs::read_to_string(&path).unwrap();
        for (line, wanted) in lines.lines().zip(expected.lines()) {
            assert_eq!(line, wanted, "{scenario}");
        }
        assert_eq!(
            lines.lines().count(),
            expected.lines().count(),
            "{scenario}"
        );
    }
}

/// Fast DDS announces its version since 3.0; the captures are of 2.14.
#[test]
fn cyclone_announces_its_version_and_fast_dds_of_ros_2_jazzy_does_not() {
    for (scenario, vendor, version) in [
        ("cyclone-chatter", VendorId::CYCLONE, Some("0.10.5")),
        ("cyclone-secure-chatter", VendorId::CYCLONE, Some("0.10.5")),
        ("fastdds-chatter", VendorId::FAST_DDS, None),
    ] {
        let products = Inventory::of(scenario).products;
        let wanted = (vendor.0, version.map(String::from));
        assert!(products.contains(&wanted), "{scenario}: {products:?}");
        let others = products.iter().filter(|one| one.0 == vendor.0);
        assert_eq!(others.count(), 1, "{scenario}: {products:?}");
    }
}

#[test]
#[ignore = "writes the lists again; compare.py must agree with them"]
fn write_expected() {
    for scenario in SCENARIOS {
        let path = vectors::folder().join(format!("{scenario}.expected"));
        std::fs::write(path, Inventory::of(scenario).to_lines()).unwrap();
    }
}

/// As one participant receives it: exactly what was addressed to it or to all.
#[test]
fn a_participant_receives_only_submessages_addressed_to_it() {
    for scenario in SCENARIOS {
        let datagrams = load(scenario);
        let participants: BTreeSet<GuidPrefix> = datagrams
            .iter()
            .map(|captured| Header::parse(&captured.message).unwrap().prefix)
            .collect();
        for own in participants {
            for captured in &datagrams {
                let mut reader = MessageReader::new(&captured.message, own).unwrap();
                let heard: Vec<_> = reader.by_ref().collect();
                assert_eq!(reader.error(), None, "{scenario}");
                let heard: Vec<_> = heard
                    .into_iter()
                    .filter_map(|(source, submessage)| writer_of(&submessage).map(|w| (source, w)))
                    .collect();
                let wanted = addressed_to(&captured.message, own);
                assert_eq!(heard.len(), wanted.len(), "{scenario}");
                for ((source, writer), (prefix, other)) in heard.into_iter().zip(wanted) {
                    assert_eq!((source.prefix, writer), (prefix, other), "{scenario}");
                    assert!([own, GuidPrefix::UNKNOWN].contains(&source.destination));
                }
            }
        }
    }
}

fn writer_of(submessage: &Submessage<'_>) -> Option<EntityId> {
    Some(match submessage {
        Submessage::Data(data) => data.writer,
        Submessage::DataFrag(fragment) => fragment.writer,
        Submessage::Heartbeat(heartbeat) => heartbeat.writer,
        Submessage::HeartbeatFrag(heartbeat) => heartbeat.writer,
        Submessage::AckNack(acknack) => acknack.writer,
        Submessage::NackFrag(nack) => nack.writer,
        Submessage::Gap(gap) => gap.writer,
        _ => return None,
    })
}

/// Source and writer of each submessage for `own`, by the plain rule.
fn addressed_to(message: &[u8], own: GuidPrefix) -> Vec<(GuidPrefix, EntityId)> {
    let mut destination = GuidPrefix::UNKNOWN;
    let mut source = Header::parse(message).unwrap().prefix;
    let mut found = Vec::new();
    for submessage in submessages(message).unwrap() {
        match submessage {
            Submessage::InfoDestination(prefix) => destination = prefix,
            Submessage::InfoSource(info) => source = info.prefix,
            _ if destination != own && destination != GuidPrefix::UNKNOWN => {}
            _ => found.extend(writer_of(&submessage).map(|writer| (source, writer))),
        }
    }
    found
}

#[test]
fn fragments_of_both_stacks_make_up_the_array_that_was_published() {
    for scenario in ["cyclone-large", "fastdds-large"] {
        let inventory = Inventory::of(scenario);
        let samples: Vec<_> = inventory.fragments.values().collect();
        let [sample] = samples[..] else {
            panic!("{scenario}: one fragmented sample is expected");
        };
        let bytes: Vec<u8> = sample.iter().map(|byte| byte.unwrap()).collect();
        // CDR_LE; no dimensions, offset 0, count; the array.
        assert_eq!(
            bytes[..12],
            [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "{scenario}"
        );
        assert_eq!(bytes[12..16], 204_800u32.to_le_bytes(), "{scenario}");
        let array = &bytes[16..];
        assert_eq!(array.len(), 204_800);
        assert!(array.iter().enumerate().all(|(i, byte)| *byte == i as u8));
    }
}

#[test]
fn submessages_without_payload_are_written_as_the_peers_wrote_them() {
    let mut compared = 0;
    for scenario in SCENARIOS {
        for captured in load(scenario) {
            let mut at = Cursor::new(&captured.message[20..], Endianness::Little);
            while !at.rest().is_empty() {
                let whole = at.rest();
                let header = SubmessageHeader::parse(&mut at).unwrap();
                let body = header.body(&mut at).unwrap();
                let whole = &whole[..4 + body.len()];
                let mut ours = Vec::new();
                match Submessage::parse(header, body).unwrap() {
                    Submessage::Heartbeat(heartbeat) => heartbeat.write(&mut ours),
                    Submessage::HeartbeatFrag(heartbeat) => heartbeat.write(&mut ours),
                    Submessage::AckNack(acknack) => acknack.write(&mut ours),
                    Submessage::NackFrag(nack) => nack.write(&mut ours),
                    Submessage::Gap(gap) => gap.write(&mut ours),
                    _ => continue,
                }
                assert_eq!(ours, whole, "{scenario}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
