//! Two participants' crypto transforms, back to back: one opens what the other
//! seals, and rejects everything that is protected less.

use crate::support;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_security::attributes::SecurityInfo;
use pteros_security::crypto::{KeyMaterial, ReceiverKey, TransformKind};
use pteros_security::crypto_transform::{
    CryptoTransform, DropReason, OpenBuffers, SealedDatagrams, TransformError,
};
use pteros_security::document::DocumentSource;
use pteros_security::governance::Governance;

const ALICE: GuidPrefix = GuidPrefix([0x8a; 12]);
const BOB: GuidPrefix = GuidPrefix([0x8b; 12]);
const MALLORY: GuidPrefix = GuidPrefix([0x66; 12]);
const WRITER: EntityId = EntityId::new([0, 0, 0x10], EntityId::KIND_WRITER_NO_KEY);
const READER: EntityId = EntityId::new([0, 0, 0x11], EntityId::KIND_READER_NO_KEY);
const KINDS: [&str; 5] = [
    "NONE",
    "SIGN",
    "ENCRYPT",
    "SIGN_WITH_ORIGIN_AUTHENTICATION",
    "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
];

struct World {
    governance: Governance,
    alice: CryptoTransform,
    bob: CryptoTransform,
}

impl World {
    /// Not authenticated yet.
    fn new(rtps: &str, discovery: &str, metadata: &str, data: &str) -> Self {
        let text = format!(
            r#"<dds><domain_access_rules><domain_rule>
                <domains><id>0</id></domains>
                <allow_unauthenticated_participants>true</allow_unauthenticated_participants>
                <enable_join_access_control>true</enable_join_access_control>
                <discovery_protection_kind>{discovery}</discovery_protection_kind>
                <liveliness_protection_kind>NONE</liveliness_protection_kind>
                <rtps_protection_kind>{rtps}</rtps_protection_kind>
                <topic_access_rules><topic_rule>
                    <topic_expression>*</topic_expression>
                    <enable_discovery_protection>true</enable_discovery_protection>
                    <enable_liveliness_protection>false</enable_liveliness_protection>
                    <enable_read_access_control>true</enable_read_access_control>
                    <enable_write_access_control>true</enable_write_access_control>
                    <metadata_protection_kind>{metadata}</metadata_protection_kind>
                    <data_protection_kind>{data}</data_protection_kind>
                </topic_rule></topic_access_rules>
            </domain_rule></domain_access_rules></dds>"#
        );
        let source = DocumentSource {
            file: "governance.xml",
            text: &text,
            first_line: 1,
        };
        let governance = Governance::read(source).unwrap();
        let rule = governance.rule(0).unwrap();
        let alice = CryptoTransform::new(ALICE, rule).unwrap();
        let bob = CryptoTransform::new(BOB, rule).unwrap();
        let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
        alice.add_endpoint(WRITER, info).unwrap();
        bob.add_endpoint(READER, info).unwrap();
        Self {
            governance,
            alice,
            bob,
        }
    }

    /// Both have authenticated, without keys.
    fn met(self) -> Self {
        let key_exchange = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
        let mut bytes = key_exchange.to_bytes();
        // Keys for keys have no name of their own.
        bytes[40..44].fill(0);
        let key_exchange = KeyMaterial::from_bytes(&bytes).unwrap();
        let ours = VendorId::PTEROS;
        self.alice
            .add_authenticated(BOB, ours, key_exchange.clone())
            .unwrap();
        self.bob
            .add_authenticated(ALICE, ours, key_exchange)
            .unwrap();
        self
    }

    /// And have exchanged all keys.
    fn matched(self) -> Self {
        let world = self.met();
        let (alice, bob) = (&world.alice, &world.bob);
        bob.set_participant_keys(ALICE, &alice.participant_keys(BOB))
            .unwrap();
        alice
            .set_participant_keys(BOB, &bob.participant_keys(ALICE))
            .unwrap();
        world.pair(WRITER, READER);
        world
    }

    /// Keys of Alice's endpoint and Bob's for each other.
    fn pair(&self, ours: EntityId, theirs: EntityId) {
        let (alice, bob) = (&self.alice, &self.bob);
        let keys = alice.endpoint_keys(ours, BOB.with(theirs)).unwrap();
        bob.set_endpoint_keys(theirs, ALICE.with(ours), &keys)
            .unwrap();
        let keys = bob.endpoint_keys(theirs, ALICE.with(ours)).unwrap();
        alice
            .set_endpoint_keys(ours, BOB.with(theirs), &keys)
            .unwrap();
    }
}

fn all_kinds(mut story: impl FnMut(&str, &str, &str)) {
    for rtps in KINDS {
        for metadata in KINDS {
            for data in ["NONE", "SIGN", "ENCRYPT"] {
                story(rtps, metadata, data);
            }
        }
    }
}

fn message(from: GuidPrefix, submessages: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"RTPS\x02\x03\x01\x50".to_vec();
    bytes.extend(from.0);
    bytes.extend(submessages.concat());
    bytes
}

fn submessage(id: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id, flags];
    bytes.extend(u16::try_from(body.len()).unwrap().to_le_bytes());
    bytes.extend(body);
    bytes
}

fn to(prefix: GuidPrefix) -> Vec<u8> {
    submessage(0x0e, 1, &prefix.0)
}

fn data(writer: EntityId, reader: EntityId, payload: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 16, 0];
    body.extend(reader.to_bytes());
    body.extend(writer.to_bytes());
    body.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    body.extend(payload);
    submessage(0x15, 5, &body)
}

/// With inline QoS before the payload.
fn fragment(writer: EntityId, payload: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 28, 0];
    body.extend(EntityId::UNKNOWN.to_bytes());
    body.extend(writer.to_bytes());
    body.extend([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
    body.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
    body.extend(9000_u32.to_le_bytes());
    body.extend([0x71, 0, 4, 0, 0, 0, 0, 2, 1, 0, 0, 0]);
    body.extend(payload);
    submessage(0x16, 3, &body)
}

fn heartbeat(writer: EntityId, reader: EntityId) -> Vec<u8> {
    let mut body = reader.to_bytes().to_vec();
    body.extend(writer.to_bytes());
    body.extend([0; 20]);
    submessage(0x07, 1, &body)
}

fn acknack(reader: EntityId, writer: EntityId) -> Vec<u8> {
    let mut body = reader.to_bytes().to_vec();
    body.extend(writer.to_bytes());
    body.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    submessage(0x06, 1, &body)
}

fn try_seal(transform: &CryptoTransform, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>, TransformError> {
    let mut sealed = SealedDatagrams::default();
    let outcome = transform.seal(parts, &mut sealed);
    let datagrams: Vec<_> = sealed.datagrams().map(<[u8]>::to_vec).collect();
    assert!(outcome.is_ok() || datagrams.is_empty());
    outcome.map(|()| datagrams)
}

fn seal(transform: &CryptoTransform, plain: &[u8]) -> Vec<u8> {
    let mut sealed = try_seal(transform, &[plain]).unwrap();
    assert_eq!(sealed.len(), 1);
    sealed.remove(0)
}

fn open(transform: &CryptoTransform, sealed: &[u8]) -> Option<Vec<u8>> {
    let mut clean = vec![0xee; 65_536];
    let length = transform.open(sealed, &mut OpenBuffers::default(), &mut clean)?;
    clean.truncate(length);
    Some(clean)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

const SECRET: &[u8] = b"\0\x01\0\0never to be read by anybody.....";

/// Submessages of all kinds, both with large and with small payloads.
fn plain() -> Vec<u8> {
    let large: Vec<u8> = SECRET.iter().copied().cycle().take(9000).collect();
    let parts = [
        to(BOB),
        submessage(0x09, 1, &[1; 8]),
        data(WRITER, READER, SECRET),
        data(WRITER, EntityId::UNKNOWN, &large),
        fragment(WRITER, &large[..4000]),
        heartbeat(WRITER, READER),
    ];
    message(ALICE, &parts.each_ref().map(Vec::as_slice))
}

#[test]
fn sealed_datagrams_open_under_every_governance() {
    all_kinds(|rtps, metadata, data| {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        let named = format!("{rtps} {metadata} {data}");
        assert!(
            world.bob.has_keys_for(READER, ALICE.with(WRITER)),
            "{named}"
        );
        assert!(
            world.alice.has_keys_for(WRITER, BOB.with(READER)),
            "{named}"
        );
        let plain = plain();
        let sealed = seal(&world.alice, &plain);
        let grown = 4 * (world.alice.overhead_bytes() + 20 * 2);
        assert!(sealed.len() <= plain.len() + grown, "{named}");
        let hides = [rtps, metadata, data]
            .iter()
            .any(|kind| kind.starts_with("ENC"));
        assert_eq!(contains(&sealed, SECRET), !hides, "{named}");
        assert!(open(&world.bob, &sealed) == Some(plain), "{named}");
        let answer = message(BOB, &[&to(ALICE), &acknack(READER, WRITER)]);
        let sealed = seal(&world.bob, &answer);
        assert_eq!(open(&world.alice, &sealed), Some(answer), "{named}");
        assert_eq!(world.bob.take_drops(), []);
    });
}

#[test]
fn a_datagram_in_parts_is_sealed_as_a_contiguous_one() {
    let world = World::new("SIGN", "ENCRYPT", "ENCRYPT", "ENCRYPT").matched();
    let large = vec![7; 5003];
    let mut whole = message(ALICE, &[&to(BOB), &data(WRITER, READER, &large)]);
    // Padding is the outbox's, and counted.
    let length = whole.len() - 20 - 16 - 4 + 1;
    whole[38..40].copy_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
    let split = whole.len() - large.len();
    whole.push(0);
    let tail = [&[0], &heartbeat(WRITER, READER)[..]].concat();
    let parts = [&whole[..split], &[], &large, &tail];
    let sealed = try_seal(&world.alice, &parts).unwrap().concat();
    whole.extend(heartbeat(WRITER, READER));
    assert!(open(&world.bob, &sealed) == Some(whole));
}

#[test]
fn changed_or_truncated_datagrams_are_rejected() {
    all_kinds(|rtps, metadata, data| {
        if [rtps, metadata, data] == ["NONE"; 3] {
            return;
        }
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        let plain = message(
            ALICE,
            &[
                &to(BOB),
                &self::data(WRITER, READER, SECRET),
                &heartbeat(WRITER, READER),
            ],
        );
        let sealed = seal(&world.alice, &plain);
        let is_secret = |clean: &[u8]| contains(clean, SECRET);
        for bit in 0..sealed.len() * 8 {
            let mut bent = sealed.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            let Some(clean) = open(&world.bob, &bent) else {
                continue;
            };
            // Flags, padding and receiver-specific MACs are not protected, nor are
            // the bytes beside a payload if only that is protected. Protected bytes
            // are unchanged.
            let begins = clean.windows(5).any(|part| part == &SECRET[4..9]);
            let endpoint_ids = clean
                .windows(5)
                .any(|part| part == &SECRET[SECRET.len() - 5..]);
            assert!(
                is_secret(&clean) || !(begins || endpoint_ids),
                "{rtps} {metadata} {data} {bit}"
            );
        }
        for length in 0..sealed.len() {
            if let Some(clean) = open(&world.bob, &sealed[..length]) {
                assert!(rtps == "NONE", "{rtps} {metadata} {data} {length}");
                assert!(plain.starts_with(&clean[..20]));
            }
        }
    });
}

#[test]
fn data_with_too_little_protection_is_dropped() {
    all_kinds(|rtps, metadata, data| {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        // The same keys in the hands of one who protects less: the plain form.
        let plain = plain();
        let clean = open(&world.bob, &plain);
        if [rtps, metadata, data] == ["NONE"; 3] {
            assert_eq!(clean, Some(plain))
        } else {
            assert!(clean.is_none_or(|clean| !contains(&clean, SECRET)))
        }
        for entity in [[0, 0, 3], [0, 2, 0], [0xff, 0, 3], [0xff, 2, 2]] {
            let beat = heartbeat(EntityId::new(entity, 0xc2), EntityId::UNKNOWN);
            let clean = open(&world.bob, &message(ALICE, &[&beat]));
            let is_open = entity[0] == 0 && rtps == "NONE";
            assert_eq!(clean.is_some(), is_open, "{rtps} {entity:?}");
        }
    });
}

#[test]
fn an_unauthenticated_participant_may_only_announce_and_shake_hands() {
    for rtps in ["NONE", "SIGN"] {
        let world = World::new(rtps, "ENCRYPT", "NONE", "NONE");
        let early = [EntityId::SPDP_WRITER, EntityId::new([0, 2, 1], 0xc3)];
        for entity in early {
            let hello = message(ALICE, &[&data(entity, EntityId::UNKNOWN, SECRET)]);
            assert_eq!(open(&world.bob, &hello), Some(hello.clone()));
            assert_eq!(seal(&world.alice, &hello), hello);
        }
        let others = [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::WLP_WRITER,
            EntityId::new([0xff, 0, 3], 0xc2),
            EntityId::new([0xff, 2, 2], 0xc3),
            WRITER,
        ];
        for entity in others {
            let more = message(ALICE, &[&data(entity, EntityId::UNKNOWN, SECRET)]);
            assert_eq!(open(&world.bob, &more), None, "{entity:?}");
        }
        // An announcement's entity must not send to another participant's
        // endpoints.
        let odd = message(ALICE, &[&data(EntityId::SPDP_WRITER, READER, SECRET)]);
        assert_eq!(open(&world.bob, &odd), None);
        // A participant without identity is accepted where the governance allows
        // it, only for unprotected data.
        world.bob.add_unauthenticated(ALICE).unwrap();
        let sedp = message(
            ALICE,
            &[&data(
                EntityId::SEDP_PUBLICATIONS_WRITER,
                EntityId::UNKNOWN,
                SECRET,
            )],
        );
        assert_eq!(open(&world.bob, &sedp).is_some(), rtps == "NONE");
        assert!(world.bob.match_endpoints(READER, ALICE.with(WRITER)));
        let user = message(ALICE, &[&data(WRITER, READER, SECRET)]);
        assert_eq!(open(&world.bob, &user).is_some(), rtps == "NONE");
        let refused = world.bob.set_endpoint_keys(READER, ALICE.with(WRITER), &[]);
        assert!(refused.is_err());
    }
    let world = World::new("NONE", "NONE", "SIGN", "NONE");
    world.bob.add_unauthenticated(ALICE).unwrap();
    assert!(!world.bob.match_endpoints(READER, ALICE.with(WRITER)));
    // Nor is there a match of what is unknown here.
    let world = World::new("NONE", "NONE", "NONE", "NONE");
    assert!(!world.bob.match_endpoints(READER, ALICE.with(WRITER)));
    world.bob.add_unauthenticated(ALICE).unwrap();
    assert!(!world.bob.match_endpoints(WRITER, ALICE.with(WRITER)));
    assert!(world.bob.match_endpoints(READER, ALICE.with(WRITER)));
}

#[test]
fn keys_go_with_the_endpoint_that_received_them() {
    let world = World::new("NONE", "NONE", "ENCRYPT", "NONE").matched();
    let other = EntityId::new([0, 0, 0x21], EntityId::KIND_READER_NO_KEY);
    let rule = world.governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
    world.bob.add_endpoint(other, info).unwrap();
    world.pair(WRITER, other);
    let has_keys = |reader| world.bob.has_keys_for(reader, ALICE.with(WRITER));
    assert!(has_keys(READER) && has_keys(other));
    world.bob.remove_endpoint(READER);
    assert!(!has_keys(READER) && has_keys(other));
    // A later one of the same id receives its own.
    world.bob.add_endpoint(READER, info).unwrap();
    assert!(!has_keys(READER));
    world.pair(WRITER, READER);
    assert!(has_keys(READER));
}

#[test]
fn secured_channels_without_governance_protection_are_sent_unprotected() {
    for rtps in ["NONE", "SIGN"] {
        let world = World::new(rtps, "NONE", "ENCRYPT", "NONE");
        let writer = EntityId::new([0xff, 0, 3], 0xc2);
        let plain = message(ALICE, &[&data(writer, EntityId::UNKNOWN, SECRET)]);
        assert_eq!(open(&world.bob, &plain), None);
        let world = world.matched();
        assert_eq!(open(&world.bob, &plain).is_some(), rtps == "NONE");
        assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), Some(plain));
        assert!(
            world
                .bob
                .has_keys_for(EntityId::new([0xff, 0, 3], 0xc7), ALICE.with(writer))
        );
    }
}

#[test]
fn cyclones_unprotected_heartbeats_beside_a_protected_channel_are_dropped_silently() {
    let world = World::new("SIGN", "ENCRYPT", "NONE", "NONE");
    let key_exchange = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    world
        .bob
        .add_authenticated(ALICE, VendorId::CYCLONE, key_exchange)
        .unwrap();
    let beat = message(
        ALICE,
        &[&heartbeat(EntityId::WLP_WRITER, EntityId::UNKNOWN)],
    );
    assert_eq!(open(&world.bob, &beat), None);
    assert_eq!(
        world.bob.take_drops(),
        [(ALICE, DropReason::UnprotectedBuiltin)]
    );
    assert!(
        !DropReason::UnprotectedBuiltin.is_suspicious() && DropReason::Unprotected.is_suspicious()
    );
}

#[test]
fn keys_are_sent_sealed_for_one_participant_before_other_data() {
    let exchange = EntityId::new([0xff, 2, 2], 0xc3);
    let reader = EntityId::new([0xff, 2, 2], 0xc4);
    let keys = message(ALICE, &[&to(BOB), &data(exchange, reader, SECRET)]);
    let world = World::new("ENCRYPT", "ENCRYPT", "ENCRYPT", "ENCRYPT");
    assert_eq!(
        try_seal(&world.alice, &[&keys]),
        Err(TransformError::Unauthenticated(BOB))
    );
    let world = world.met();
    let sealed = seal(&world.alice, &keys);
    assert!(!contains(&sealed, SECRET));
    assert_eq!(open(&world.bob, &sealed).as_ref(), Some(&keys));
    // No window holds them against replays, for one key serves both endpoints of
    // a peer; the reliable reader beyond has had their numbers.
    assert_eq!(open(&world.bob, &sealed), Some(keys));
    let answer = message(BOB, &[&to(ALICE), &acknack(reader, exchange)]);
    assert_eq!(open(&world.alice, &seal(&world.bob, &answer)), Some(answer));
    let nobody = message(ALICE, &[&data(exchange, reader, SECRET)]);
    assert_eq!(
        try_seal(&world.alice, &[&nobody]),
        Err(TransformError::NoDestination)
    );
    // With the keys for keys nothing else comes in.
    let sealed = seal(
        &world.alice,
        &message(ALICE, &[&to(BOB), &heartbeat(exchange, reader)]),
    );
    assert!(open(&world.bob, &sealed).is_some());
    // Data for other participants is skipped without a drop.
    let elsewhere = message(ALICE, &[&to(MALLORY), &sealed[36..]]);
    assert_eq!(open(&world.bob, &elsewhere), None);
    assert_eq!(world.bob.take_drops(), []);
}

#[test]
fn data_of_unknown_endpoints_is_not_sent() {
    let world = World::new("NONE", "NONE", "NONE", "NONE").matched();
    let other = EntityId::new([0, 0, 0x77], EntityId::KIND_WRITER_NO_KEY);
    let plain = message(ALICE, &[&data(other, EntityId::UNKNOWN, SECRET)]);
    let refused = try_seal(&world.alice, &[&plain]);
    assert_eq!(refused, Err(TransformError::UnknownEndpoint(other)));
    world.alice.remove_endpoint(WRITER);
    let plain = message(ALICE, &[&data(WRITER, EntityId::UNKNOWN, SECRET)]);
    assert!(try_seal(&world.alice, &[&plain]).is_err());
}

#[test]
fn an_announcement_and_a_question_beside_it_become_two_datagrams() {
    let world = World::new("ENCRYPT", "NONE", "NONE", "NONE").matched();
    let hello = data(EntityId::SPDP_WRITER, EntityId::UNKNOWN, SECRET);
    let beat = heartbeat(EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::UNKNOWN);
    let both = message(ALICE, &[&to(BOB), &hello, &beat]);
    let sealed = try_seal(&world.alice, &[&both]).unwrap();
    let [first, second] = &sealed[..] else {
        panic!("{} datagrams", sealed.len());
    };
    let plain = message(ALICE, &[&to(BOB), &hello]);
    assert_eq!(
        (first, open(&world.bob, first)),
        (&plain, Some(plain.clone()))
    );
    assert_eq!(
        open(&world.bob, second),
        Some(message(ALICE, &[&to(BOB), &beat]))
    );
}

#[test]
fn many_small_submessages_are_spread_over_as_many_datagrams_as_they_fill_when_protected() {
    for (bytes, count, at_most) in [(1_400, 25, 1_472), (60_000, 1_000, 65_507)] {
        let world = World::new("ENCRYPT", "NONE", "ENCRYPT", "ENCRYPT").matched();
        let stamp = submessage(0x09, 1, &[3; 8]);
        let one = data(WRITER, READER, &SECRET[..28]);
        let mut parts = vec![to(BOB), stamp.clone()];
        parts.extend((0..count).map(|_| one.clone()));
        let plain = message(ALICE, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert!(plain.len() <= bytes);
        let sealed = try_seal(&world.alice, &[&plain]).unwrap();
        assert!(sealed.len() > 1);
        let mut opened = 0;
        for datagram in sealed {
            assert!(datagram.len() <= at_most, "{}", datagram.len());
            let clean = open(&world.bob, &datagram).unwrap();
            let head = message(ALICE, &[&to(BOB), &stamp]);
            assert!(clean.starts_with(&head));
            opened += (clean.len() - head.len()) / one.len();
        }
        assert_eq!(opened, count);
    }
}

#[test]
fn replays_are_dropped_unless_the_sender_has_random_vectors() {
    for (rtps, metadata) in [("SIGN", "NONE"), ("NONE", "ENCRYPT"), ("ENCRYPT", "SIGN")] {
        let world = World::new(rtps, "NONE", metadata, "ENCRYPT").matched();
        let plain = message(ALICE, &[&to(BOB), &data(WRITER, READER, SECRET)]);
        let sealed: Vec<_> = (0..20).map(|_| seal(&world.alice, &plain)).collect();
        for at in [3, 1, 0, 19, 2] {
            assert!(open(&world.bob, &sealed[at]).is_some());
            assert_eq!(open(&world.bob, &sealed[at]), None);
        }
        assert_eq!(world.bob.dropped_count(DropReason::Replayed), 5);
        assert_eq!(world.bob.take_drops(), [(ALICE, DropReason::Replayed)]);
        // The same keys once more do not open the window again.
        let keys = world.alice.participant_keys(BOB);
        world.bob.set_participant_keys(ALICE, &keys).unwrap();
        world.pair(WRITER, READER);
        assert_eq!(open(&world.bob, &sealed[3]), None);
        assert!(open(&world.bob, &sealed[4]).is_some());
    }
}

#[expect(clippy::disallowed_methods, reason = "it is about threads")]
#[test]
fn concurrent_senders_never_reuse_a_vector() {
    let world = World::new("SIGN", "NONE", "ENCRYPT", "ENCRYPT").matched();
    let plain = message(ALICE, &[&to(BOB), &data(WRITER, READER, SECRET)]);
    let send = || [0; 100].map(|_| seal(&world.alice, &plain));
    let sealed = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(send));
        threads.map(|thread| thread.join().unwrap())
    });
    for one in sealed.as_flattened() {
        assert_eq!(open(&world.bob, one).as_ref(), Some(&plain));
    }
    assert_eq!(world.bob.take_drops(), []);
}

#[test]
fn origin_authentication_distinguishes_several_readers() {
    let with_origin = "ENCRYPT_WITH_ORIGIN_AUTHENTICATION";
    let world = World::new(with_origin, "NONE", with_origin, "NONE").matched();
    let second = EntityId::new([0, 0, 0x12], EntityId::KIND_READER_NO_KEY);
    let rule = world.governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
    world.bob.add_endpoint(second, info).unwrap();
    world.pair(WRITER, second);
    for reader in [READER, second, EntityId::UNKNOWN] {
        let plain = message(ALICE, &[&to(BOB), &data(WRITER, reader, SECRET)]);
        assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), Some(plain));
    }
    // A third participant gets the common keys, and forges with them, before
    // anything was said: its session may be any.
    let world = World::new(with_origin, "NONE", with_origin, "NONE").matched();
    let rule = world.governance.rule(0).unwrap();
    let third = CryptoTransform::new(MALLORY, rule).unwrap();
    third.add_endpoint(READER, info).unwrap();
    let key_exchange = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    world
        .alice
        .add_authenticated(MALLORY, VendorId::PTEROS, key_exchange)
        .unwrap();
    let theirs = world.alice.participant_keys(MALLORY);
    let ours = world.alice.participant_keys(BOB);
    assert_ne!(theirs, ours);
    let mut sealer = pteros_security::crypto::Sealer::new(theirs[0].clone()).unwrap();
    let source = submessage(0x0c, 1, &[&[0; 4][..], &[2, 3, 1, 0x50], &ALICE.0].concat());
    let inner = [
        source,
        to(BOB),
        heartbeat(EntityId::WLP_WRITER, EntityId::UNKNOWN),
    ]
    .concat();
    for (keys, passes) in [(&theirs, false), (&ours, true)] {
        let mut forged = message(ALICE, &[]);
        let layer = pteros_security::crypto::ProtectionLayer::Message;
        sealer
            .seal(
                layer,
                &inner,
                [&ReceiverKey::new(keys[0].clone())],
                &mut forged,
            )
            .unwrap();
        assert_eq!(open(&world.bob, &forged).is_some(), passes);
    }
    assert_eq!(world.bob.dropped_count(DropReason::Forged), 1);
}

#[test]
fn a_participant_cannot_send_in_anothers_name() {
    let world = World::new("NONE", "NONE", "NONE", "NONE").matched();
    world.bob.add_unauthenticated(MALLORY).unwrap();
    let source = submessage(0x0c, 1, &[&[0; 4][..], &[2, 3, 1, 0x50], &ALICE.0].concat());
    let bent = message(MALLORY, &[&source, &data(WRITER, READER, SECRET)]);
    assert_eq!(open(&world.bob, &bent), None);
    assert_eq!(
        world.bob.take_drops(),
        [(MALLORY, DropReason::SourceMismatch)]
    );
    assert_eq!(world.bob.dropped_count(DropReason::SourceMismatch), 1);
    // Our own datagrams, when they come back, are dropped.
    assert_eq!(
        open(&world.bob, &message(BOB, &[&acknack(READER, WRITER)])),
        None
    );
}

/// Fast DDS seals INFO_TS by itself, before what it is the time of.
#[test]
fn a_protected_info_ts_applies_to_the_following_submessages() {
    let layer = pteros_security::crypto::ProtectionLayer::Submessage;
    let time = submessage(0x09, 1, &[7; 8]);
    for metadata in ["SIGN", "ENCRYPT"] {
        let world = World::new("NONE", "NONE", metadata, "NONE").matched();
        let keys = world.alice.endpoint_keys(WRITER, BOB.with(READER)).unwrap();
        let mut sealer = pteros_security::crypto::Sealer::new(keys[0].clone()).unwrap();
        let mut sealed = message(ALICE, &[&to(BOB)]);
        let said = data(WRITER, READER, SECRET);
        for one in [&time, &said] {
            sealer.seal(layer, one, &[], &mut sealed).unwrap();
        }
        let plain = message(ALICE, &[&to(BOB), &time, &said]);
        assert_eq!(open(&world.bob, &sealed), Some(plain), "{metadata}");
        assert_eq!(world.bob.take_drops(), []);
    }
    // With keys for keys, too.
    let world = World::new("SIGN", "NONE", "NONE", "NONE").met();
    let key_exchange = pteros_security::crypto::key_exchange_material(&[1; 32], &[2; 32], &[3; 32]);
    let known = world
        .bob
        .add_authenticated(ALICE, VendorId::FAST_DDS, key_exchange.clone());
    known.unwrap();
    let mut sealer = pteros_security::crypto::Sealer::new(key_exchange).unwrap();
    let mut sealed = message(ALICE, &[&to(BOB)]);
    sealer.seal(layer, &time, &[], &mut sealed).unwrap();
    let plain = message(ALICE, &[&to(BOB), &time]);
    assert_eq!(open(&world.bob, &sealed), Some(plain));
    assert_eq!(world.bob.take_drops(), []);
}

#[test]
fn a_key_is_valid_for_its_own_endpoint_only() {
    let world = World::new("NONE", "NONE", "ENCRYPT", "NONE").matched();
    let other = EntityId::new([0, 0, 0x20], EntityId::KIND_WRITER_NO_KEY);
    let rule = world.governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
    world.alice.add_endpoint(other, info).unwrap();
    let keys = world.alice.endpoint_keys(WRITER, BOB.with(READER)).unwrap();
    let mut sealer = pteros_security::crypto::Sealer::new(keys[0].clone()).unwrap();
    for (writer, passes) in [(WRITER, true), (other, false)] {
        let mut bent = message(ALICE, &[]);
        let layer = pteros_security::crypto::ProtectionLayer::Submessage;
        let inner = data(writer, READER, SECRET);
        sealer.seal(layer, &inner, [], &mut bent).unwrap();
        assert_eq!(open(&world.bob, &bent).is_some(), passes);
    }
    // Another endpoint does not come with the same key, nor with a weaker one.
    let guid = ALICE.with(other);
    assert!(world.bob.set_endpoint_keys(READER, guid, &keys).is_err());
    let weak = KeyMaterial::generate(TransformKind::Aes256Gmac, false).unwrap();
    assert!(world.bob.set_endpoint_keys(READER, guid, &[weak]).is_err());
    assert!(world.bob.set_endpoint_keys(READER, guid, &[]).is_err());
    assert!(!world.bob.has_keys_for(READER, guid));
    assert!(world.bob.has_keys_for(READER, ALICE.with(WRITER)));
}

#[test]
fn a_removed_participant_is_unauthenticated_again() {
    let world = World::new("SIGN", "NONE", "ENCRYPT", "NONE").matched();
    let plain = message(ALICE, &[&to(BOB), &data(WRITER, READER, SECRET)]);
    world.bob.remove_remote_endpoint(ALICE.with(WRITER));
    assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), None);
    world.pair(WRITER, READER);
    assert!(open(&world.bob, &seal(&world.alice, &plain)).is_some());
    world.bob.remove_participant(ALICE);
    assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), None);
    assert!(!world.bob.has_keys_for(READER, ALICE.with(WRITER)));
    assert_eq!(world.bob.participant_keys(ALICE), []);
    let guid: Guid = ALICE.with(WRITER);
    assert_eq!(world.bob.endpoint_keys(READER, guid).unwrap(), []);
    let drop_counts = [
        DropReason::Key,
        DropReason::Unmatched,
        DropReason::Unauthenticated,
    ];
    let told: Vec<_> = world.bob.take_drops();
    assert!(
        told.iter()
            .all(|(from, why)| *from == ALICE && drop_counts.contains(why))
    );
}

#[test]
fn shared_memory_is_enabled_per_participant() {
    let world = World::new("SIGN", "ENCRYPT", "ENCRYPT", "ENCRYPT");
    assert!(!world.alice.enable_shared_memory(BOB));
    let world = world.met();
    let (alice, bob) = (&world.alice, &world.bob);
    assert_eq!(alice.shared_memory_mac(BOB, b"x"), None);
    assert!(alice.enable_shared_memory(BOB) && bob.enable_shared_memory(ALICE));
    assert!(alice.uses_shared_memory(BOB) && alice.allows_shared_memory());
    let code = alice.shared_memory_mac(BOB, b"x");
    assert!(code.is_some() && code == bob.shared_memory_mac(ALICE, b"x"));
    assert_ne!(code, bob.shared_memory_mac(ALICE, b"y"));
    assert_eq!(alice.shared_memory_mac(MALLORY, b"x"), None);
    alice.remove_participant(BOB);
    assert_eq!(alice.shared_memory_mac(BOB, b"x"), None);
    let kind = "SIGN_WITH_ORIGIN_AUTHENTICATION";
    for (rtps, metadata) in [(kind, "NONE"), ("NONE", kind)] {
        let strict = World::new(rtps, "NONE", metadata, "NONE").met();
        assert!(!strict.alice.allows_shared_memory());
        assert!(!strict.alice.enable_shared_memory(BOB));
    }
}

#[test]
fn random_and_mutated_datagrams_never_panic_and_never_pass() {
    let mut next = support::numbers(5);
    for (rtps, metadata, data) in [
        ("NONE", "ENCRYPT", "ENCRYPT"),
        ("SIGN", "ENCRYPT_WITH_ORIGIN_AUTHENTICATION", "SIGN"),
        ("ENCRYPT", "SIGN", "ENCRYPT"),
    ] {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        let mut workspace = OpenBuffers::default();
        let mut clean = vec![0; 65_536];
        for round in 0..20_000 {
            let mut bytes = match round % 3 {
                0 => (0..next() % 200).map(|_| next() as u8).collect(),
                1 => message(
                    ALICE,
                    &[
                        &to(BOB),
                        &self::data(WRITER, READER, SECRET),
                        &heartbeat(WRITER, READER),
                    ],
                ),
                _ => seal(
                    &world.alice,
                    &message(ALICE, &[&to(BOB), &self::data(WRITER, READER, SECRET)]),
                ),
            };
            for _ in 0..next() % 4 {
                if !bytes.is_empty() {
                    let at = next() % bytes.len();
                    bytes[at] = next() as u8;
                }
            }
            bytes.truncate(next() % (bytes.len() + 1) + bytes.len() / 2);
            let length = world.bob.open(&bytes, &mut workspace, &mut clean);
            if let Some(length) = length {
                // Either it came whole, or it has nothing of a user's.
                let clean = &clean[..length];
                let mentions = clean.windows(4).any(|part| part == WRITER.to_bytes());
                assert!(!mentions || contains(clean, SECRET) || !contains(clean, &SECRET[4..12]));
            }
            // Nor does sealing, whatever it is given.
            let _ = try_seal(&world.alice, &[&bytes]);
        }
    }
}
