//! Hashes that the Python package `cyclonedds` 11.0.1 computes for the same
//! types written as its classes; equal hashes are equal bytes.

use pteros_interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros_msg::Message;
use pteros_msg::describe::TypeDescription;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::schema::InterfaceKind;
use pteros_msg::typeobject::{
    EquivalenceKind, TypeInformation, TypeObject, TypeObjects, is_announced, type_description,
};
use std::collections::BTreeMap;

/// Every kind of member that ROS 2 and the package both have.
pub const KINDS: &str = "
bool a
int8 b
uint8 c
int16 d
uint16 e
int32 f
uint32 g
int64 h
uint64 i
float32 j
float64 k
string l
string<=10 m
string<=300 n
int32[] o
int32[<=5] p
float64[<=1000] q
float64[9] r
uint16[300] s
string[] t
std_msgs/MultiArrayDimension[3] u
std_msgs/MultiArrayDimension v
std_msgs/MultiArrayLayout[<=4] w
string<=7[] x
";

pub fn kinds() -> TypeDescription {
    let mut library = InterfaceLibrary::default();
    for name in ["MultiArrayLayout", "MultiArrayDimension"] {
        let full = format!("std_msgs/msg/{name}");
        library.copy_definition(pteros_interfaces::library(), &full);
    }
    library.insert_text("vectors", InterfaceKind::Message, "Kinds", KINDS, "here");
    library.describe("vectors/msg/Kinds").unwrap()
}

fn objects(description: &TypeDescription) -> TypeObjects {
    TypeObjects::new(description).expect("objects")
}

/// Hash of the minimal and of the complete object, and their sizes.
type Hashes = (&'static str, &'static str, usize, usize);

#[track_caller]
fn assert_hashes(minimal: &TypeObject, complete: &TypeObject, expected: Hashes) {
    assert_eq!(minimal.bytes.len(), expected.2);
    assert_eq!(complete.bytes.len(), expected.3);
    assert_eq!(minimal.id.hash.to_string(), expected.0);
    assert_eq!(complete.id.hash.to_string(), expected.1);
    assert_eq!(minimal.id.form, EquivalenceKind::Minimal);
    assert_eq!(complete.id.form, EquivalenceKind::Complete);
}

const DIMENSION: Hashes = (
    "adc347b48d2d7b27c1e10885b69b",
    "2b419b9a1e0717c6f1563534838d",
    71,
    145,
);
const LAYOUT: Hashes = (
    "3da6301ed97ae977de0d658704ac",
    "d06335d92da39090ca7ef874783a",
    75,
    142,
);

#[test]
fn a_string_message_has_the_hashes_that_cyclone_computes() {
    let found = objects(Text::type_description());
    let expected = (
        "59656d080ab926a333a69d269cb1",
        "c3da80d638e91b9fad0a6b765cc2",
        40,
        83,
    );
    assert_hashes(&found.own.minimal, &found.own.complete, expected);
    assert!(found.referenced.is_empty());
    let information: String = found
        .information()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        information,
        "6000000001100040280000002400000014000000f159656d080ab926a333a69d269cb100\
         2800000000000000040000000000000002100040280000002400000014000000f2c3da80\
         d638e91b9fad0a6b765cc20053000000000000000400000000000000"
    );
}

#[test]
fn sequences_of_structures_have_the_hashes_that_cyclone_computes() {
    let found = objects(UInt8MultiArray::type_description());
    let expected = (
        "c47d25e31d5b741fbac499662c4b",
        "ce2a1bae12da0522d0fcea73c1a4",
        76,
        139,
    );
    assert_hashes(&found.own.minimal, &found.own.complete, expected);
    let [dimension, layout] = &found.referenced[..] else {
        panic!("{} are referred to", found.referenced.len());
    };
    assert_hashes(&dimension.minimal, &dimension.complete, DIMENSION);
    assert_hashes(&layout.minimal, &layout.complete, LAYOUT);
    let information: String = found
        .information()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        information,
        "c000000001100040580000005400000014000000f1c47d25e31d5b741fbac499662c4b00\
         4c00000002000000340000000200000014000000f1adc347b48d2d7b27c1e10885b69b00\
         4700000014000000f13da6301ed97ae977de0d658704ac004b0000000210004058000000\
         5400000014000000f2ce2a1bae12da0522d0fcea73c1a4008b0000000200000034000000\
         0200000014000000f22b419b9a1e0717c6f1563534838d009100000014000000f2d06335\
         d92da39090ca7ef874783a008e000000"
    );
}

#[test]
fn every_kind_of_member_has_the_hashes_that_cyclone_computes() {
    let found = objects(&kinds());
    let expected = (
        "421379a9e22a833426d8c152d800",
        "235391e036b19058469ff35de6fa",
        533,
        664,
    );
    assert_hashes(&found.own.minimal, &found.own.complete, expected);
}

#[test]
fn keys_and_extensibility_enter_the_hash_as_cyclone_computes_it() {
    let mut library = InterfaceLibrary::default();
    let text = "# @appendable\n# @dds_name ShapeType\nstring<=128 color # @key\nint32 x\nint32 y\n\
                int32 shapesize\nuint8[] additional_payload_size\n";
    library.insert_text("vectors", InterfaceKind::Message, "Shape", text, "here");
    let description = library.describe("vectors/msg/Shape").unwrap();
    let found = objects(&description);
    let expected = (
        "1e426789957ce858cfdf3191a589",
        "5c0a127987e5e2f3746b1f80a5b9",
        108,
        178,
    );
    assert_hashes(&found.own.minimal, &found.own.complete, expected);
    assert!(
        !is_announced(&description),
        "compilers differ in extensibility"
    );
    assert!(is_announced(Text::type_description()));
    let octets = UInt8MultiArray::type_description();
    assert!(!is_announced(octets), "Cyclone DDS 0.10 crashes on them");
}

#[test]
fn information_is_read_back() {
    let found = objects(&kinds());
    let read = TypeInformation::decode(&found.information()).unwrap();
    assert_eq!(read.minimal.unwrap().id, found.own.minimal.id);
    let complete = read.complete.unwrap();
    assert_eq!(complete.id, found.own.complete.id);
    assert_eq!(complete.object_bytes, 664);
    let ids: Vec<_> = read.dependencies.iter().map(|d| d.id).collect();
    let expected: Vec<_> = found.referenced.iter().map(|p| p.complete.id).collect();
    assert_eq!(ids, expected);
}

/// As TypeObjects have it: no defaults, `byte` is `uint8`, and a type that ROS
/// 2 does not name has its DDS name alone.
fn without_defaults(description: &TypeDescription) -> TypeDescription {
    let mut description = description.clone();
    let own = core::iter::once(&mut description.type_description);
    for ty in own.chain(&mut description.referenced) {
        if let Some(name) = &ty.dds_name {
            ty.type_name = name.clone();
        }
        for field in &mut ty.fields {
            field.default_value = String::new();
            if field.field_type.type_id % 48 == 16 {
                field.field_type.type_id -= 16 - 3;
            }
        }
    }
    description
}

#[test]
fn every_built_in_type_comes_back_from_its_objects() {
    let library = pteros_interfaces::library();
    let mut count = 0;
    let names: Vec<String> = library
        .names()
        .flat_map(|name| library.derived_names(name).unwrap_or_default())
        .collect();
    for name in names {
        let Ok(description) = library.describe(&name) else {
            continue;
        };
        let found = TypeObjects::new(&description).unwrap_or_else(|| panic!("{name}"));
        let all: BTreeMap<_, _> = found
            .iter()
            .map(|object| (object.id, object.bytes.clone()))
            .collect();
        let back =
            type_description(found.own.complete.id, &all).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(back, without_defaults(&description), "{name}");
        assert!(DynamicType::new(&back).is_ok(), "{name}");
        count += 1;
    }
    assert!(count > 150, "{count} types");
}
