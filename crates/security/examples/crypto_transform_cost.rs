//! Cost of the crypto transform per datagram and side, under SROS 2's default
//! governance (messages signed; submessages and payloads encrypted) and others:
//! `cargo run --release -p pteros-security --example crypto_transform_cost`.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures time, and there is nobody to tell"
)]

use std::time::Instant;

use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_security::attributes::SecurityInfo;
use pteros_security::crypto::{KeyMaterial, TransformKind};
use pteros_security::crypto_transform::{CryptoTransform, OpenBuffers, SealedDatagrams};
use pteros_security::document::DocumentSource;
use pteros_security::governance::Governance;

const OURS: GuidPrefix = GuidPrefix([0x81; 12]);
const THEIRS: GuidPrefix = GuidPrefix([0x82; 12]);
const WRITER: EntityId = EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY);
const READER: EntityId = EntityId::new([0, 0, 2], EntityId::KIND_READER_NO_KEY);
/// Of one figure; the best is shown.
const ROUNDS: usize = 200;

fn governance(rtps: &str, metadata: &str, data: &str) -> Governance {
    let text = format!(
        "<dds><domain_access_rules><domain_rule><domains><id>0</id></domains>\
        <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
        <enable_join_access_control>true</enable_join_access_control>\
        <discovery_protection_kind>ENCRYPT</discovery_protection_kind>\
        <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\
        <rtps_protection_kind>{rtps}</rtps_protection_kind><topic_access_rules><topic_rule>\
        <topic_expression>*</topic_expression>\
        <enable_discovery_protection>true</enable_discovery_protection>\
        <enable_liveliness_protection>true</enable_liveliness_protection>\
        <enable_read_access_control>true</enable_read_access_control>\
        <enable_write_access_control>true</enable_write_access_control>\
        <metadata_protection_kind>{metadata}</metadata_protection_kind>\
        <data_protection_kind>{data}</data_protection_kind>\
        </topic_rule></topic_access_rules></domain_rule></domain_access_rules></dds>"
    );
    let source = DocumentSource {
        file: "governance.xml",
        text: &text,
        first_line: 1,
    };
    Governance::read(source).unwrap()
}

/// Two that know each other's keys.
fn pair(governance: &Governance) -> (CryptoTransform, CryptoTransform) {
    let rule = governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/image").unwrap());
    let (out, back) = (
        CryptoTransform::new(OURS, rule).unwrap(),
        CryptoTransform::new(THEIRS, rule).unwrap(),
    );
    out.add_endpoint(WRITER, info).unwrap();
    back.add_endpoint(READER, info).unwrap();
    let key_exchange = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    let vendor = VendorId::PTEROS;
    out.add_authenticated(THEIRS, vendor, key_exchange.clone())
        .unwrap();
    back.add_authenticated(OURS, vendor, key_exchange).unwrap();
    let keys = out.participant_keys(THEIRS);
    back.set_participant_keys(OURS, &keys).unwrap();
    let keys = out.endpoint_keys(WRITER, THEIRS.with(READER)).unwrap();
    back.set_endpoint_keys(READER, OURS.with(WRITER), &keys)
        .unwrap();
    (out, back)
}

/// A sample in the outbox's form: the bytes before its payload, and after it. Large
/// ones are fragments, small ones have a heartbeat in the same datagram.
fn around(bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut head = b"RTPS\x02\x03\x01\x50".to_vec();
    head.extend(OURS.0);
    head.extend([0x0e, 1, 12, 0]);
    head.extend(THEIRS.0);
    let is_fragment = bytes > 10_000;
    let (id, front) = if is_fragment { (0x16, 32) } else { (0x15, 20) };
    head.extend([id, if is_fragment { 1 } else { 5 }]);
    head.extend(u16::try_from(bytes + front).unwrap().to_le_bytes());
    head.extend([0, 0, u8::try_from(front - 4).unwrap(), 0]);
    head.extend(READER.to_bytes());
    head.extend(WRITER.to_bytes());
    head.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    let mut tail = Vec::new();
    if is_fragment {
        head.extend([1, 0, 0, 0, 1, 0]);
        head.extend(u16::try_from(bytes).unwrap().to_le_bytes());
        head.extend(4_000_000_u32.to_le_bytes());
    } else {
        tail.extend([0x07, 1, 28, 0]);
        tail.extend(READER.to_bytes());
        tail.extend(WRITER.to_bytes());
        tail.extend([0; 20]);
    }
    (head, tail)
}

/// Best of many: microseconds for one datagram, sealed and opened.
fn cost(governance: &Governance, bytes: usize) -> [f64; 2] {
    let (out, back) = pair(governance);
    let (head, tail) = around(bytes);
    let payload = vec![7; bytes];
    let mut workspace = OpenBuffers::default();
    let mut clean = vec![0; 65_536];
    let batch = if bytes > 10_000 { 1 } else { 50 };
    let mut sealed = vec![SealedDatagrams::default(); batch];
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for sealed in &mut sealed {
            out.seal(&[&head[..], &payload, &tail], sealed).unwrap();
        }
        let between = Instant::now();
        for sealed in &sealed {
            // A heartbeat that fits the frame no longer goes by itself.
            for datagram in sealed.datagrams() {
                assert!(back.open(datagram, &mut workspace, &mut clean).is_some());
            }
        }
        let took = [between - began, between.elapsed()];
        for (best, took) in best.iter_mut().zip(took) {
            *best = best.min(took.as_secs_f64() * 1e6 / batch as f64);
        }
    }
    best
}

fn main() {
    println!("best of {ROUNDS}, microseconds per datagram: bytes, seal, open");
    for (rtps, metadata, data) in [
        ("SIGN", "ENCRYPT", "ENCRYPT"),
        ("ENCRYPT", "ENCRYPT", "ENCRYPT"),
        ("SIGN", "NONE", "NONE"),
        ("NONE", "ENCRYPT", "NONE"),
        (
            "SIGN_WITH_ORIGIN_AUTHENTICATION",
            "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
            "ENCRYPT",
        ),
        ("NONE", "NONE", "NONE"),
    ] {
        println!("message {rtps}, submessage {metadata}, payload {data}");
        let governance = governance(rtps, metadata, data);
        for bytes in [64, 256, 1_024, 63_000] {
            let [seal, open] = cost(&governance, bytes);
            println!("  {bytes:>6}  {seal:>6.2}  {open:>6.2}");
        }
    }
}
