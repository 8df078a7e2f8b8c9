//! Peer authenticators: connections that need more than the same user.

use std::sync::Arc;

use pteros_shm::{
    ConnectionEvent, DisconnectReason, PeerAuthenticator, PeerName, SharedMemoryTransport,
    SharedMemoryTransportOptions,
};

use crate::transport::pair::{connection, open, options, pattern, poll, receive};

/// Not for use beyond tests: FNV-1a of secret and statement.
#[derive(Debug)]
struct Secret {
    word: &'static str,
    /// The peer without the secret.
    but: Option<PeerName>,
}

impl PeerAuthenticator for Secret {
    fn mac(&self, peer: &PeerName, statement: &[u8]) -> Option<[u8; 16]> {
        if self.but.as_ref() == Some(peer) {
            return None;
        }
        let hash = |first: u64| {
            let bytes = self.word.bytes().chain(statement.iter().copied());
            bytes.fold(first, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        let mut code = [0; 16];
        code[..8].copy_from_slice(&hash(0xcbf2_9ce4_8422_2325).to_le_bytes());
        code[8..].copy_from_slice(&hash(7).to_le_bytes());
        Some(code)
    }
}

fn guarded(word: &'static str, but: Option<PeerName>) -> SharedMemoryTransportOptions {
    let mut options = options();
    options.peer_authenticator = Some(Arc::new(Secret { word, but }));
    options
}

/// The outcome of the connection that `a` starts.
fn outcome(a: &SharedMemoryTransport, b: &SharedMemoryTransport) -> ConnectionEvent {
    a.connect(b.name(), 0).unwrap();
    for _ in 0..10 {
        let of_b = poll(b, 0);
        let up = of_b
            .iter()
            .any(|event| matches!(event, ConnectionEvent::Connected { .. }));
        if let Some(event) = poll(a, 0).first() {
            let is_up = matches!(event, ConnectionEvent::Connected { .. });
            assert!(is_up || !up, "up at one end: {event:?}");
            return *event;
        }
    }
    panic!("nothing came of it");
}

#[test]
fn peers_with_a_shared_secret_connect() {
    let (a, b) = (open(guarded("one", None)), open(guarded("one", None)));
    let (ab, _) = connection(&a, &b);
    let body = pattern(2_000, 3);
    a.send(ab, b"head", &body, b"").unwrap();
    let (whole, _) = receive(&b).expect("it came");
    assert_eq!(whole, [b"head", &body[..]].concat());
}

#[test]
fn peers_without_the_secret_are_refused_in_both_directions() {
    let a = open(guarded("one", None));
    let others = [
        open(guarded("another", None)),
        open(guarded("one", Some(a.name()))),
        open(options()),
    ];
    for other in &others {
        for (from, to) in [(&a, other), (other, &a)] {
            let ConnectionEvent::Refused { reason, .. } = outcome(from, to) else {
                panic!("linked");
            };
            // One without a secret of its own only sees that nothing fits.
            let is_told = matches!(
                reason,
                DisconnectReason::Unauthenticated | DisconnectReason::ProtocolViolation(_)
            );
            assert!(is_told, "{reason:?}");
            poll(from, 0);
            poll(to, 0);
            assert_eq!((from.counts().connections, to.counts().connections), (0, 0));
        }
    }
}
