//! Fifty participants of one keystore start at once on one host. All authenticate
//! to each other, 1225 handshakes in all, within five seconds of fake time, though
//! the network loses some messages. The computing time is printed, not checked:
//! machines differ.
#![allow(clippy::disallowed_methods, reason = "measures a real machine")]

use crate::support;
use pteros_test_support::folder::Folder;

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::time::{Duration, Instant};
use pteros_security::auth::{GenericMessage, HandshakeEvent, Handshakes, LocalIdentity};
use pteros_security::crypto::KeyMaterial;
use pteros_security::enclave::Enclave;
use pteros_security::keystore::{Keystore, Options};
use std::collections::BTreeMap;
use support::NOW;

const PARTICIPANTS: usize = 50;
const START: Instant = Instant::from_nanos(1_000_000_000);
/// One step of the fake network: a message arrives in the next step.
const STEP: Duration = Duration::from_millis(5);

/// Fifty, of ten enclaves.
fn crowd(folder: &Folder) -> Vec<Handshakes> {
    let options = Options::default();
    let keystore = Keystore::create(folder, &options, NOW).unwrap();
    let participant = |number: usize| {
        let name = format!("/robot/part_{}", number % 10);
        let made = keystore.create_enclave(&name, None, &options, NOW);
        let enclave = Enclave::load(&made.unwrap(), NOW).unwrap();
        let prefix = LocalIdentity::prefix_for(&enclave, GuidPrefix([number as u8; 12])).unwrap();
        let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
        Handshakes::new(LocalIdentity {
            participant_data: [&[0x00, 0x50, 0, 16], &guid[..], &[0, 1, 0, 0]].concat(),
            enclave,
            prefix,
        })
    };
    (0..PARTICIPANTS).map(participant).collect()
}

#[test]
fn fifty_participants_authenticate_each_other_within_five_seconds() {
    let folder = Folder::new("crowd");
    let mut crowd = crowd(&folder);
    let prefixes: Vec<GuidPrefix> = crowd
        .iter()
        .map(|one| one.local_identity().prefix)
        .collect();
    let began = std::time::Instant::now();
    for machine in &mut crowd {
        for peer in &prefixes {
            machine.handle_discovered(*peer, true, START).unwrap();
        }
    }
    let mut secrets: BTreeMap<(GuidPrefix, GuidPrefix), KeyMaterial> = BTreeMap::new();
    let mut now = START;
    let mut said = 0_usize;
    let complete = PARTICIPANTS * (PARTICIPANTS - 1);
    while secrets.len() < complete {
        let mut under_way: Vec<(GuidPrefix, Vec<u8>)> = Vec::new();
        for machine in &mut crowd {
            while let Some((to, message)) = machine.poll_transmit() {
                said += 1;
                // One in twenty is lost.
                if said % 20 != 7 {
                    under_way.push((to, message.to_payload()));
                }
            }
        }
        now = now + STEP;
        for (to, payload) in under_way {
            let at = prefixes.iter().position(|prefix| *prefix == to).unwrap();
            let message = GenericMessage::from_payload(&payload).unwrap();
            crowd[at].handle_message(message, now, NOW);
        }
        for machine in &mut crowd {
            machine.handle_timeout(now);
            let own = machine.local_identity().prefix;
            while let Some(event) = machine.poll_event() {
                match event {
                    HandshakeEvent::Authenticated { prefix, secret, .. } => {
                        let former = secrets.insert((own, prefix), secret.key_exchange_material());
                        assert!(former.is_none(), "twice");
                    }
                    HandshakeEvent::Failed { rejection: why, .. } => panic!("{why}"),
                }
            }
        }
        assert!(
            now < START + Duration::from_secs(5),
            "{} of {complete} are authenticated",
            secrets.len()
        );
    }
    for ((one, other), secret) in &secrets {
        assert_eq!(secret, &secrets[&(*other, *one)]);
    }
    // Five messages a pair, and what was lost once more.
    let pairs = complete / 2;
    assert!(said <= pairs * 7, "{said} messages for {pairs} pairs");
    println!(
        "{pairs} handshakes: {:?} of work, {:?} of fake time, {said} messages",
        began.elapsed(),
        now - START
    );
}
