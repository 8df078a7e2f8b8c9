//! What Cyclone DDS said in a handshake, judged as if it had been said to us.

use std::path::Path;

use super::exchange::{Contribution, Rejection, Side, credentials_hash, has_nul, judge, verify};
use super::handshakes::Own;
use super::token::GenericMessage;
use crate::date::UnixTime;
use crate::enclave::Enclave;
use pteros_rtps::id::GuidPrefix;

const NOW: UnixTime = UnixTime(1_893_456_000);

fn recorded(kind: &str) -> (Own, Vec<GenericMessage>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/recorded")
        .join(kind);
    let enclave = Enclave::load(&folder, NOW).unwrap();
    let bytes = std::fs::read(folder.join("handshake.bin")).unwrap();
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
fn what_cyclone_dds_said_is_believed_signatures_and_all() {
    for kind in ["ec", "rsa"] {
        let (own, messages) = recorded(kind);
        let [announcement, request, reply, last] = messages.try_into().unwrap();
        assert_eq!(announcement.class, "dds.sec.auth_request");
        assert_eq!(request.class, "dds.sec.auth");
        assert_eq!(reply.related, request.identity);
        let [initiator, replier] = [&request, &reply].map(|m| m.identity.0.prefix);
        assert!(initiator < replier);
        let [announcement, request, reply, last] =
            [announcement, request, reply, last].map(|mut message| message.data.remove(0));
        assert!(has_nul(&request));

        let peer = judge(&own, &request, initiator, NOW).unwrap();
        let hash = credentials_hash(&request).unwrap();
        let first = Contribution::read(&request, Side::Initiator, hash).unwrap();
        let answering = judge(&own, &reply, replier, NOW).unwrap();
        let hash = credentials_hash(&reply).unwrap();
        let second = Contribution::read(&reply, Side::Replier, hash).unwrap();
        assert_eq!(
            announcement.get("future_challenge"),
            Some(&second.challenge[..])
        );

        first.is_in(&reply, Side::Initiator).unwrap();
        verify(&answering, &reply, Side::Replier, &second, &first).unwrap();
        first.is_in(&last, Side::Initiator).unwrap();
        second.is_in(&last, Side::Replier).unwrap();
        verify(&peer, &last, Side::Initiator, &first, &second).unwrap();
        let wrong = verify(&peer, &last, Side::Initiator, &second, &first);
        assert_eq!(wrong, Err(Rejection::Signature));
    }
}
