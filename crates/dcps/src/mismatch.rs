//! Type compatibility of two endpoints of one topic, as far as it only leads to a
//! warning: their members differ, or only one of them has a key.

use pteros_msg::typeobject::TypeInformation;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::VendorId;

/// Whether both announce their type's members, and these differ.
pub fn has_different_members(one: &EndpointData, other: &EndpointData) -> bool {
    let (Some(one), Some(other)) = (&one.type_information, &other.type_information) else {
        return false;
    };
    let minimal = |announced| Some(TypeInformation::decode(announced).ok()?.minimal?.id);
    match (minimal(one), minimal(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// Other implementations match endpoints only if both have a key, or neither.
pub fn is_unmatched_by_key(reader: &EndpointData, writer: &EndpointData, by: VendorId) -> bool {
    let keyed = |data: &EndpointData| data.guid.entity.is_keyed();
    by != VendorId::PTEROS && keyed(writer) && !keyed(reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;

    fn endpoint(kind: u8) -> EndpointData {
        let guid = GuidPrefix([1; 12]).with(EntityId::new([0, 0, 1], kind));
        EndpointData::new(guid, "rt/t", "T", EndpointQos::default())
    }

    #[test]
    fn other_implementations_do_not_match_a_keyless_reader_with_a_keyed_writer() {
        let readers = [
            endpoint(EntityId::KIND_READER_NO_KEY),
            endpoint(EntityId::KIND_READER_WITH_KEY),
        ];
        let keyed = endpoint(EntityId::KIND_WRITER_WITH_KEY);
        let plain = endpoint(EntityId::KIND_WRITER_NO_KEY);
        let left_out = |writer, by| {
            readers
                .each_ref()
                .map(|r| is_unmatched_by_key(r, writer, by))
        };
        assert_eq!(left_out(&keyed, VendorId::CYCLONE), [true, false]);
        assert_eq!(left_out(&plain, VendorId::CYCLONE), [false, false]);
        assert_eq!(left_out(&keyed, VendorId::PTEROS), [false, false]);
    }
}
