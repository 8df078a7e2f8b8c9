//! Types as peers send them: parsed types survive a round trip.

use std::collections::BTreeMap;

use pteros_msg::typeobject::lookup::{LookupRequest, decode_types, encode_types};
use pteros_msg::typeobject::{
    EquivalenceHash, EquivalenceKind, TypeInformation, TypeObjectId, TypeObjects, type_description,
};

pub fn type_objects(data: &[u8]) {
    let _ = TypeInformation::decode(data);
    if let Ok(Some(request)) = LookupRequest::decode(data) {
        let again = LookupRequest::decode(&request.encode()).expect("our own writing");
        assert_eq!(again.as_ref(), Some(&request));
    }
    if let Ok(Some((identity, objects))) = decode_types(data) {
        let again = decode_types(&encode_types(&identity, &objects)).expect("our own writing");
        assert_eq!(again, Some((identity, objects)));
    }
    let id = TypeObjectId {
        form: EquivalenceKind::Complete,
        hash: EquivalenceHash::of(data),
    };
    let Ok(description) = type_description(id, &BTreeMap::from([(id, data.into())])) else {
        return;
    };
    if let Some(objects) = TypeObjects::new(&description) {
        let all = objects.iter().map(|o| (o.id, o.bytes.clone())).collect();
        assert_eq!(
            type_description(objects.own.complete.id, &all),
            Ok(description)
        );
    }
}
