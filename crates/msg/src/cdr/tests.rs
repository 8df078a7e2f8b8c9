//! Byte vectors, round trips and hostile lengths for encoder and decoder.

use super::*;
use crate::message::{Decode, Encode, WString};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// One field of each kind that alignment or headers treat differently.
#[derive(Clone, Debug, Default, PartialEq)]
struct Mixed {
    flag: bool,
    wide: f64,
    name: String,
    words: Vec<u16>,
    longs: Vec<i64>,
    pair: [u32; 2],
    labels: Vec<String>,
    inner: Vec<Pair>,
    text: WString,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Pair {
    small: u8,
    large: u64,
}

impl Encode for Pair {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u8(self.small);
        out.u64(self.large);
    }
}

impl Decode for Pair {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let scope = input.begin_struct()?;
        let value = Self {
            small: input.u8()?,
            large: input.u64()?,
        };
        input.end_struct(scope);
        Ok(value)
    }
}

impl Encode for Mixed {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.bool(self.flag);
        out.f64(self.wide);
        out.string(&self.name);
        out.primitive_sequence(&self.words);
        out.primitive_sequence(&self.longs);
        out.primitive_array(&self.pair);
        out.string_sequence(&self.labels);
        out.message_sequence(&self.inner);
        out.wstring(&self.text);
    }
}

impl Decode for Mixed {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let scope = input.begin_struct()?;
        let value = Self {
            flag: input.bool()?,
            wide: input.f64()?,
            name: input.string(UNBOUNDED)?,
            words: input.primitive_sequence(UNBOUNDED)?,
            longs: input.primitive_sequence(UNBOUNDED)?,
            pair: input.primitive_array()?,
            labels: input.string_sequence(UNBOUNDED, UNBOUNDED)?,
            inner: input.message_sequence(UNBOUNDED)?,
            text: input.wstring(UNBOUNDED)?,
        };
        input.end_struct(scope);
        Ok(value)
    }
}

fn mixed() -> Mixed {
    Mixed {
        flag: true,
        wide: 1.0,
        name: "ab".into(),
        words: vec![1, 2, 3],
        longs: Vec::new(),
        pair: [7, 8],
        labels: vec!["x".into()],
        inner: vec![Pair {
            small: 9,
            large: 10,
        }],
        text: "A".into(),
    }
}

const ORDERS: [Endian; 2] = [Endian::Little, Endian::Big];
const VERSIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

fn encode<M: Encode>(message: &M, representation: Representation, endian: Endian) -> Vec<u8> {
    let mut bytes = Encapsulation::plain(representation, endian)
        .to_bytes()
        .to_vec();
    message.encode(&mut Encoder::to_vec(&mut bytes, representation, endian));
    bytes
}

#[test]
fn xcdr1_aligns_to_eight_and_has_no_size_headers() {
    #[rustfmt::skip]
    let expected = [
        0, 1, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 0,                     // flag, padding to 8
        0, 0, 0, 0, 0, 0, 0xf0, 0x3f,               // 1.0
        3, 0, 0, 0, b'a', b'b', 0, 0,               // "ab", padding to 4
        3, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0,         // words, padding to 4
        0, 0, 0, 0,                                 // no longs, no padding after
        7, 0, 0, 0, 8, 0, 0, 0,                     // pair
        1, 0, 0, 0, 2, 0, 0, 0, b'x', 0, 0, 0,      // labels, padding to 4
        1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,         // one inner, padding to 8
        10, 0, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 0x41, 0, 0, 0,                  // "A", units as 32 bits
    ];
    let payload = encode(&mixed(), Representation::Xcdr1, Endian::Little);
    assert_eq!(payload, expected);
}

#[test]
fn xcdr2_aligns_to_four_and_sizes_non_primitive_collections() {
    #[rustfmt::skip]
    let expected = [
        0, 6, 0, 0,
        1, 0, 0, 0,                                 // flag, padding to 4
        0x3f, 0xf0, 0, 0, 0, 0, 0, 0,               // 1.0
        0, 0, 0, 3, b'a', b'b', 0, 0,
        0, 0, 0, 3, 0, 1, 0, 2, 0, 3, 0, 0,         // words: primitive, no size
        0, 0, 0, 0,
        0, 0, 0, 7, 0, 0, 0, 8,
        0, 0, 0, 10,                                // size of labels
        0, 0, 0, 1, 0, 0, 0, 2, b'x', 0, 0, 0,
        0, 0, 0, 16,                                // size of inner
        0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10,
        0, 0, 0, 1, 0, 0, 0, 0x41,
    ];
    let payload = encode(&mixed(), Representation::Xcdr2, Endian::Big);
    assert_eq!(payload, expected);
}

#[test]
fn both_versions_and_byte_orders_are_read_back() {
    for representation in VERSIONS {
        for endian in ORDERS {
            let payload = encode(&mixed(), representation, endian);
            assert_eq!(from_payload::<Mixed>(&payload), Ok(mixed()));
        }
    }
}

/// The sample `Hello World: 0` as Cyclone DDS and Fast DDS put it on the wire
/// (ROS 2 Jazzy, demo talker): both leave the padding count at 0.
const HELLO: &[u8] = b"\x00\x01\x00\x00\x0f\x00\x00\x00Hello World: 0\x00\x00";

#[derive(Clone, Debug, PartialEq)]
struct Text(String);

impl Encode for Text {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.string(&self.0);
    }
}

impl Decode for Text {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.string(UNBOUNDED).map(Self)
    }
}

#[test]
fn a_string_has_the_bytes_that_ros2_sends_but_for_the_padding_count() {
    let text: Text = from_payload(HELLO).unwrap();
    assert_eq!(text.0, "Hello World: 0");
    let mut payload = to_payload(&text, Representation::Xcdr1);
    assert_eq!(payload[3], 1, "one byte of padding, counted");
    payload[3] = 0;
    assert_eq!(payload, HELLO);
}

#[test]
fn a_payload_is_one_exact_allocation_and_the_same_in_given_memory() {
    for representation in VERSIONS {
        let payload = to_payload(&mixed(), representation);
        assert_eq!(payload.capacity(), payload.len());
        assert_eq!(payload.len(), payload_len(&mixed(), representation));
        assert_eq!(payload.len() % 4, 0);
        let mut memory = vec![0xee; payload.len() + 3];
        let written = to_payload_slice(&mixed(), representation, &mut memory).unwrap();
        assert_eq!(memory[..written], payload);
        for short in [0, 3, 4, payload.len() - 1] {
            assert_eq!(
                to_payload_slice(&mixed(), representation, &mut memory[..short]),
                Err(BufferTooSmall { needed: written })
            );
        }
    }
}

#[test]
fn every_truncation_is_an_error_and_trailing_bytes_are_none() {
    for representation in VERSIONS {
        let payload = encode(&mixed(), representation, Endian::Little);
        for len in 0..payload.len() {
            assert!(from_payload::<Mixed>(&payload[..len]).is_err(), "{len}");
        }
        let longer = [payload.as_slice(), &[1, 2, 3]].concat();
        assert_eq!(
            decode_payload::<Mixed>(&longer),
            Ok((mixed(), payload.len()))
        );
    }
}

#[test]
fn lengths_beyond_the_payload_are_rejected_before_allocation() {
    let hostile = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    let decoder = || Decoder::from_payload(&hostile).unwrap();
    let ends = |needed| DecodeError::UnexpectedEnd { offset: 4, needed };
    let max = u32::MAX as usize;
    assert_eq!(decoder().string(UNBOUNDED), Err(ends(max)));
    assert_eq!(
        decoder().wstring(UNBOUNDED),
        Err(ends(max.saturating_mul(4)))
    );
    assert_eq!(
        decoder().primitive_sequence::<u8>(UNBOUNDED),
        Err(ends(max))
    );
    assert_eq!(
        decoder().primitive_sequence::<f64>(UNBOUNDED),
        Err(ends(max.saturating_mul(8)))
    );
    assert_eq!(decoder().bool_sequence(UNBOUNDED), Err(ends(max)));
    assert_eq!(
        decoder().string_sequence(UNBOUNDED, UNBOUNDED),
        Err(ends(max.saturating_mul(4)))
    );
    assert_eq!(
        decoder().message_sequence::<Pair>(UNBOUNDED),
        Err(ends(max))
    );
}

#[test]
fn bounds_of_the_type_hold() {
    let payload = encode(&mixed(), Representation::Xcdr1, Endian::Little);
    let mut decoder = Decoder::from_payload(&payload[12..]).unwrap();
    assert!(decoder.u64().is_ok());
    let mut decoder = Decoder::from_payload(HELLO).unwrap();
    assert_eq!(
        decoder.string(13),
        Err(DecodeError::TooLong {
            offset: 0,
            len: 14,
            bound: 13
        })
    );
    let words = [0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0];
    let sequence = |bound| Decoder::from_payload(&words)?.primitive_sequence::<u16>(bound);
    assert_eq!(sequence(2), Ok(vec![1, 2]));
    assert!(matches!(
        sequence(1),
        Err(DecodeError::TooLong {
            len: 2,
            bound: 1,
            ..
        })
    ));
}

#[test]
fn odd_booleans_and_wide_characters_are_refused_odd_strings_are_not() {
    let body = |bytes: &[u8]| [&[0, 1, 0, 0], bytes].concat();
    let payload = body(&[2]);
    assert_eq!(
        Decoder::from_payload(&payload).unwrap().bool(),
        Err(DecodeError::InvalidBool {
            offset: 0,
            value: 2
        })
    );
    let payload = body(&[2, 0, 0, 0, 1, 7]);
    assert_eq!(
        Decoder::from_payload(&payload).unwrap().bool_sequence(9),
        Err(DecodeError::InvalidBool {
            offset: 5,
            value: 7
        })
    );
    let payload = body(&[1, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(
        Decoder::from_payload(&payload).unwrap().wstring(9),
        Err(DecodeError::InvalidWideChar { offset: 4 })
    );
    let string = |bytes: &[u8]| {
        Decoder::from_payload(&body(bytes))
            .unwrap()
            .string(UNBOUNDED)
    };
    assert_eq!(string(&[0, 0, 0, 0]).as_deref(), Ok(""), "length 0");
    assert_eq!(string(&[1, 0, 0, 0, b'a']).as_deref(), Ok("a"), "no NUL");
    assert_eq!(
        string(&[3, 0, 0, 0, b'a', 0xff, 0]).as_deref(),
        Ok("a\u{fffd}"),
        "not UTF-8"
    );
}

#[test]
fn headers_of_other_encodings_are_refused_by_name() {
    for id in [2u16, 3, 4, 5, 10, 11, 0x100, 0xffff] {
        let [high, low] = id.to_be_bytes();
        assert_eq!(
            from_payload::<Pair>(&[high, low, 0, 0]),
            Err(DecodeError::UnsupportedEncoding { id })
        );
    }
    assert_eq!(from_payload::<Pair>(&[0, 1, 0]), Err(DecodeError::NoHeader));
}

#[test]
fn delimited_structures_are_read_and_their_unknown_members_skipped() {
    #[rustfmt::skip]
    let payload = [
        0, 9, 0, 0,
        28, 0, 0, 0,            // size of the sequence
        1, 0, 0, 0,             // one element
        20, 0, 0, 0,            // its size
        9, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0,
        1, 2, 3, 4, 5, 6, 7, 8, // a member that we do not know
        42, 0, 0, 0,
    ];
    let mut decoder = Decoder::from_payload(&payload).unwrap();
    let pairs = decoder.message_sequence::<Pair>(UNBOUNDED).unwrap();
    assert_eq!(
        pairs,
        [Pair {
            small: 9,
            large: 10
        }]
    );
    assert_eq!(decoder.u32(), Ok(42));

    let mut lying = payload;
    lying[12] = 21;
    let mut decoder = Decoder::from_payload(&lying).unwrap();
    assert_eq!(
        decoder.message_sequence::<Pair>(UNBOUNDED),
        Err(DecodeError::UnexpectedEnd {
            offset: 12,
            needed: 21
        })
    );
}

#[test]
fn nesting_ends_at_the_limit() {
    let mut decoder = Decoder::from_payload(&[0, 1, 0, 0]).unwrap();
    for _ in 0..DEPTH_MAX {
        let _scope = decoder.begin_struct().unwrap();
    }
    assert!(matches!(
        decoder.begin_struct(),
        Err(DecodeError::TooDeep { offset: 0 })
    ));
}

#[test]
fn random_bytes_never_panic_nor_allocate_much() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..20_000 {
        let mut payload = vec![0u8; random.usize(0..96)];
        random.fill(&mut payload);
        if let Some(start) = payload.first_chunk_mut::<4>() {
            *start = [0, [0, 1, 6, 7, 8, 9][round % 6], 0, 0];
        }
        // Small counts make deeper progress likely.
        for byte in payload.iter_mut().skip(4) {
            if random.bool() {
                *byte &= 3;
            }
        }
        if let Ok(message) = from_payload::<Mixed>(&payload) {
            assert!(message.labels.capacity() <= payload.len());
            assert!(message.inner.capacity() <= payload.len());
        }
    }
}
