//! Keyed and appendable types, typed and dynamic, against the bytes that
//! Cyclone DDS makes of the same types (Python package cyclonedds 11.0.1,
//! `serialize` and `serialize_key`; key hashes by the rule of its C library).

use keyed::msg::{
    Fixed, Grown, Growns, Inner, Lists, Nothing, Outer, Point, Small, Smalls, Tag, Wide, Wrap,
    Wrapped,
};
use pteros_interfaces::dds_shapes::msg::ShapeType;
use pteros_msg::cdr::{DecodeError, Encoder, Endian};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::key::{from_key_payload, key_hash, key_payload, key_reader};
use pteros_msg::{KeyHash, Message, Representation, from_payload, to_payload};

// Written by `tests/keyed_types.rs` from `definitions.rs`.
include!("generated.txt");

const BOTH: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

fn blue() -> ShapeType {
    ShapeType {
        color: "BLUE".into(),
        x: 10,
        y: -20,
        shapesize: 30,
        additional_payload_size: vec![1, 255],
    }
}

fn inner(a: u8, skip: i64, b: i16) -> Inner {
    Inner { a, skip, b }
}

fn outer() -> Outer {
    Outer {
        inner: inner(1, 2, 3),
        text: "t".into(),
        point: Point { x: 4, y: 5 },
    }
}

fn wrapped() -> Wrapped {
    let wrap = |inner| Wrap { inner, z: 9 };
    Wrapped {
        wrap: wrap(inner(1, 2, 3)),
        more: vec![wrap(inner(4, 5, 6))],
        n: 7,
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn dynamic_type<T: Message>() -> DynamicType {
    DynamicType::new(T::type_description()).unwrap()
}

/// Samples and keys in XCDR1 and XCDR2 are these bytes, both ways, for the
/// generated type and the dynamic one.
fn has_bytes<T: Message>(value: &T, samples: [&str; 2], keys: [&str; 2]) {
    let ty = dynamic_type::<T>();
    let readers = [key_reader::<T>().unwrap(), ty.key_reader().unwrap()];
    for ((representation, sample), key) in BOTH.into_iter().zip(samples).zip(keys) {
        let (sample, key) = (hex(sample), hex(key));
        assert_eq!(unpadded(to_payload(value, representation)), sample);
        assert_eq!(from_payload::<T>(&sample).as_ref(), Ok(value));
        // We leave the sizes out of keys, as Cyclone's C library does.
        let ours = key_payload(value, representation);
        assert!(ours.len() > 16, "Fast DDS would take it for a hash");
        let bare = unsized_key(&key, value);
        assert_eq!(&ours[..2], &bare[..2]);
        assert_eq!(&ours[4..bare.len()], &bare[4..]);
        assert_eq!(from_key_payload::<T>(&ours), from_key_payload(&key));
        let dynamic = DynamicMessage::from_payload(&ty, &sample).unwrap();
        assert_eq!(unpadded(dynamic.to_payload(representation)), sample);
        assert_eq!(dynamic.key_payload(representation), ours);
        assert_eq!(dynamic.key_hash(), key_hash(value));

        let alone = from_key_payload::<T>(&key).unwrap();
        let dynamic = DynamicMessage::from_key_payload(&ty, &key).unwrap();
        assert_eq!(dynamic.to_message::<T>().as_ref(), Ok(&alone));
        assert_eq!(key_hash(&alone), key_hash(value));
        for reader in &readers {
            assert_eq!(reader.of_sample(&sample), Ok(key_hash(value)));
            assert_eq!(reader.of_key(&key), Ok(key_hash(value)));
            assert_eq!(reader.of_key(&ours), Ok(key_hash(value)));
            assert_eq!(reader.key_of(&sample).as_ref(), Ok(&ours));
        }
    }
}

/// The key without sizes of structures: the bytes that enter its hash, in
/// little endian order.
fn unsized_key<T: Message>(sized: &[u8], value: &T) -> Vec<u8> {
    if sized[1] < 6 {
        return sized.to_vec();
    }
    let mut key = sized[..4].to_vec();
    let mut body = Vec::new();
    let mut out = Encoder::to_vec(&mut body, Representation::Xcdr2, Endian::Little).undelimited();
    value.encode_key(&mut out);
    key.extend(body);
    key
}

/// Cyclone's Python leaves out the padding and its count; its C does not.
fn unpadded(mut payload: Vec<u8>) -> Vec<u8> {
    payload.truncate(payload.len() - usize::from(payload[3]));
    payload[3] = 0;
    payload
}

fn hash_is<T: Message>(value: &T, expected: &str) {
    assert_eq!(key_hash(value).to_string(), expected);
    let dynamic = DynamicMessage::from_message(&dynamic_type::<T>(), value).unwrap();
    assert_eq!(dynamic.key_hash().to_string(), expected);
}

#[test]
fn samples_and_keys_have_cyclones_bytes() {
    has_bytes(
        &blue(),
        [
            "0001000005000000424c5545000000000a000000ecffffff1e0000000200000001ff",
            "000900001e00000005000000424c5545000000000a000000ecffffff1e0000000200000001ff",
        ],
        [
            "0001000005000000424c554500",
            "000900000900000005000000424c554500",
        ],
    );
    let fixed = Fixed {
        id: 1,
        big: 2,
        text: "hi".into(),
    };
    has_bytes(
        &fixed,
        [
            "000100000100000000000000020000000000000003000000686900",
            "0007000001000000020000000000000003000000686900",
        ],
        [
            "0001000001000000000000000200000000000000",
            "00070000010000000200000000000000",
        ],
    );
    hash_is(&fixed, "00000001000000000000000200000000");
}

#[test]
fn a_key_payload_has_no_sizes_like_cyclones_c_library() {
    // Cyclone DDS 0.10.2 sends this to dispose of BLUE with XCDR2.
    let key = hex("0009000305000000424c554500000000");
    let ours = key_payload(&blue(), Representation::Xcdr2);
    assert_eq!(ours, [&key[..], &[0; 4]].concat(), "and longer than a hash");
    assert_eq!(from_key_payload::<ShapeType>(&key).unwrap().color, "BLUE");
    let reader = key_reader::<ShapeType>().unwrap();
    assert_eq!(reader.of_key(&key), Ok(key_hash(&blue())));
}

#[test]
fn a_key_inside_a_key_is_that_types_key() {
    has_bytes(
        &outer(),
        [
            "0001000001000000000000000200000000000000030000000200000074000000040000000500",
            "00090000220000000e000000010000000200000000000000030000000200000074000000040000000500",
        ],
        [
            "0001000001000300040000000500",
            "000900000e0000000400000001000300040000000500",
        ],
    );
    // Sizes of structures do not enter the hash.
    hash_is(&outer(), "01000003000000040005000000000000");
    let lists = Lists {
        inners: [inner(1, 2, 3), inner(4, 5, 6)],
        bytes: [7, 8, 9],
        n: 10,
    };
    has_bytes(
        &lists,
        [
            "00010000010000000000000002000000000000000300040000000000050000000000000006000708090000000a000000",
            "00070000260000000e000000010000000200000000000000030000000e00000004000000050000000000000006000708090000000a000000",
        ],
        [
            "000100000100030004000600070809",
            "000700001000000004000000010003000400000004000600070809",
        ],
    );
}

#[test]
fn a_member_without_key_counts_with_its_members_keys() {
    let ty = dynamic_type::<Wrapped>();
    for representation in BOTH {
        let sample = to_payload(&wrapped(), representation);
        let dynamic = DynamicMessage::from_payload(&ty, &sample).unwrap();
        assert_eq!(dynamic.key_hash(), key_hash(&wrapped()));
        let key = key_payload(&wrapped(), representation);
        assert_eq!(dynamic.key_payload(representation), key);
        let alone = from_key_payload::<Wrapped>(&key).unwrap();
        assert_eq!(alone.wrap.inner, inner(1, 0, 3));
        assert_eq!((alone.wrap.z, alone.more[0].z, alone.n), (9, 9, 0));
        let dynamic = DynamicMessage::from_key_payload(&ty, &key).unwrap();
        assert_eq!(dynamic.to_message(), Ok(alone));
    }
    let mut other = wrapped();
    other.wrap.inner.skip = 100;
    other.n = 100;
    assert_eq!(key_hash(&other), key_hash(&wrapped()));
    other.more[0].inner.b = 100;
    assert_ne!(key_hash(&other), key_hash(&wrapped()));
}

#[test]
fn keys_of_at_most_sixteen_bytes_are_their_own_hash() {
    let tag = Tag { name: "ab".into() };
    assert_eq!((Tag::KEY_BYTES_MAX, Wide::KEY_BYTES_MAX), (16, usize::MAX));
    hash_is(&tag, "00000003616200000000000000000000");
    let readers = [
        key_reader::<Tag>().unwrap(),
        dynamic_type::<Tag>().key_reader().unwrap(),
    ];
    let key = key_payload(&tag, Representation::Xcdr1);
    for reader in readers {
        assert_eq!(reader.key_of_hash(key_hash(&tag)), Some(key.clone()));
    }
    let reader = key_reader::<Outer>().unwrap();
    let key = reader.key_of_hash(key_hash(&outer())).unwrap();
    assert_eq!(reader.of_key(&key), Ok(key_hash(&outer())));
}

#[test]
fn a_key_that_may_be_longer_is_hashed_even_where_it_is_short() {
    // MD5 of 00 00 00 05 "BLUE" 00, and of 17 zeros.
    hash_is(&blue(), "cac217c318363f8ef1160eeedef9e886");
    hash_is(&Wide::default(), "f3c8bdb6b9df478f227af2ce61c8a5a1");
    let reader = key_reader::<ShapeType>().unwrap();
    assert_eq!(reader.key_of_hash(key_hash(&blue())), None);
}

#[test]
fn types_without_key_have_one_instance_of_zeros() {
    let point = Point { x: 1, y: 2 };
    assert!(key_reader::<Point>().is_none());
    assert!(dynamic_type::<Point>().key_reader().is_none());
    assert_eq!(key_hash(&point), KeyHash::default());
    let key = key_payload(&point, Representation::Xcdr1);
    assert_eq!(key, [&[0, 1][..], &[0; 18]].concat());
    assert_eq!(from_key_payload(&[0, 1, 0, 0]), Ok(Point::default()));
    let wrap = wrapped().wrap;
    hash_is(&wrap, "00000000000000000000000000000000");
}

fn small() -> Small {
    Small {
        a: 1,
        inners: vec![inner(1, 2, 3)],
    }
}

/// Reads a payload as both kinds of message.
fn read<T: Message>(payload: &[u8]) -> Result<T, DecodeError> {
    let typed = from_payload::<T>(payload);
    let dynamic = DynamicMessage::from_payload(&dynamic_type::<T>(), payload);
    match (&typed, dynamic) {
        (Ok(typed), Ok(dynamic)) => assert_eq!(dynamic.to_message().as_ref(), Ok(typed)),
        // Which of several mistakes is met first differs.
        (Err(_), Err(_)) => {}
        (typed, dynamic) => panic!("{typed:?} but {dynamic:?}"),
    }
    typed
}

#[test]
fn members_missing_at_an_older_sender_have_their_default() {
    for representation in BOTH {
        let grown: Grown = read(&to_payload(&small(), representation)).unwrap();
        assert_eq!((grown.a, &grown.inners), (1, &small().inners));
        assert_eq!((grown.b.as_str(), grown.c), ("none", 7));
    }
    // Within a sequence, sizes tell where each one ends.
    let smalls = Smalls {
        list: vec![small(); 3],
    };
    let growns: Growns = read(&to_payload(&smalls, Representation::Xcdr2)).unwrap();
    assert_eq!(growns.list.len(), 3);
    assert_eq!((growns.list[2].b.as_str(), growns.list[2].a), ("none", 1));
}

#[test]
fn members_of_a_newer_sender_are_skipped() {
    let grown = Grown {
        a: 1,
        inners: small().inners,
        b: "x".into(),
        c: 9,
        ..Grown::default()
    };
    for representation in BOTH {
        assert_eq!(read(&to_payload(&grown, representation)), Ok(small()));
    }
    let growns = Growns {
        list: vec![grown; 3],
    };
    let smalls: Smalls = read(&to_payload(&growns, Representation::Xcdr2)).unwrap();
    assert_eq!(smalls.list, vec![small(); 3]);
}

#[test]
fn padding_is_not_a_member() {
    // One octet and three of padding: `inners` is missing, not empty by chance.
    let payload = [0, 1, 0, 3, 1, 0, 0, 0];
    let expected = Small {
        a: 1,
        inners: vec![],
    };
    assert_eq!(read(&payload), Ok(expected));
    assert!(read::<Small>(&[0, 1, 0, 0, 1, 0, 0, 0]).is_err());
}

/// A sequence of nothing but sizes must not fill the memory with defaults.
#[test]
fn many_structures_without_members_are_rejected() {
    let count = 10_000_u32;
    let mut payload = vec![0, 7, 0, 0];
    payload.extend((4 + 4 * count).to_le_bytes());
    payload.extend(count.to_le_bytes());
    payload.resize(payload.len() + 4 * count as usize, 0);
    let error = read_each::<Growns>(&payload);
    assert!(matches!(
        error,
        [
            Err(DecodeError::TooMuchMissing { .. }),
            Err(DecodeError::TooMuchMissing { .. })
        ]
    ));
}

fn read_each<T: Message>(payload: &[u8]) -> [Result<(), DecodeError>; 2] {
    let dynamic = DynamicMessage::from_payload(&dynamic_type::<T>(), payload);
    [from_payload::<T>(payload).map(drop), dynamic.map(drop)]
}

#[test]
fn a_final_sender_and_an_empty_type_are_decoded() {
    // The same type, declared final by its sender: plain CDR2.
    let payload = hex("0007000005000000424c5545000000000a000000ecffffff1e0000000200000001ff");
    assert_eq!(read(&payload), Ok(blue()));
    for representation in BOTH {
        let nothing = to_payload(&Nothing {}, representation);
        assert_eq!(read(&nothing), Ok(Nothing {}));
    }
    assert_eq!(
        to_payload(&Nothing {}, Representation::Xcdr2),
        [0, 9, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(read(&[0, 9, 0, 0, 0, 0, 0, 0]), Ok(Nothing {}));
}

#[test]
fn mutable_types_are_refused_by_their_name() {
    let error = from_payload::<ShapeType>(&[0, 11, 0, 0]).unwrap_err();
    assert!(error.to_string().contains("mutable"), "{error}");
}

#[test]
fn key_extensibility_and_name_are_described_beside_the_fields() {
    let description = ShapeType::type_description();
    let ty = DynamicType::new(description).unwrap();
    assert_eq!(ty.dds_type_name(), "ShapeType");
    assert_eq!(ShapeType::dds_type_name(), "ShapeType");
    assert_eq!(Outer::dds_type_name(), "keyed::msg::dds_::Outer_");
    assert_eq!(ty.description(), *description);
    assert_eq!(ty.hash(), ShapeType::TYPE_HASH);
    assert_eq!(ty.extensibility(), ShapeType::EXTENSIBILITY);
    assert_eq!(ty.key_bytes_max(), ShapeType::KEY_BYTES_MAX);
    // They do not enter the hash.
    let mut plain = description.clone();
    plain.type_description.fields[0].is_key = false;
    plain.type_description.extensibility = Default::default();
    assert_eq!(pteros_msg::hash::rihs01(&plain), ShapeType::TYPE_HASH);
    assert_ne!(DynamicType::new(&plain).unwrap(), ty);
}

/// For arbitrary bytes nothing panics, and the typed decoder and the dynamic one
/// give the same answer, for samples and for keys.
#[test]
fn damaged_payloads_decode_alike_with_both_decoders() {
    fn play<T: Message>(value: &T, random: &mut fastrand::Rng) {
        let ty = dynamic_type::<T>();
        let readers = [key_reader::<T>().unwrap(), ty.key_reader().unwrap()];
        for representation in BOTH {
            let whole = to_payload(value, representation);
            for intact in [&whole, &key_payload(value, representation)] {
                for _ in 0..3000 {
                    let mut payload = intact.clone();
                    for _ in 0..random.usize(1..4) {
                        let at = random.usize(..payload.len());
                        payload[at] = random.u8(..) >> random.u8(..8);
                    }
                    payload.truncate(random.usize(payload.len() / 2..payload.len() + 8));
                    let _ = read::<T>(&payload);
                    let [typed, dynamic] = readers.each_ref().map(|r| r.of_sample(&payload).ok());
                    assert_eq!(typed, dynamic);
                    let [typed, dynamic] = readers.each_ref().map(|r| r.of_key(&payload).ok());
                    assert_eq!(typed, dynamic);
                }
            }
        }
    }
    let mut random = fastrand::Rng::with_seed(7);
    play(&blue(), &mut random);
    play(&outer(), &mut random);
    play(&wrapped(), &mut random);
}
