//! Type descriptions, which may come from the network, that are endless or huge.

use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};

use crate::regressions::within;

fn nested(name: &str, kind: u8, capacity: u64, of: &str) -> IndividualTypeDescription {
    IndividualTypeDescription {
        type_name: name.into(),
        fields: vec![Field {
            name: "inner".into(),
            field_type: FieldType {
                type_id: kind,
                capacity,
                nested_type_name: of.into(),
                ..FieldType::default()
            },
            ..Field::default()
        }],
        ..IndividualTypeDescription::default()
    }
}

/// Cyclone DDS's and Fast DDS's type graphs (fuzzed since, for this): a type
/// that contains itself, directly and in a circle.
#[test]
fn a_type_that_contains_itself_is_refused() {
    let own = nested("a/msg/A", type_id::NESTED, 0, "a/msg/A");
    let description = TypeDescription {
        type_description: own.clone(),
        referenced: vec![own],
    };
    assert!(within(256 << 10, || DynamicType::new(&description)).is_err());
    let circle = TypeDescription {
        type_description: nested("a/msg/A", type_id::NESTED, 0, "a/msg/B"),
        referenced: vec![
            nested(
                "a/msg/B",
                type_id::NESTED + type_id::UNBOUNDED_SEQUENCE,
                0,
                "a/msg/C",
            ),
            nested("a/msg/C", type_id::NESTED, 0, "a/msg/B"),
        ],
    };
    assert!(within(256 << 10, || DynamicType::new(&circle)).is_err());
}

/// Arrays of arrays of arrays: a description of a few hundred bytes whose
/// default value would fill the memory (the class of CVE-2024-30259: sizes
/// taken from the wire).
#[test]
fn arrays_that_multiply_are_refused() {
    let kind = type_id::NESTED + type_id::ARRAY;
    for capacity in [1_000, 65_536, u64::from(u32::MAX), u64::MAX] {
        let description = TypeDescription {
            type_description: nested("a/msg/A", kind, capacity, "a/msg/B"),
            referenced: vec![
                nested("a/msg/B", kind, capacity, "a/msg/C"),
                nested("a/msg/C", type_id::UINT8 + type_id::ARRAY, capacity, ""),
            ],
        };
        assert!(within(256 << 10, || DynamicType::new(&description)).is_err());
    }
}

/// A chain of types as long as the stack (CVE-2020-18734's stack, by depth).
#[test]
fn a_chain_of_a_thousand_types_is_refused() {
    let name = |n: usize| format!("a/msg/A{n}");
    let referenced = (1..1_000).map(|n| nested(&name(n), type_id::NESTED, 0, &name(n + 1)));
    let mut referenced: Vec<_> = referenced.collect();
    referenced.push(nested(&name(1_000), type_id::UINT8, 0, ""));
    let description = TypeDescription {
        type_description: nested(&name(0), type_id::NESTED, 0, &name(1)),
        referenced,
    };
    assert!(within(4 << 20, || DynamicType::new(&description)).is_err());
}

/// Kinds and capacities that mean nothing (cyclonedds fuzzes its type objects
/// for these).
#[test]
fn kinds_that_do_not_exist_are_refused() {
    for kind in 0..=255 {
        for capacity in [0, 1, u64::MAX] {
            let description = TypeDescription {
                type_description: nested("a/msg/A", kind, capacity, ""),
                referenced: Vec::new(),
            };
            let ty = within(256 << 10, || DynamicType::new(&description));
            if let Ok(ty) = ty {
                let message = within(256 << 10, || DynamicMessage::new(&ty));
                assert_eq!(message.fields().len(), 1);
            }
        }
    }
}
