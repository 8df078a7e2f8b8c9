//! Types as peers tell them: what was read is written and read back the same.

use std::collections::BTreeMap;

use pteros_msg::typeobject::lookup::{Request, decode_types, encode_types};
use pteros_msg::typeobject::{
    EquivalenceHash, Form, ObjectId, TypeInformation, TypeObjects, described,
};

pub fn type_objects(data: &[u8]) {
    let _ = TypeInformation::decode(data);
    if let Ok(Some(request)) = Request::decode(data) {
        let again = Request::decode(&request.encode()).expect("our own writing");
        assert_eq!(again.as_ref(), Some(&request));
    }
    if let Ok(Some((identity, objects))) = decode_types(data) {
        let again = decode_types(&encode_types(&identity, &objects)).expect("our own writing");
        assert_eq!(again, Some((identity, objects)));
    }
    let id = ObjectId {
        form: Form::Complete,
        hash: EquivalenceHash::of(data),
    };
    let Ok(description) = described(id, &BTreeMap::from([(id, data.into())])) else {
        return;
    };
    if let Some(objects) = TypeObjects::new(&description) {
        let all = objects.iter().map(|o| (o.id, o.bytes.clone())).collect();
        assert_eq!(described(objects.own.complete.id, &all), Ok(description));
    }
}
