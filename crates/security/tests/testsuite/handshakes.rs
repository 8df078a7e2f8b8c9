//! Authentication handshakes on fake time: through loss, repetition and disorder,
//! with forged messages, and never with an untrusted peer.

use crate::support;
use pteros_test_support::folder::Folder;

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::time::{Duration, Instant};
use pteros_security::auth::{
    GenericMessage, HandshakeEvent, HandshakeRejection, Handshakes, LocalIdentity, Token,
    TooManyHandshakes, adjusted_prefix, is_prefix_of,
};
use pteros_security::crypto::KeyMaterial;
use pteros_security::enclave::Enclave;
use pteros_security::keystore::{Keystore, Options};
use std::path::Path;
use support::{NOW, fixture};

/// A list of parameters with the participant's GUID and nothing more.
fn announced(prefix: GuidPrefix) -> Vec<u8> {
    let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
    [&[0x00, 0x50, 0, 16], &guid[..], &[0, 1, 0, 0]].concat()
}

fn machine(folder: &Path, candidate: u8) -> Handshakes {
    let enclave = Enclave::load(folder, NOW).unwrap();
    let prefix = LocalIdentity::prefix_for(&enclave, GuidPrefix([candidate; 12])).unwrap();
    Handshakes::new(LocalIdentity {
        participant_data: announced(prefix),
        enclave,
        prefix,
    })
}

fn keystore(name: &str) -> (Folder, Keystore) {
    let folder = Folder::new(name);
    let keystore = Keystore::create(&folder, &Options::default(), NOW).unwrap();
    (folder, keystore)
}

/// Two machines of one keystore, the one that begins first.
fn pair(keystore: &Keystore) -> [Handshakes; 2] {
    let arm = support::enclave(keystore, "/arm");
    let leg = support::enclave(keystore, "/leg");
    ordered([machine(&arm, 1), machine(&leg, 2)])
}

fn ordered([a, b]: [Handshakes; 2]) -> [Handshakes; 2] {
    if a.local_identity().prefix < b.local_identity().prefix {
        [a, b]
    } else {
        [b, a]
    }
}

/// The outcome on both sides, and how long it took.
struct Outcome {
    events: [Vec<HandshakeEvent>; 2],
    now: Instant,
    sent: Vec<GenericMessage>,
}

impl Outcome {
    /// The keys that both ends derive, if both authenticated the other.
    fn keys(&self) -> [Option<KeyMaterial>; 2] {
        [&self.events[0], &self.events[1]].map(|events| match events.as_slice() {
            [HandshakeEvent::Authenticated { secret, .. }] => Some(secret.key_exchange_material()),
            _ => None,
        })
    }
}

/// Runs two handshakes until nothing is left to do. `network` returns the
/// deliveries of each message: how many, and the delay of each.
fn talk(
    machines: &mut [Handshakes; 2],
    mut network: impl FnMut(&GenericMessage) -> Vec<i64>,
) -> Outcome {
    let mut now = Instant::from_nanos(1_000_000_000);
    let prefixes = [
        machines[0].local_identity().prefix,
        machines[1].local_identity().prefix,
    ];
    machines[0]
        .handle_discovered(prefixes[1], true, now)
        .unwrap();
    machines[1]
        .handle_discovered(prefixes[0], true, now)
        .unwrap();
    let mut outcome = Outcome {
        events: [Vec::new(), Vec::new()],
        now,
        sent: Vec::new(),
    };
    let mut under_way: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    loop {
        for (from, machine) in machines.iter_mut().enumerate() {
            while let Some((to, message)) = machine.poll_transmit() {
                assert_eq!(to, prefixes[1 - from]);
                for delay in network(&message) {
                    let at = now + Duration::from_millis(delay);
                    under_way.push((at, 1 - from, message.to_payload()));
                }
                outcome.sent.push(message);
            }
            while let Some(event) = machine.poll_event() {
                outcome.events[from].push(event);
            }
        }
        under_way.sort_by_key(|(at, _, _)| *at);
        let arrival = under_way.first().map(|(at, _, _)| *at);
        let deadlines = machines.iter().filter_map(Handshakes::deadline);
        let Some(next) = deadlines.chain(arrival).min() else {
            outcome.now = now;
            return outcome;
        };
        now = now.max(next);
        while under_way.first().is_some_and(|(at, _, _)| *at <= now) {
            let (_, to, payload) = under_way.remove(0);
            let message = GenericMessage::from_payload(&payload).unwrap();
            machines[to].handle_message(message, now, NOW);
        }
        machines
            .iter_mut()
            .for_each(|machine| machine.handle_timeout(now));
    }
}

#[test]
fn two_participants_of_one_keystore_agree_on_a_secret_in_three_messages() {
    let (_folder, keystore) = keystore("agree");
    let mut machines = pair(&keystore);
    let outcome = talk(&mut machines, |_| vec![1]);
    let [ours, theirs] = outcome.keys();
    assert!(ours.is_some() && ours == theirs);
    let classes: Vec<&str> = outcome
        .sent
        .iter()
        .map(|m| m.data[0].class.as_str())
        .collect();
    let handshake = ["+AuthReq", "+Req", "+AuthReq", "+Reply", "+Final"];
    assert_eq!(
        classes,
        handshake.map(|word| format!("DDS:Auth:PKI-DH:1.0{word}"))
    );
    let [HandshakeEvent::Authenticated { peer, prefix, .. }] = outcome.events[0].as_slice() else {
        panic!("{:?}", outcome.events);
    };
    assert!(is_prefix_of(&peer.chain[0], *prefix));
    assert_eq!(peer.participant_data, announced(*prefix));
    let access = machines[0].local_identity().enclave.access(0).unwrap();
    assert!(access.may_join(NOW).allowed && !peer.permissions.grants.is_empty());
}

#[test]
fn identities_with_rsa_and_of_sros_2_agree_too() {
    for store in ["rsa", "sros2"] {
        let folder = fixture(store).join("enclaves/talker");
        let mut machines = ordered([machine(&folder, 1), machine(&folder, 2)]);
        let [ours, theirs] = talk(&mut machines, |_| vec![1]).keys();
        assert!(ours.is_some() && ours == theirs, "{store}");
    }
}

#[test]
fn a_handshake_ends_well_though_messages_are_lost_repeated_and_out_of_order() {
    let (_folder, keystore) = keystore("loss");
    let mut succeeded = 0;
    for seed in 0..60 {
        let mut machines = pair(&keystore);
        let mut next = support::numbers(seed);
        let outcome = talk(&mut machines, |_| {
            let copies = [0, 0, 1, 1, 1, 2, 3][next() % 7];
            (0..copies).map(|_| 1 + (next() % 400) as i64).collect()
        });
        let [ours, theirs] = outcome.keys();
        if ours.is_some() || theirs.is_some() {
            // Never two secrets. The final message may be lost for good.
            assert!(ours == theirs || theirs.is_none(), "seed {seed}");
            succeeded += usize::from(ours == theirs);
        }
        assert!(outcome.now - Instant::from_nanos(1_000_000_000) <= Duration::from_secs(11));
    }
    assert!(succeeded >= 57, "{succeeded} of 60");
}

#[test]
fn retries_to_a_silent_peer_back_off_and_time_out() {
    let (_folder, keystore) = keystore("silent");
    let mut machines = pair(&keystore);
    let outcome = talk(&mut machines, |_| vec![]);
    for events in &outcome.events {
        assert!(
            matches!(
                events.as_slice(),
                [HandshakeEvent::Failed {
                    rejection: HandshakeRejection::TimedOut(10),
                    ..
                }]
            ),
            "{events:?}"
        );
    }
    let requests = outcome
        .sent
        .iter()
        .filter(|m| m.data[0].class.ends_with("+Req"));
    assert!((8..=17).contains(&requests.count()));
}

#[test]
fn participants_of_another_keystore_never_authenticate() {
    let (_ours, one) = keystore("ours");
    let (_theirs, other) = keystore("theirs");
    let arm = support::enclave(&one, "/arm");
    let arm_there = support::enclave(&other, "/leg");
    let mut machines = ordered([machine(&arm, 1), machine(&arm_there, 2)]);
    let outcome = talk(&mut machines, |_| vec![1]);
    assert_eq!(outcome.keys(), [None, None]);
    // The replier has the reason; the initiator got no reply.
    let [HandshakeEvent::Failed { rejection, .. }] = outcome.events[1].as_slice() else {
        panic!("{:?}", outcome.events);
    };
    assert!(
        rejection
            .to_string()
            .contains("is not issued by the identity CA"),
        "{rejection}"
    );
}

#[test]
fn a_changed_message_neither_ends_nor_hijacks_a_handshake() {
    let (_folder, keystore) = keystore("forged");
    let mut machines = pair(&keystore);
    let recorded = talk(&mut machines, |_| vec![1]).sent;
    let [ours, _] = [0, 1].map(|at| machines[at].local_identity().prefix);
    let mut next = support::numbers(17);
    for round in 0..80 {
        let mut machines = pair(&keystore);
        assert_eq!(machines[0].local_identity().prefix, ours);
        // An old message, with something changed, before every honest one.
        let mut forged: Vec<GenericMessage> = recorded.clone();
        for message in &mut forged {
            let token = &mut message.data[0];
            let at = next() % token.binary.len();
            match next() % 4 {
                0 => drop(token.binary.remove(at)),
                1 => token.binary[at].1.truncate(next() % 20),
                2 if !token.binary[at].1.is_empty() => {
                    let length = token.binary[at].1.len();
                    token.binary[at].1[next() % length] ^= 1 << (next() % 8);
                }
                _ => token.class.push('x'),
            }
        }
        let now = Instant::from_nanos(1_000_000_000);
        let prefixes = [
            machines[0].local_identity().prefix,
            machines[1].local_identity().prefix,
        ];
        for at in [0, 1] {
            machines[at]
                .handle_discovered(prefixes[1 - at], true, now)
                .unwrap();
        }
        for message in forged {
            let to = usize::from(message.identity.source_guid.prefix == prefixes[0]);
            machines[to].handle_message(message, now, NOW);
        }
        assert!(
            machines
                .iter_mut()
                .all(|machine| machine.poll_event().is_none())
        );
        if round % 30 == 0 {
            let outcome = talk(&mut machines, |_| vec![1]);
            let [ours, theirs] = outcome.keys();
            assert!(ours.is_some() && ours == theirs);
        }
    }
}

#[test]
fn a_replayed_handshake_does_not_authenticate() {
    let (_folder, keystore) = keystore("replayed");
    let recorded = talk(&mut pair(&keystore), |_| vec![1]).sent;
    let mut machines = pair(&keystore);
    let now = Instant::from_nanos(1);
    let prefixes = [
        machines[0].local_identity().prefix,
        machines[1].local_identity().prefix,
    ];
    machines[1]
        .handle_discovered(prefixes[0], true, now)
        .unwrap();
    for message in recorded {
        machines[1].handle_message(message, now, NOW);
    }
    assert!(machines[1].poll_event().is_none());
    machines[1].handle_timeout(now + Duration::from_secs(11));
    let rejection = match machines[1].poll_event() {
        Some(HandshakeEvent::Failed { rejection, .. }) => rejection,
        other => panic!("{other:?}"),
    };
    assert_eq!(rejection, HandshakeRejection::Mismatch("challenge2"));
}

#[test]
fn a_prefix_belongs_to_its_certificates_subject() {
    let (_folder, keystore) = keystore("prefix");
    let mut machines = pair(&keystore);
    let [one, two] =
        [0, 1].map(|at| machines[at].local_identity().enclave.identity.chain[0].clone());
    let prefix = adjusted_prefix(&one, GuidPrefix([7; 12]));
    assert!(prefix.0[0] & 0x80 != 0);
    assert!(is_prefix_of(&one, prefix) && !is_prefix_of(&two, prefix));
    assert_ne!(prefix, adjusted_prefix(&one, GuidPrefix([8; 12])));
    // An impostor with a valid certificate.
    let now = Instant::from_nanos(1);
    let [victim, judge] = [0, 1].map(|at| machines[at].local_identity().prefix);
    let mut taken = victim.0;
    taken[11] ^= 1;
    taken[0] ^= 0x40;
    let taken = GuidPrefix(taken);
    machines[0].handle_discovered(judge, true, now).unwrap();
    machines[1].handle_discovered(taken, true, now).unwrap();
    while let Some((_, mut message)) = machines[0].poll_transmit() {
        message.identity.source_guid.prefix = taken;
        machines[1].handle_message(message, now, NOW);
    }
    machines[1].handle_timeout(now + Duration::from_secs(11));
    match machines[1].poll_event() {
        Some(HandshakeEvent::Failed { rejection, .. }) => {
            assert!(
                matches!(
                    rejection,
                    HandshakeRejection::WrongGuidPrefix | HandshakeRejection::TimedOut(_)
                ),
                "{rejection}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn at_most_64_handshakes_are_under_way() {
    let (_folder, keystore) = keystore("full");
    let [mut machine, _] = pair(&keystore);
    let now = Instant::from_nanos(1);
    let unauthenticated = |number: u8| GuidPrefix([number; 12]);
    for number in 0..64 {
        machine
            .handle_discovered(unauthenticated(number), true, now)
            .unwrap();
    }
    assert_eq!(
        machine.handle_discovered(unauthenticated(64), true, now),
        Err(TooManyHandshakes)
    );
    assert_eq!(
        machine.handle_discovered(unauthenticated(63), true, now),
        Ok(())
    );
    machine.handle_timeout(now + Duration::from_secs(10));
    assert_eq!(
        machine.handle_discovered(unauthenticated(64), true, now),
        Ok(())
    );
    machine.remove_peer(unauthenticated(64));
    assert_eq!(machine.deadline(), None);
}

#[test]
fn random_bytes_are_rejected_as_messages() {
    let (_folder, keystore) = keystore("random");
    let mut machines = pair(&keystore);
    let recorded = talk(&mut machines, |_| vec![1]).sent;
    let mut next = support::numbers(23);
    for _ in 0..20_000 {
        let mut payload = recorded[next() % recorded.len()].to_payload();
        for _ in 0..1 + next() % 4 {
            let at = match next() % 3 {
                0 => next() % 200,
                _ => next() % payload.len(),
            };
            payload[at.min(4000)] = next() as u8;
        }
        payload.truncate(next() % (payload.len() + 1));
        if let Some(message) = GenericMessage::from_payload(&payload) {
            let again = GenericMessage::from_payload(&message.to_payload());
            assert_eq!(again.as_ref(), Some(&message));
        }
    }
    let empty = Token::default();
    assert_eq!(empty.get("c.id"), None);
}

#[test]
fn replayed_requests_do_not_grow_memory() {
    let (_folder, keystore) = keystore("flood");
    let mut machines = pair(&keystore);
    let now = Instant::from_nanos(1);
    let prefixes = [
        machines[0].local_identity().prefix,
        machines[1].local_identity().prefix,
    ];
    machines[0]
        .handle_discovered(prefixes[1], true, now)
        .unwrap();
    machines[1]
        .handle_discovered(prefixes[0], true, now)
        .unwrap();
    let request = loop {
        let (_, message) = machines[0].poll_transmit().unwrap();
        if message.data[0].class.ends_with("+Req") {
            break message;
        }
    };
    for _ in 0..2000 {
        machines[1].handle_message(request.clone(), now, NOW);
    }
    let waiting = std::iter::from_fn(|| machines[1].poll_transmit()).count();
    assert_eq!(waiting, 256);
}

#[test]
fn a_peer_that_lost_its_state_authenticates_again() {
    let (_folder, keystore) = keystore("lost");
    for lost in [0, 1] {
        for percent in [0, 30] {
            let mut machines = pair(&keystore);
            let first = talk(&mut machines, |_| vec![1]).keys();
            let other = machines[1 - lost].local_identity().prefix;
            machines[lost].remove_peer(other);
            let mut number = support::numbers(7);
            let again = talk(&mut machines, |_| {
                if number() % 100 < percent {
                    vec![]
                } else {
                    vec![1]
                }
            });
            let [ours, theirs] = again.keys();
            assert!(ours.is_some() && ours == theirs, "{:?}", again.events);
            assert_ne!(ours, first[0]);
        }
    }
}

/// Replaces one property of a message's token.
fn changed(message: &GenericMessage, name: &str, value: [u8; 32]) -> GenericMessage {
    let mut message = message.clone();
    let mut properties = message.data[0].binary.iter_mut();
    let property = properties.find(|(known, _)| known == name).unwrap();
    property.1 = value.to_vec();
    message
}

/// All messages to send.
fn said(machine: &mut Handshakes) -> Vec<GenericMessage> {
    let all = std::iter::from_fn(|| machine.poll_transmit());
    all.map(|(_, message)| message).collect()
}

/// Found by a fuzzer: a request, changed in an unsigned part, got a second reply of
/// its own. One side accepted one reply, and the other side waited for the final of
/// the other reply.
#[test]
fn a_changed_copy_of_a_request_ends_no_handshake() {
    let (_folder, keystore) = keystore("changed-request");
    let other = |request: &GenericMessage| changed(request, "challenge1", [7; 32]);
    let more = |request: &GenericMessage| {
        let mut request = request.clone();
        request.data[0].binary.push(("more".into(), vec![1]));
        request
    };
    let forgers: [&dyn Fn(&GenericMessage) -> GenericMessage; 2] = [&other, &more];
    for (forge, is_earlier) in forgers.iter().flat_map(|f| [(f, true), (f, false)]) {
        let mut machines = pair(&keystore);
        let now = Instant::from_nanos(1);
        let prefixes = [0, 1].map(|at| machines[at].local_identity().prefix);
        for at in [0, 1] {
            let begun = machines[at].handle_discovered(prefixes[1 - at], true, now);
            begun.unwrap();
        }
        let mut requests = said(&mut machines[0]);
        let request = requests.pop().unwrap();
        let forged = forge(&request);
        let heard = if is_earlier {
            [forged, request]
        } else {
            [request, forged]
        };
        for message in heard {
            machines[1].handle_message(message, now, NOW);
        }
        for at in [1, 0] {
            for message in said(&mut machines[at]) {
                machines[1 - at].handle_message(message, now, NOW);
            }
        }
        let keys = machines
            .each_mut()
            .map(|machine| match machine.poll_event() {
                Some(HandshakeEvent::Authenticated { secret, .. }) => {
                    secret.key_exchange_material()
                }
                other => panic!("{is_earlier}: {other:?}"),
            });
        assert_eq!(keys[0], keys[1]);
    }
}

#[test]
fn forged_restarts_do_not_end_a_completed_handshake() {
    let (_folder, keystore) = keystore("names");
    let mut machines = pair(&keystore);
    let recorded = talk(&mut machines, |_| vec![1]).sent;
    let now = Instant::from_nanos(1_000_000_000);
    let of = |from: usize, word: &str| {
        let sender = machines[from].local_identity().prefix;
        let mut all = recorded.iter();
        let said = |m: &&GenericMessage| {
            m.identity.source_guid.prefix == sender && m.data[0].class.ends_with(word)
        };
        all.find(said).unwrap().clone()
    };
    let (announced, asked) = (of(1, "+AuthReq"), of(0, "+Req"));
    // All that was said, played again, begins nothing.
    for message in recorded {
        for machine in &mut machines {
            machine.handle_message(message.clone(), now, NOW);
        }
    }
    assert!(machines.iter().all(|machine| machine.deadline().is_none()));
    while machines
        .iter_mut()
        .any(|machine| machine.poll_transmit().is_some())
    {}
    // Both sides answer forged messages, and no handshake results.
    for number in 0..200_u8 {
        let forged = changed(&announced, "future_challenge", [number; 32]);
        machines[0].handle_message(forged, now, NOW);
        let forged = changed(&asked, "challenge1", [number; 32]);
        machines[1].handle_message(forged, now, NOW);
    }
    let outcome = talk(&mut machines, |_| vec![1]);
    assert!(
        outcome.events.iter().all(Vec::is_empty),
        "{:?}",
        outcome.events
    );
    let sent = outcome.sent.len();
    assert!(sent < 600, "{sent}");
    assert!(outcome.now <= now + Duration::from_secs(11));
}
