//! Links between hubs that ask for more than the same user.

use std::sync::Arc;

use pteros_shm::{Hub, HubOptions, LinkEvent, Name, Reason, Warrant};

use crate::pair::{link, open, options, pattern, receive, turn};

/// Not for use beyond tests: FNV-1a of secret and statement.
#[derive(Debug)]
struct Secret {
    word: &'static str,
    /// Whom it is not shared with.
    but: Option<Name>,
}

impl Warrant for Secret {
    fn code(&self, peer: &Name, statement: &[u8]) -> Option<[u8; 16]> {
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

fn guarded(word: &'static str, but: Option<Name>) -> HubOptions {
    let mut options = options();
    options.warrant = Some(Arc::new(Secret { word, but }));
    options
}

/// How the link that `a` asks for ends.
fn outcome(a: &Hub, b: &Hub) -> LinkEvent {
    a.connect(b.name(), 0).unwrap();
    for _ in 0..10 {
        let of_b = turn(b, 0);
        let up = of_b
            .iter()
            .any(|event| matches!(event, LinkEvent::Up { .. }));
        if let Some(event) = turn(a, 0).first() {
            let is_up = matches!(event, LinkEvent::Up { .. });
            assert!(is_up || !up, "up at one end: {event:?}");
            return *event;
        }
    }
    panic!("nothing came of it");
}

#[test]
fn who_shares_a_secret_is_linked_and_messages_pass() {
    let (a, b) = (open(guarded("one", None)), open(guarded("one", None)));
    let (ab, _) = link(&a, &b);
    let body = pattern(2_000, 3);
    a.send(ab, b"head", &body, b"").unwrap();
    let (whole, _) = receive(&b).expect("it came");
    assert_eq!(whole, [b"head", &body[..]].concat());
}

#[test]
fn who_does_not_is_refused_whoever_asks() {
    let a = open(guarded("one", None));
    let others = [
        open(guarded("another", None)),
        open(guarded("one", Some(a.name()))),
        open(options()),
    ];
    for other in &others {
        for (from, to) in [(&a, other), (other, &a)] {
            let LinkEvent::Refused { reason, .. } = outcome(from, to) else {
                panic!("linked");
            };
            // One without a secret of its own only sees that nothing fits.
            let is_told = matches!(reason, Reason::Unproven | Reason::Nonsense(_));
            assert!(is_told, "{reason:?}");
            turn(from, 0);
            turn(to, 0);
            assert_eq!((from.counts().links, to.counts().links), (0, 0));
        }
    }
}
