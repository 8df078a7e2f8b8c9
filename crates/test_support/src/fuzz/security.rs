//! Fuzz targets of `pteros-security`: keystore files, handshake tokens, keys and
//! ciphertext. Invariants: no panic, and no gain without a key. A modified message
//! is rejected, or decodes to the original content.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::Submessage;
use pteros_security::attributes::SecurityInfo;
use pteros_security::auth::{GenericMessage, HandshakeEvent, Handshakes, LocalIdentity};
use pteros_security::certificate::{Certificate, RevocationList};
use pteros_security::crypto::{
    Frame, KeyMaterial, Opener, ProtectionLayer, Sealer, TransformKind, key_exchange_material,
};
use pteros_security::crypto_transform::{CryptoTransform, OpenBuffers, SealedDatagrams};
use pteros_security::date::UnixTime;
use pteros_security::document::DocumentSource;
use pteros_security::enclave::Enclave;
use pteros_security::governance::Governance;
use pteros_security::key::PrivateKey;
use pteros_security::permissions::Permissions;
use pteros_security::permissions::access_control::{AccessControl, EndpointRequest};
use pteros_security::smime::SignedDocument;

/// 2030-01-01: all fixtures are valid then.
const NOW: UnixTime = UnixTime(1_893_456_000);

/// The fixtures of `crates/security`.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../security/tests/fixtures")
}

fn enclave() -> &'static Enclave {
    static ENCLAVE: OnceLock<Enclave> = OnceLock::new();
    ENCLAVE.get_or_init(load)
}

fn load() -> Enclave {
    Enclave::load(&fixtures().join("sros2/enclaves/talker"), NOW).expect("a good enclave")
}

fn source(text: &str) -> DocumentSource<'_> {
    DocumentSource {
        file: "fuzz",
        first_line: 1,
        text,
    }
}

/// A governance document: names of topics find one rule, and what it says
/// comes back from the wire as it went.
pub fn security_governance(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Governance::read(source(&text)) {
        Err(fault) => assert!(
            !fault.reason.is_empty() && !fault.remedy.is_empty(),
            "{fault}"
        ),
        Ok(governance) => {
            for rule in &governance.rules {
                let participant = SecurityInfo::of_participant(rule);
                assert_eq!(again(participant), participant);
                for topic in ["rt/chatter", "", "ros_discovery_info", &text] {
                    if let Some(found) = rule.topic(topic) {
                        let endpoint = SecurityInfo::of_endpoint(found);
                        assert_eq!(again(endpoint), endpoint);
                        assert!(rule.topics.iter().any(|own| own.line == found.line));
                    }
                }
            }
        }
    }
}

fn again(info: SecurityInfo) -> SecurityInfo {
    SecurityInfo::from_bytes(info.to_bytes(true), true)
}

/// A permissions document: every question has an answer that names the rule.
pub fn security_permissions(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let permissions = match Permissions::read(source(&text)) {
        Ok(permissions) => permissions,
        Err(fault) => {
            assert!(
                !fault.reason.is_empty() && !fault.remedy.is_empty(),
                "{fault}"
            );
            return;
        }
    };
    for grant in &permissions.grants {
        let subject = &grant.subject;
        let Ok(access) = AccessControl::new(&enclave().governance, &permissions, subject, 0) else {
            continue;
        };
        let now = grant.validity.not_before;
        for (topic, partitions) in [("rt/chatter", &[][..]), ("rt/a*", &["", "b?"][..])] {
            let endpoint = EndpointRequest {
                topic,
                partitions,
                tags: &[],
            };
            let decisions = [
                access.may_join(now),
                access.may_write(&endpoint, now),
                access.may_read(&endpoint, now),
                access.may_relay(&endpoint, now),
            ];
            for decision in decisions {
                assert!(
                    decision.line >= 1 && !decision.rule.is_empty(),
                    "{decision}"
                );
            }
        }
    }
}

/// A signed document: whatever passes says what the authority signed.
pub fn security_smime(data: &[u8]) {
    static SIGNED: OnceLock<Vec<String>> = OnceLock::new();
    let authority = &enclave().permissions_authority;
    let signed = SIGNED.get_or_init(|| {
        let enclaves = fixtures().join("sros2/enclaves");
        let files = [
            "governance.p7s",
            "governance.python.p7s",
            "talker/permissions.p7s",
        ];
        let read = |file: &str| {
            let bytes = std::fs::read(enclaves.join(file)).expect("a fixture");
            let document = SignedDocument::read(file, &bytes, authority, NOW);
            document.expect("a good fixture").source(file).text.into()
        };
        files.map(read).into()
    });
    match SignedDocument::read("fuzz", data, authority, NOW) {
        Err(fault) => assert!(
            !fault.reason.is_empty() && !fault.remedy.is_empty(),
            "{fault}"
        ),
        Ok(document) => {
            let text = document.source("fuzz").text;
            assert!(signed.iter().any(|one| one == text), "forged: {text}");
        }
    }
}

/// A certificate, a revocation list and a private key, as text or as DER: who
/// is believed to be issued by our authority is who it issued.
pub fn security_certificate(data: &[u8]) {
    let own = enclave();
    let authority = &own.identity_authority.certificate;
    let certificates = Certificate::from_pem("fuzz", data).unwrap_or_default();
    for certificate in certificates.iter().chain(&Certificate::from_der(data).ok()) {
        let _ = (
            certificate.serial(),
            certificate.may_issue(),
            certificate.to_pem(),
        );
        let again = Certificate::from_der(certificate.der()).expect("read before");
        assert_eq!(again.subject(), certificate.subject());
        if certificate.is_signed_by(authority).is_ok() {
            let known = [authority.subject(), own.identity.chain[0].subject()];
            assert!(known.contains(&certificate.subject()), "forged");
        }
    }
    if let Ok(list) = RevocationList::from_pem("fuzz", data, authority) {
        let _ = (list.is_outdated(NOW), list.revoked(&own.identity.chain[0]));
    }
    if let Ok(key) = PrivateKey::from_pem("fuzz", data) {
        let _ = key.public_key();
    }
}

/// A message of the stateless or the volatile topic, and keys in it.
pub fn security_message(data: &[u8]) {
    if let Some(message) = GenericMessage::from_payload(data) {
        let again = GenericMessage::from_payload(&message.to_payload());
        assert_eq!(again.as_ref(), Some(&message));
        for (_, value) in message.data.iter().flat_map(|token| &token.binary) {
            keys(value);
        }
    }
    keys(data);
}

fn keys(bytes: &[u8]) {
    if let Ok(material) = KeyMaterial::from_bytes(bytes) {
        let again = KeyMaterial::from_bytes(&material.to_bytes()).expect("written by us");
        assert_eq!(again, material);
    }
}

/// A frame around a payload, a submessage or a message, by the first byte, and
/// a kind of keys: what opens is what was sealed.
pub fn security_frame(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let layer = [
        ProtectionLayer::Payload,
        ProtectionLayer::Submessage,
        ProtectionLayer::Message,
    ][usize::from(choice % 3)];
    let frame = match layer {
        ProtectionLayer::Payload => Frame::of_payload(bytes).ok(),
        ProtectionLayer::Submessage => Frame::of_submessage(bytes).ok().map(|(frame, _)| frame),
        ProtectionLayer::Message => Frame::of_message(bytes).ok(),
    };
    let mut opener = Opener::new(material(choice / 3), false);
    let mut buffer = Vec::new();
    let opened = frame.and_then(|frame| {
        opener
            .open(&frame, &mut buffer)
            .ok()
            .map(|o| o.bytes().to_vec())
    });
    assert!(opened.is_none_or(|content| content == SEALED), "forged");
}

/// Seeds of [`security_frame`]: the same content in every layer and by every
/// kind of keys.
pub fn sealed() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for choice in 0..12 {
        let mut bytes = vec![choice];
        let layer = [
            ProtectionLayer::Payload,
            ProtectionLayer::Submessage,
            ProtectionLayer::Message,
        ][usize::from(choice % 3)];
        let mut sealer = Sealer::new(material(choice / 3)).expect("randomness");
        let sealed = sealer.seal(layer, &SEALED, [], &mut bytes);
        sealed.expect("what fits");
        all.push(bytes);
    }
    all
}

/// Keys that are the same in every run.
fn material(kind: u8) -> KeyMaterial {
    let kinds = [
        TransformKind::Aes128Gmac,
        TransformKind::Aes128Gcm,
        TransformKind::Aes256Gmac,
        TransformKind::Aes256Gcm,
    ];
    let mut material = key_exchange_material(&[1; 32], &[2; 32], &[3; 32]);
    material.kind = kinds[usize::from(kind % 4)];
    material
}

/// A DATA-like submessage with 12 bytes, little-endian.
const SEALED: [u8; 16] = [0x15, 1, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

/// A handshake into which somebody says one thing more, in a party's name: the
/// message that the first byte chooses, bent as the others say. The honest ones
/// authenticate each other all the same, and to the same secret.
pub fn security_handshake(data: &[u8]) {
    let Some((stage, script)) = data.split_first() else {
        return;
    };
    thread_local! {
        static PARTIES: RefCell<[Handshakes; 2]> = RefCell::new(parties());
    }
    PARTIES.with_borrow_mut(|parties| play(parties, usize::from(*stage) % MESSAGES, script));
}

/// Both of the one enclave, the initiator first.
fn parties() -> [Handshakes; 2] {
    let mut both = [1, 2].map(|candidate| {
        let enclave = load();
        let prefix =
            LocalIdentity::prefix_for(&enclave, GuidPrefix([candidate; 12])).expect("a prefix");
        let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
        Handshakes::new(LocalIdentity {
            participant_data: [&[0x00, 0x50, 0, 16], &guid[..], &[0, 1, 0, 0]].concat(),
            enclave,
            prefix,
        })
    });
    both.sort_by_key(|party| party.local_identity().prefix);
    both
}

fn play(parties: &mut [Handshakes; 2], stage: usize, script: &[u8]) {
    let mut now = Instant::from_nanos(1);
    let prefixes = [0, 1].map(|at| parties[at].local_identity().prefix);
    for at in [0, 1] {
        parties[at].remove_peer(prefixes[1 - at]);
        let begun = parties[at].handle_discovered(prefixes[1 - at], true, now);
        begun.expect("one handshake");
    }
    let mut keys = [None, None];
    let mut count = 0;
    // Long enough for what is sent again, if a forgery came between.
    for _ in 0..30 {
        for at in [0, 1] {
            while let Some((_, message)) = parties[at].poll_transmit() {
                let honest = message.to_payload();
                if count == stage {
                    let mut forged = honest.clone();
                    bend(&mut forged, script);
                    deliver(&mut parties[1 - at], &forged, now);
                }
                deliver(&mut parties[1 - at], &honest, now);
                count += 1;
            }
            while let Some(event) = parties[at].poll_event() {
                match event {
                    HandshakeEvent::Authenticated { secret, .. } => {
                        assert!(keys[at].is_none(), "authenticated twice");
                        keys[at] = Some(secret.key_exchange_material());
                    }
                    HandshakeEvent::Failed { rejection, .. } => {
                        panic!("an honest handshake failed: {rejection}")
                    }
                }
            }
        }
        if keys.iter().all(Option::is_some) {
            break;
        }
        now = now + Duration::from_millis(250);
        parties
            .iter_mut()
            .for_each(|party| party.handle_timeout(now));
    }
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
}

fn deliver(to: &mut Handshakes, payload: &[u8], now: Instant) {
    if let Some(message) = GenericMessage::from_payload(payload) {
        to.handle_message(message, now, NOW);
    }
}

/// Four bytes a change: where (two), what, and how.
fn bend(payload: &mut Vec<u8>, script: &[u8]) {
    for change in script.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let at = at % payload.len().max(1);
        match change[3] % 4 {
            0 if !payload.is_empty() => payload[at] ^= change[2],
            1 => payload.truncate(at),
            2 => payload.insert(at.min(payload.len()), change[2]),
            _ if !payload.is_empty() => {
                payload.remove(at);
            }
            _ => {}
        }
    }
}

/// AuthReq and Req, AuthReq, Reply, Final.
const MESSAGES: usize = 5;

/// A datagram that comes to a crypto transform, under the governance that the first byte
/// chooses: by the second one, what a peer said with changes, or anything in the
/// name of a peer or of an unknown sender. Of a protected topic nothing gets through but
/// what the peer said, and what it says itself gets through afterwards.
pub fn security_crypto_transform(data: &[u8]) {
    let [kind, way, script @ ..] = data else {
        return;
    };
    thread_local! {
        static STAGES: RefCell<BTreeMap<u8, Stage>> = RefCell::default();
    }
    STAGES.with_borrow_mut(|stages| {
        let stage = stages
            .entry(kind % 27)
            .or_insert_with_key(|kind| Stage::new(*kind));
        stage.play(*way, script);
    });
}

/// Alice writes, Bob reads; both have each other's keys.
struct Stage {
    alice: CryptoTransform,
    bob: CryptoTransform,
    /// Some layer protects the payload.
    is_protected: bool,
    sealed: SealedDatagrams,
    workspace: OpenBuffers,
    clean: Vec<u8>,
}

impl Stage {
    fn new(kind: u8) -> Self {
        let kinds = ["NONE", "SIGN", "ENCRYPT"];
        let [message, submessage, payload] =
            [kind / 9, kind / 3 % 3, kind % 3].map(|at| kinds[usize::from(at)]);
        let text = format!(
            "<dds><domain_access_rules><domain_rule><domains><id>0</id></domains>\
             <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
             <enable_join_access_control>true</enable_join_access_control>\
             <discovery_protection_kind>ENCRYPT</discovery_protection_kind>\
             <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\
             <rtps_protection_kind>{message}</rtps_protection_kind>\
             <topic_access_rules><topic_rule><topic_expression>*</topic_expression>\
             <enable_discovery_protection>true</enable_discovery_protection>\
             <enable_liveliness_protection>true</enable_liveliness_protection>\
             <enable_read_access_control>true</enable_read_access_control>\
             <enable_write_access_control>true</enable_write_access_control>\
             <metadata_protection_kind>{submessage}</metadata_protection_kind>\
             <data_protection_kind>{payload}</data_protection_kind>\
             </topic_rule></topic_access_rules></domain_rule></domain_access_rules></dds>"
        );
        let governance = Governance::read(source(&text)).expect("good governance");
        let rule = governance.rule(0).expect("a rule");
        let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").expect("a rule"));
        let transform = |own| CryptoTransform::new(own, rule).expect("randomness");
        let (alice, bob) = (transform(ALICE), transform(BOB));
        let kx = key_exchange_material(&[1; 32], &[2; 32], &[3; 32]);
        alice.add_endpoint(WRITER, info).expect("randomness");
        bob.add_endpoint(READER, info).expect("randomness");
        for (one, peer) in [(&alice, BOB), (&bob, ALICE)] {
            let known = one.add_authenticated(peer, VendorId::PTEROS, kx.clone());
            known.expect("randomness");
        }
        assert!(
            alice.match_endpoints(WRITER, BOB.with(READER))
                && bob.match_endpoints(READER, ALICE.with(WRITER))
        );
        let keys = alice.participant_keys(BOB);
        bob.set_participant_keys(ALICE, &keys).expect("its keys");
        let keys = alice.endpoint_keys(WRITER, BOB.with(READER)).expect("keys");
        bob.set_endpoint_keys(READER, ALICE.with(WRITER), &keys)
            .expect("its keys");
        Self {
            alice,
            bob,
            is_protected: kind != 0,
            sealed: SealedDatagrams::default(),
            workspace: OpenBuffers::default(),
            clean: vec![0; 65_536],
        }
    }

    fn play(&mut self, way: u8, script: &[u8]) {
        let sealed = self.alice.seal(&[&submessage()[..]], &mut self.sealed);
        sealed.expect("all keys are there");
        let honest = self.sealed.datagrams().next().expect("one").to_vec();
        let header = |from: GuidPrefix| [b"RTPS\x02\x03\x01\x50", &from.0[..]].concat();
        let datagram = match way % 4 {
            0 | 1 => {
                let mut bent = honest.clone();
                bend(&mut bent, script);
                bent
            }
            2 => [&header(ALICE)[..], script].concat(),
            _ => [&header(GuidPrefix([7; 12]))[..], script].concat(),
        };
        let opened = self.open(&datagram);
        if !opened {
            assert!(self.open(&honest), "what is honest does not come through");
        }
        let _ = self.bob.take_drops();
    }

    /// Whether something of a datagram came through. Nothing forged does.
    fn open(&mut self, datagram: &[u8]) -> bool {
        let (bob, workspace, clean) = (&self.bob, &mut self.workspace, &mut self.clean);
        let Some(length) = bob.open(datagram, workspace, clean) else {
            return false;
        };
        assert!(length <= datagram.len());
        let Ok(message) = MessageReader::new(&clean[..length], BOB) else {
            // Of another version of the protocol: whoever reads it says so.
            return true;
        };
        for (_, submessage) in message {
            if let Submessage::Data(data) = submessage
                && data.writer == WRITER
                && self.is_protected
                && !data.payload.is_empty()
            {
                assert_eq!(data.payload, SAID, "forged");
            }
        }
        true
    }
}

/// To Bob: one sample of Alice's writer.
fn submessage() -> Vec<u8> {
    let mut bytes = [b"RTPS\x02\x03\x01\x50", &ALICE.0[..]].concat();
    bytes.extend([&[0x0e, 1, 12, 0], &BOB.0[..]].concat());
    let body = [
        &[0, 0, 16, 0][..],
        &READER.to_bytes(),
        &WRITER.to_bytes(),
        &[0, 0, 0, 0, 1, 0, 0, 0],
        &SAID,
    ]
    .concat();
    bytes.extend([0x15, 5, body.len() as u8, 0]);
    bytes.extend(body);
    bytes
}

const ALICE: GuidPrefix = GuidPrefix([0x8a; 12]);
const BOB: GuidPrefix = GuidPrefix([0x8b; 12]);
const WRITER: EntityId = EntityId::new([0, 0, 0x10], EntityId::KIND_WRITER_NO_KEY);
const READER: EntityId = EntityId::new([0, 0, 0x11], EntityId::KIND_READER_NO_KEY);
const SAID: [u8; 16] = *b"\0\x01\0\0from Alice..";
