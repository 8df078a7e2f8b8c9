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

/// Readers that check for all members, as Dust DDS, drop a message that lacks one. The
/// expected bytes are those of the specification's IDL: the member's header with size, then
/// an empty list, which has a size of its own where its elements are structures.
#[test]
fn members_that_are_empty_are_written_nevertheless() {
    let objects = TypeObjects::new(&kinds()).unwrap();
    let complete_to_minimal = [0x77, 0x65, 0x8e, 0x4b, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    for count in 0..3 {
        let payload = encode_types(&IDENTITY, objects.iter().take(count));
        assert!(payload.ends_with(&complete_to_minimal), "{payload:x?}");
    }
    let continuation_point = [0xd2, 0xe3, 0x08, 0x45, 4, 0, 0, 0, 0, 0, 0, 0];
    let payload = encode_dependencies(&IDENTITY, objects.iter());
    assert!(payload.ends_with(&continuation_point), "{payload:x?}");
    let mut request = LookupRequest {
        identity: IDENTITY,
        instance: String::new(),
        operation: LookupOperation::Dependencies,
        ids: objects.iter().map(|object| object.id).collect(),
    };
    assert!(request.encode().ends_with(&continuation_point));
    assert_eq!(
        LookupRequest::decode(&request.encode()),
        Ok(Some(request.clone()))
    );
    request.operation = LookupOperation::Types;
    assert!(!request.encode().ends_with(&continuation_point));
}
