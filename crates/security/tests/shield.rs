//! Two participants' shields, back to back: what one seals the other opens, and
//! nobody gets through with less.

use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_security::attributes::SecurityInfo;
use pteros_security::crypto::{KeyMaterial, Receiver, TransformKind};
use pteros_security::document::Source;
use pteros_security::governance::Governance;
use pteros_security::shield::{Refusal, Sealed, Shield, Unsealed, Workspace};

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
    alice: Shield,
    bob: Shield,
}

impl World {
    /// Strangers, as yet.
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
        let source = Source {
            file: "governance.xml",
            text: &text,
            first_line: 1,
        };
        let governance = Governance::read(source).unwrap();
        let rule = governance.rule(0).unwrap();
        let alice = Shield::new(ALICE, rule).unwrap();
        let bob = Shield::new(BOB, rule).unwrap();
        let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
        alice.add_endpoint(WRITER, info).unwrap();
        bob.add_endpoint(READER, info).unwrap();
        Self {
            governance,
            alice,
            bob,
        }
    }

    /// Both have authenticated; nothing else of them is known.
    fn met(self) -> Self {
        let kx = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
        let mut bytes = kx.to_bytes();
        // Keys for keys have no name of their own.
        bytes[40..44].fill(0);
        let kx = KeyMaterial::from_bytes(&bytes).unwrap();
        let ours = VendorId::PTEROS;
        self.alice.authenticated(BOB, ours, kx.clone()).unwrap();
        self.bob.authenticated(ALICE, ours, kx).unwrap();
        self
    }

    /// And have all keys.
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

fn try_seal(shield: &Shield, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>, Unsealed> {
    let mut sealed = Sealed::default();
    let outcome = shield.seal(parts, &mut sealed);
    let datagrams: Vec<_> = sealed.datagrams().map(<[u8]>::to_vec).collect();
    assert!(outcome.is_ok() || datagrams.is_empty());
    outcome.map(|()| datagrams)
}

fn seal(shield: &Shield, plain: &[u8]) -> Vec<u8> {
    let mut sealed = try_seal(shield, &[plain]).unwrap();
    assert_eq!(sealed.len(), 1);
    sealed.remove(0)
}

fn open(shield: &Shield, sealed: &[u8]) -> Option<Vec<u8>> {
    let mut clean = vec![0xee; 65_536];
    let length = shield.open(sealed, &mut Workspace::default(), &mut clean)?;
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
fn what_one_seals_the_other_opens_whatever_the_governance_asks_for() {
    all_kinds(|rtps, metadata, data| {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        let named = format!("{rtps} {metadata} {data}");
        assert!(world.bob.is_open(READER, ALICE.with(WRITER)), "{named}");
        assert!(world.alice.is_open(WRITER, BOB.with(READER)), "{named}");
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
        assert_eq!(world.bob.take_refusals(), []);
    });
}

#[test]
fn a_datagram_in_parts_is_sealed_as_one_in_a_piece() {
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
fn no_bit_may_change_and_nothing_be_cut_off() {
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
            // Flags, padding and others' codes are not protected, nor is what
            // lies beside a payload if that alone is; what is, is unchanged.
            let begins = clean.windows(5).any(|part| part == &SECRET[4..9]);
            let ends = clean
                .windows(5)
                .any(|part| part == &SECRET[SECRET.len() - 5..]);
            assert!(
                is_secret(&clean) || !(begins || ends),
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
fn what_is_less_protected_than_asked_for_does_not_pass() {
    all_kinds(|rtps, metadata, data| {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        // The same keys in the hands of one who protects less: the plain form.
        let plain = plain();
        let clean = open(&world.bob, &plain);
        match [rtps, metadata, data] == ["NONE"; 3] {
            true => assert_eq!(clean, Some(plain)),
            false => assert!(clean.is_none_or(|clean| !contains(&clean, SECRET))),
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
fn a_stranger_announces_itself_shakes_hands_and_no_more() {
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
        // An announcement's entity does not carry anything to somebody else's.
        let odd = message(ALICE, &[&data(EntityId::SPDP_WRITER, READER, SECRET)]);
        assert_eq!(open(&world.bob, &odd), None);
        // One without identity is let in where the governance says so; only to
        // what is not protected.
        world.bob.allow_plain(ALICE).unwrap();
        let sedp = message(
            ALICE,
            &[&data(
                EntityId::SEDP_PUBLICATIONS_WRITER,
                EntityId::UNKNOWN,
                SECRET,
            )],
        );
        assert_eq!(open(&world.bob, &sedp).is_some(), rtps == "NONE");
        assert!(world.bob.pair(READER, ALICE.with(WRITER)));
        let user = message(ALICE, &[&data(WRITER, READER, SECRET)]);
        assert_eq!(open(&world.bob, &user).is_some(), rtps == "NONE");
        let refused = world.bob.set_endpoint_keys(READER, ALICE.with(WRITER), &[]);
        assert!(refused.is_err());
    }
    let world = World::new("NONE", "NONE", "SIGN", "NONE");
    world.bob.allow_plain(ALICE).unwrap();
    assert!(!world.bob.pair(READER, ALICE.with(WRITER)));
}

#[test]
fn secured_channels_that_the_governance_does_not_protect_are_used_bare() {
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
                .is_open(EntityId::new([0xff, 0, 3], 0xc7), ALICE.with(writer))
        );
    }
}

#[test]
fn cyclones_bare_heartbeats_beside_a_protected_channel_are_dropped_without_alarm() {
    let world = World::new("SIGN", "ENCRYPT", "NONE", "NONE");
    let kx = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    world
        .bob
        .authenticated(ALICE, VendorId::CYCLONE, kx)
        .unwrap();
    let beat = message(
        ALICE,
        &[&heartbeat(EntityId::WLP_WRITER, EntityId::UNKNOWN)],
    );
    assert_eq!(open(&world.bob, &beat), None);
    assert_eq!(world.bob.take_refusals(), [(ALICE, Refusal::Bare)]);
    assert!(!Refusal::Bare.is_suspicious() && Refusal::Unprotected.is_suspicious());
}

#[test]
fn keys_travel_sealed_for_one_participant_before_anything_else_does() {
    let exchange = EntityId::new([0xff, 2, 2], 0xc3);
    let reader = EntityId::new([0xff, 2, 2], 0xc4);
    let keys = message(ALICE, &[&to(BOB), &data(exchange, reader, SECRET)]);
    let world = World::new("ENCRYPT", "ENCRYPT", "ENCRYPT", "ENCRYPT");
    assert_eq!(
        try_seal(&world.alice, &[&keys]),
        Err(Unsealed::Stranger(BOB))
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
        Err(Unsealed::NoDestination)
    );
    // With the keys for keys nothing else comes in.
    let sealed = seal(
        &world.alice,
        &message(ALICE, &[&to(BOB), &heartbeat(exchange, reader)]),
    );
    assert!(open(&world.bob, &sealed).is_some());
    // What others are told is passed over in silence.
    let elsewhere = message(ALICE, &[&to(MALLORY), &sealed[36..]]);
    assert_eq!(open(&world.bob, &elsewhere), None);
    assert_eq!(world.bob.take_refusals(), []);
}

#[test]
fn nothing_is_sent_for_an_endpoint_that_the_shield_does_not_know() {
    let world = World::new("NONE", "NONE", "NONE", "NONE").matched();
    let other = EntityId::new([0, 0, 0x77], EntityId::KIND_WRITER_NO_KEY);
    let plain = message(ALICE, &[&data(other, EntityId::UNKNOWN, SECRET)]);
    let refused = try_seal(&world.alice, &[&plain]);
    assert_eq!(refused, Err(Unsealed::Endpoint(other)));
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
fn what_was_received_is_not_received_again_unless_its_sender_draws_by_lot() {
    for (rtps, metadata) in [("SIGN", "NONE"), ("NONE", "ENCRYPT"), ("ENCRYPT", "SIGN")] {
        let world = World::new(rtps, "NONE", metadata, "ENCRYPT").matched();
        let plain = message(ALICE, &[&to(BOB), &data(WRITER, READER, SECRET)]);
        let sealed: Vec<_> = (0..20).map(|_| seal(&world.alice, &plain)).collect();
        for at in [3, 1, 0, 19, 2] {
            assert!(open(&world.bob, &sealed[at]).is_some());
            assert_eq!(open(&world.bob, &sealed[at]), None);
        }
        assert_eq!(world.bob.refused(Refusal::Replayed), 5);
        assert_eq!(world.bob.take_refusals(), [(ALICE, Refusal::Replayed)]);
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
fn threads_that_send_at_once_use_no_vector_twice() {
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
    assert_eq!(world.bob.take_refusals(), []);
}

#[test]
fn each_of_several_readers_is_told_apart_where_the_origin_is_proven() {
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
    let third = Shield::new(MALLORY, rule).unwrap();
    third.add_endpoint(READER, info).unwrap();
    let kx = KeyMaterial::generate(TransformKind::Aes256Gcm, false).unwrap();
    world
        .alice
        .authenticated(MALLORY, VendorId::PTEROS, kx)
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
        let layer = pteros_security::crypto::Layer::Message;
        sealer
            .seal(
                layer,
                &inner,
                [&Receiver::new(keys[0].clone())],
                &mut forged,
            )
            .unwrap();
        assert_eq!(open(&world.bob, &forged).is_some(), passes);
    }
    assert_eq!(world.bob.refused(Refusal::Forged), 1);
}

#[test]
fn nobody_speaks_in_the_name_of_another() {
    let world = World::new("NONE", "NONE", "NONE", "NONE").matched();
    world.bob.allow_plain(MALLORY).unwrap();
    let source = submessage(0x0c, 1, &[&[0; 4][..], &[2, 3, 1, 0x50], &ALICE.0].concat());
    let bent = message(MALLORY, &[&source, &data(WRITER, READER, SECRET)]);
    assert_eq!(open(&world.bob, &bent), None);
    assert_eq!(
        world.bob.take_refusals(),
        [(MALLORY, Refusal::AnotherSource)]
    );
    assert_eq!(world.bob.refused(Refusal::AnotherSource), 1);
    // Ours that come back are nobody's.
    assert_eq!(
        open(&world.bob, &message(BOB, &[&acknack(READER, WRITER)])),
        None
    );
}

/// Fast DDS seals INFO_TS by itself, before what it is the time of.
#[test]
fn a_time_that_is_protected_by_itself_is_the_time_of_what_follows() {
    let layer = pteros_security::crypto::Layer::Submessage;
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
        assert_eq!(world.bob.take_refusals(), []);
    }
    // With keys for keys, too.
    let world = World::new("SIGN", "NONE", "NONE", "NONE").met();
    let kx = pteros_security::crypto::key_exchange_material(&[1; 32], &[2; 32], &[3; 32]);
    let known = world
        .bob
        .authenticated(ALICE, VendorId::FAST_DDS, kx.clone());
    known.unwrap();
    let mut sealer = pteros_security::crypto::Sealer::new(kx).unwrap();
    let mut sealed = message(ALICE, &[&to(BOB)]);
    sealer.seal(layer, &time, &[], &mut sealed).unwrap();
    let plain = message(ALICE, &[&to(BOB), &time]);
    assert_eq!(open(&world.bob, &sealed), Some(plain));
    assert_eq!(world.bob.take_refusals(), []);
}

#[test]
fn a_key_is_good_for_its_own_endpoint_only() {
    let world = World::new("NONE", "NONE", "ENCRYPT", "NONE").matched();
    let other = EntityId::new([0, 0, 0x20], EntityId::KIND_WRITER_NO_KEY);
    let rule = world.governance.rule(0).unwrap();
    let info = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
    world.alice.add_endpoint(other, info).unwrap();
    let keys = world.alice.endpoint_keys(WRITER, BOB.with(READER)).unwrap();
    let mut sealer = pteros_security::crypto::Sealer::new(keys[0].clone()).unwrap();
    for (writer, passes) in [(WRITER, true), (other, false)] {
        let mut bent = message(ALICE, &[]);
        let layer = pteros_security::crypto::Layer::Submessage;
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
    assert!(!world.bob.is_open(READER, guid));
    assert!(world.bob.is_open(READER, ALICE.with(WRITER)));
}

#[test]
fn who_is_forgotten_is_a_stranger_again() {
    let world = World::new("SIGN", "NONE", "ENCRYPT", "NONE").matched();
    let plain = message(ALICE, &[&to(BOB), &data(WRITER, READER, SECRET)]);
    world.bob.forget_endpoint(ALICE.with(WRITER));
    assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), None);
    world.pair(WRITER, READER);
    assert!(open(&world.bob, &seal(&world.alice, &plain)).is_some());
    world.bob.forget(ALICE);
    assert_eq!(open(&world.bob, &seal(&world.alice, &plain)), None);
    assert!(!world.bob.is_open(READER, ALICE.with(WRITER)));
    assert_eq!(world.bob.participant_keys(ALICE), []);
    let guid: Guid = ALICE.with(WRITER);
    assert_eq!(world.bob.endpoint_keys(READER, guid).unwrap(), []);
    let refusals = [Refusal::Key, Refusal::Unmatched, Refusal::Stranger];
    let told: Vec<_> = world.bob.take_refusals();
    assert!(
        told.iter()
            .all(|(from, why)| *from == ALICE && refusals.contains(why))
    );
}

#[test]
fn memory_is_shared_with_those_alone_of_whom_it_was_said() {
    let world = World::new("SIGN", "ENCRYPT", "ENCRYPT", "ENCRYPT");
    assert!(!world.alice.share_memory(BOB));
    let world = world.met();
    let (alice, bob) = (&world.alice, &world.bob);
    assert_eq!(alice.memory_code(BOB, b"x"), None);
    assert!(alice.share_memory(BOB) && bob.share_memory(ALICE));
    assert!(alice.shares_memory(BOB) && alice.permits_memory());
    let code = alice.memory_code(BOB, b"x");
    assert!(code.is_some() && code == bob.memory_code(ALICE, b"x"));
    assert_ne!(code, bob.memory_code(ALICE, b"y"));
    assert_eq!(alice.memory_code(MALLORY, b"x"), None);
    alice.forget(BOB);
    assert_eq!(alice.memory_code(BOB, b"x"), None);
    let kind = "SIGN_WITH_ORIGIN_AUTHENTICATION";
    for (rtps, metadata) in [(kind, "NONE"), ("NONE", kind)] {
        let strict = World::new(rtps, "NONE", metadata, "NONE").met();
        assert!(!strict.alice.permits_memory());
        assert!(!strict.alice.share_memory(BOB));
    }
}

#[test]
fn random_and_bent_datagrams_never_panic_and_never_pass() {
    let mut state = 5_u64;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for (rtps, metadata, data) in [
        ("NONE", "ENCRYPT", "ENCRYPT"),
        ("SIGN", "ENCRYPT_WITH_ORIGIN_AUTHENTICATION", "SIGN"),
        ("ENCRYPT", "SIGN", "ENCRYPT"),
    ] {
        let world = World::new(rtps, "ENCRYPT", metadata, data).matched();
        let mut workspace = Workspace::default();
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
