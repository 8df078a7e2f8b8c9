//! The messages of the TypeLookup service.

use crate::typeobject::vectors::kinds;
use pteros_msg::typeobject::lookup::{
    LookupOperation, LookupRequest, SampleIdentity, decode_types, encode_dependencies, encode_types,
};
use pteros_msg::typeobject::{EquivalenceKind, TypeObjectId, TypeObjects};

const IDENTITY: SampleIdentity = SampleIdentity {
    writer: [7; 16],
    number: (3 << 32) + 9,
};

#[test]
fn requests_are_read_back() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let request = LookupRequest {
        identity: IDENTITY,
        instance: "dds.builtin.TOS.0123".into(),
        operation: LookupOperation::Types,
        ids: objects.iter().map(|object| object.id).collect(),
    };
    let read = LookupRequest::decode(&request.encode()).unwrap();
    assert_eq!(read, Some(request));
}

#[test]
fn replies_are_read_back() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let payload = encode_types(&IDENTITY, objects.iter());
    let (identity, read) = decode_types(&payload).unwrap().unwrap();
    assert_eq!(identity, IDENTITY);
    let expected: Vec<_> = objects.iter().cloned().collect();
    assert_eq!(read, expected);
}

#[test]
fn objects_with_a_wrong_hash_are_left_out() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let mut forged = objects.own.complete.clone();
    forged.id = TypeObjectId {
        form: EquivalenceKind::Complete,
        hash: objects.own.minimal.id.hash,
    };
    let payload = encode_types(&IDENTITY, [&forged, &objects.own.complete]);
    let (_, read) = decode_types(&payload).unwrap().unwrap();
    assert_eq!(read, [objects.own.complete]);
}

#[test]
fn dependencies_are_not_a_reply_to_a_request_for_objects() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let payload = encode_dependencies(&IDENTITY, [&objects.own.complete]);
    assert_eq!(decode_types(&payload), Ok(None));
}
