//! Recorded handshakes of other stacks, validated as if they had been sent to us.

use std::path::Path;

use super::handshake_tokens::{
    Contribution, HandshakeRejection, HandshakeSide, credentials_hash, has_nul, name_of,
    validate_peer, verify,
};
use super::handshakes::LocalIdentity;
use super::key_agreement::Agreement;
use super::token::GenericMessage;
use crate::date::UnixTime;
use crate::enclave::Enclave;
use pteros_rtps::id::GuidPrefix;

const NOW: UnixTime = UnixTime(1_893_456_000);

fn recorded(kind: &str, stack: &str) -> (LocalIdentity, Vec<GenericMessage>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/recorded")
        .join(kind);
    let enclave = Enclave::load(&folder, NOW).unwrap();
    let bytes = std::fs::read(folder.join(stack).with_extension("bin")).unwrap();
    let mut rest = bytes.as_slice();
    let mut messages = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (payload, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        messages.push(GenericMessage::from_payload(payload).unwrap());
        rest = after;
    }
    let own = LocalIdentity {
        enclave,
        prefix: GuidPrefix([0; 12]),
        participant_data: Vec::new(),
    };
    (own, messages)
}

#[test]
fn recorded_handshakes_of_other_stacks_validate() {
    for (stack, kind) in [
        ("cyclone", "ec"),
        ("cyclone", "rsa"),
        ("fastdds", "ec"),
        ("fastdds", "rsa"),
    ] {
        let (own, mut messages) = recorded(kind, stack);
        // Fast DDS announces no challenge.
        let announced = (messages.len() == 4).then(|| messages.remove(0));
        assert_eq!(announced.is_some(), stack == "cyclone");
        let [request, reply, last] = messages.try_into().unwrap();
        assert_eq!(request.class, "dds.sec.auth");
        assert_eq!(reply.related, request.identity);
        let [initiator, replier] = [&request, &reply].map(|m| m.identity.source_guid.prefix);
        assert!(initiator < replier);
        let [request, reply, last] =
            [request, reply, last].map(|mut message| message.data.remove(0));

        let peer = validate_peer(&own, &request, initiator, NOW).unwrap();
        let hash = credentials_hash(&request).unwrap();
        let first = Contribution::read(&request, HandshakeSide::Initiator, hash).unwrap();
        let answering = validate_peer(&own, &reply, replier, NOW).unwrap();
        let hash = credentials_hash(&reply).unwrap();
        let second = Contribution::read(&reply, HandshakeSide::Replier, hash).unwrap();
        if let Some(announced) = announced {
            assert_eq!(announced.class, "dds.sec.auth_request");
            let challenge = announced.data[0].get("future_challenge");
            assert_eq!(challenge, Some(&second.challenge[..]));
        }

        first
            .check_repeated_in(&reply, HandshakeSide::Initiator)
            .unwrap();
        verify(&answering, &reply, HandshakeSide::Replier, &second, &first).unwrap();
        first
            .check_repeated_in(&last, HandshakeSide::Initiator)
            .unwrap();
        second
            .check_repeated_in(&last, HandshakeSide::Replier)
            .unwrap();
        verify(&peer, &last, HandshakeSide::Initiator, &first, &second).unwrap();
        let wrong = verify(&peer, &last, HandshakeSide::Initiator, &second, &first);
        assert_eq!(wrong, Err(HandshakeRejection::Signature));

        // A reply is made for either key agreement algorithm.
        let name = name_of(&request, "c.kagree_algo").unwrap();
        let answer = Agreement::answering(&name, &first.key).unwrap().unwrap();
        assert!(answer.secret(&first.key).is_some() && answer.secret(&second.key).is_some());
        assert_eq!(has_nul(&request), stack == "cyclone");
        assert_eq!(name.contains("MODP"), stack == "fastdds");
    }
}
