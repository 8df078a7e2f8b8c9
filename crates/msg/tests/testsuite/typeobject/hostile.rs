//! Arbitrary bytes never cause a panic or large allocations.

use crate::typeobject::vectors::kinds;
use pteros_msg::typeobject::lookup::{
    LookupOperation, LookupRequest, SampleIdentity, decode_types, encode_types,
};
use pteros_msg::typeobject::{
    EquivalenceHash, EquivalenceKind, TypeInformation, TypeObjectId, TypeObjects, type_description,
};
use std::collections::BTreeMap;

fn read_all(bytes: &[u8]) {
    let _ = LookupRequest::decode(bytes);
    let _ = decode_types(bytes);
    let _ = TypeInformation::decode(bytes);
    let id = TypeObjectId {
        form: EquivalenceKind::Complete,
        hash: EquivalenceHash::of(bytes),
    };
    let _ = type_description(id, &BTreeMap::from([(id, bytes.into())]));
}

#[test]
fn mutated_messages_never_panic() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let identity = SampleIdentity::default();
    let request = LookupRequest {
        identity,
        instance: String::new(),
        operation: LookupOperation::Types,
        ids: objects.iter().map(|object| object.id).collect(),
    };
    let seeds = [
        request.encode(),
        encode_types(&identity, objects.iter()),
        objects.information(),
        objects.own.complete.bytes.to_vec(),
    ];
    let mut random = fastrand::Rng::with_seed(1);
    for seed in &seeds {
        for cut in 0..seed.len() {
            read_all(&seed[..cut]);
        }
        for _ in 0..20_000 {
            let mut bytes = seed.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = match random.u8(..3) {
                    0 => 0xff,
                    1 => bytes[at] ^ 1 << random.u8(..8),
                    _ => random.u8(..),
                };
            }
            read_all(&bytes);
        }
    }
}

/// A structure whose only member is of a type that is named by `element`.
fn structure_of(element: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0xf2, 0x51, 1, 0];
    bytes.extend([9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'T']);
    bytes.extend([0; 3]);
    bytes.extend([0; 4]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    bytes.extend(element);
    bytes
}

#[test]
fn a_type_that_nests_without_end_is_refused() {
    // Sequences of sequences of ... in 60 000 levels of five bytes each.
    let levels: Vec<u8> = [0x80, 0xf3, 1, 0, 0].repeat(60_000);
    read_all(&structure_of(&levels));
    let mut request = LookupRequest {
        identity: SampleIdentity::default(),
        instance: String::new(),
        operation: LookupOperation::Types,
        ids: Vec::new(),
    }
    .encode();
    request.extend(levels);
    read_all(&request);
}
