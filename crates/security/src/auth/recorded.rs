//! What other stacks said in a handshake, judged as if it had been said to us.

use std::path::Path;

use super::agreement::Agreement;
use super::exchange::{
    Contribution, Rejection, Side, credentials_hash, has_nul, judge, name_of, verify,
};
use super::handshakes::Own;
use super::token::GenericMessage;
use crate::date::UnixTime;
use crate::enclave::Enclave;
use pteros_rtps::id::GuidPrefix;

const NOW: UnixTime = UnixTime(1_893_456_000);

fn recorded(kind: &str, stack: &str) -> (Own, Vec<GenericMessage>) {
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
    let own = Own {
        enclave,
        prefix: GuidPrefix([0; 12]),
        participant_data: Vec::new(),
    };
    (own, messages)
}

#[test]
fn what_other_stacks_said_is_believed_signatures_and_all() {
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
        let [initiator, replier] = [&request, &reply].map(|m| m.identity.0.prefix);
        assert!(initiator < replier);
        let [request, reply, last] =
            [request, reply, last].map(|mut message| message.data.remove(0));

        let peer = judge(&own, &request, initiator, NOW).unwrap();
        let hash = credentials_hash(&request).unwrap();
        let first = Contribution::read(&request, Side::Initiator, hash).unwrap();
        let answering = judge(&own, &reply, replier, NOW).unwrap();
        let hash = credentials_hash(&reply).unwrap();
        let second = Contribution::read(&reply, Side::Replier, hash).unwrap();
        if let Some(announced) = announced {
            assert_eq!(announced.class, "dds.sec.auth_request");
            let challenge = announced.data[0].get("future_challenge");
            assert_eq!(challenge, Some(&second.challenge[..]));
        }

        first.is_in(&reply, Side::Initiator).unwrap();
        verify(&answering, &reply, Side::Replier, &second, &first).unwrap();
        first.is_in(&last, Side::Initiator).unwrap();
        second.is_in(&last, Side::Replier).unwrap();
        verify(&peer, &last, Side::Initiator, &first, &second).unwrap();
        let wrong = verify(&peer, &last, Side::Initiator, &second, &first);
        assert_eq!(wrong, Err(Rejection::Signature));

        // Whichever way to agree they took, their keys are answered.
        let name = name_of(&request, "c.kagree_algo").unwrap();
        let answer = Agreement::answering(&name, &first.key).unwrap().unwrap();
        assert!(answer.secret(&first.key).is_some() && answer.secret(&second.key).is_some());
        assert_eq!(has_nul(&request), stack == "cyclone");
        assert_eq!(name.contains("MODP"), stack == "fastdds");
    }
}
