//! Keys of types, against bytes that Cyclone DDS makes of the same types
//! (Python package cyclonedds 11.0.1: `serialize`, `serialize_key`).

use pteros_msg::cdr::{DecodeError, Decoder, Encoder};
use pteros_msg::describe::TypeDescription;
use pteros_msg::hash::TypeHash;
use pteros_msg::key::{from_key_payload, key_hash, key_payload, key_reader};
use pteros_msg::{
    Decode, Encode, Extensibility, KeyHash, Message, Representation, from_payload, to_payload,
};

/// As the shapes demonstration of all DDS stacks has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shape {
    color: String,
    x: i32,
    y: i32,
    size: i32,
}

impl Encode for Shape {
    fn encode(&self, out: &mut Encoder<'_>) {
        let scope = out.begin_appendable();
        out.string(&self.color);
        out.primitive_array(&[self.x, self.y, self.size]);
        out.end_appendable(scope);
    }

    fn extensibility(&self) -> Extensibility {
        Extensibility::Appendable
    }
}

impl Decode for Shape {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_key_members(input, |value, input| {
            for number in [&mut value.x, &mut value.y, &mut value.size] {
                if input.has_more() {
                    *number = input.i32()?;
                }
            }
            Ok(())
        })
    }
}

impl Shape {
    fn decode_key_members(
        input: &mut Decoder<'_>,
        rest: impl Fn(&mut Self, &mut Decoder<'_>) -> Result<(), DecodeError>,
    ) -> Result<Self, DecodeError> {
        let mut value = Self::default();
        let scope = input.begin_appendable()?;
        if input.has_more() {
            value.color = input.string(128)?;
        }
        rest(&mut value, input)?;
        input.end_struct(scope);
        Ok(value)
    }
}

impl Message for Shape {
    const TYPE_NAME: &'static str = "shapes/msg/Shape";
    const TYPE_HASH: TypeHash = TypeHash::rihs01([0; 32]);
    const EXTENSIBILITY: Extensibility = Extensibility::Appendable;
    const KEYED: bool = true;
    const KEY_BYTES_MAX: usize = 4 + 129;

    fn type_description() -> &'static TypeDescription {
        static DESCRIPTION: std::sync::OnceLock<TypeDescription> = std::sync::OnceLock::new();
        DESCRIPTION.get_or_init(TypeDescription::default)
    }

    fn encode_key(&self, out: &mut Encoder<'_>) {
        let scope = out.begin_appendable();
        out.string(&self.color);
        out.end_appendable(scope);
    }

    fn decode_key(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_key_members(input, |_, _| Ok(()))
    }
}

fn blue() -> Shape {
    Shape {
        color: "BLUE".into(),
        x: 10,
        y: -20,
        size: 30,
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

#[test]
fn samples_and_keys_have_cyclones_bytes() {
    let xcdr1 = hex("0001000005000000424c5545000000000a000000ecffffff1e000000");
    let xcdr2 = hex("000900001800000005000000424c5545000000000a000000ecffffff1e000000");
    assert_eq!(to_payload(&blue(), Representation::Xcdr1), xcdr1);
    assert_eq!(to_payload(&blue(), Representation::Xcdr2), xcdr2);
    assert_eq!(from_payload::<Shape>(&xcdr1), Ok(blue()));
    assert_eq!(from_payload::<Shape>(&xcdr2), Ok(blue()));
    // Cyclone's Python leaves out the padding and its count, its C does not.
    let key1 = hex("0001000305000000424c554500000000");
    let key2 = hex("000900030900000005000000424c554500000000");
    assert_eq!(key_payload(&blue(), Representation::Xcdr1), key1);
    assert_eq!(key_payload(&blue(), Representation::Xcdr2), key2);
    let reader = key_reader::<Shape>().unwrap();
    for (sample, key) in [(xcdr1, key1), (xcdr2, key2)] {
        assert_eq!(from_key_payload::<Shape>(&key).unwrap().color, "BLUE");
        assert_eq!(from_key_payload::<Shape>(&key).unwrap().x, 0);
        assert_eq!(reader.of_key(&key), Ok(key_hash(&blue())));
        assert_eq!(reader.of_sample(&sample), Ok(key_hash(&blue())));
        assert_eq!(reader.key_of(&sample), Ok(key));
    }
}

#[test]
fn a_key_that_may_be_long_is_hashed_even_where_it_is_short() {
    // MD5 of 00 00 00 05 "BLUE" 00.
    let expected = hex("cac217c318363f8ef1160eeedef9e886");
    assert_eq!(key_hash(&blue()).0[..], expected);
    assert_eq!(
        key_hash(&blue()).to_string(),
        "cac217c318363f8ef1160eeedef9e886"
    );
    let reader = key_reader::<Shape>().unwrap();
    assert_eq!(reader.key_of_hash(KeyHash([0; 16])), None);
}
