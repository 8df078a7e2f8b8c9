//! What the shield costs per datagram and side, alone, under the governance that
//! SROS 2 ships (messages signed; submessages and payloads encrypted) and others:
//! `cargo run --release -p pteros-security --example shield_cost`.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures time, and there is nobody to tell"
)]

use std::time::Instant;

use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_security::attributes::SecurityInfo;
use pteros_security::crypto::{KeyMaterial, TransformKind};
use pteros_security::document::Source;
use pteros_security::governance::Governance;
use pteros_security::shield::{Sealed, Shield, Workspace};

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
    let source = Source {
        file: "governance.xml",
        text: &text,
        first_line: 1,
    };
    Governance::read(source).unwrap()
}

/// Two that know each other's keys.
fn pair(governance: &Governance) -> (Shield, Shield) {
    let rule = governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/image").unwrap());
    let (out, back) = (
        Shield::new(OURS, rule).unwrap(),
        Shield::new(THEIRS, rule).unwrap(),
    );
    out.add_endpoint(WRITER, info).unwrap();
    back.add_endpoint(READER, info).unwrap();
    let kx = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    let vendor = VendorId::PTEROS;
    out.authenticated(THEIRS, vendor, kx.clone()).unwrap();
    back.authenticated(OURS, vendor, kx).unwrap();
    let keys = out.participant_keys(THEIRS);
    back.set_participant_keys(OURS, &keys).unwrap();
    let keys = out.endpoint_keys(WRITER, THEIRS.with(READER)).unwrap();
    back.set_endpoint_keys(READER, OURS.with(WRITER), &keys)
        .unwrap();
    (out, back)
}

/// A DATA_FRAG as the outbox has it: head, and the payload by reference.
fn head(bytes: usize) -> Vec<u8> {
    let mut head = b"RTPS\x02\x03\x01\x50".to_vec();
    head.extend(OURS.0);
    head.extend([0x0e, 1, 12, 0]);
    head.extend(THEIRS.0);
    head.extend([0x16, 1]);
    head.extend(u16::try_from(bytes + 32).unwrap().to_le_bytes());
    head.extend([0, 0, 28, 0]);
    head.extend(READER.to_bytes());
    head.extend(WRITER.to_bytes());
    head.extend([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
    head.extend(u16::try_from(bytes).unwrap().to_le_bytes());
    head.extend(4_000_000_u32.to_le_bytes());
    head
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
            let (out, back) = pair(&governance);
            let (head, payload) = (head(bytes), vec![7; bytes]);
            let mut sealed = Sealed::default();
            let mut workspace = Workspace::default();
            let mut clean = vec![0; 65_536];
            let mut best = [f64::MAX; 2];
            for _ in 0..ROUNDS {
                let began = Instant::now();
                out.seal(&[&head[..], &payload], &mut sealed).unwrap();
                let between = Instant::now();
                let datagram = sealed.datagrams().next().unwrap();
                let opened = back.open(datagram, &mut workspace, &mut clean);
                let took = [between - began, between.elapsed()];
                assert_eq!(opened, Some(head.len() + bytes));
                for (best, took) in best.iter_mut().zip(took) {
                    *best = best.min(took.as_secs_f64() * 1e6);
                }
            }
            let [seal, open] = best;
            println!("  {bytes:>6}  {seal:>6.2}  {open:>6.2}");
        }
    }
}
