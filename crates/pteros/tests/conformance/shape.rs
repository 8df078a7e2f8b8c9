//! A type with a key, as its own crate would generate it: what the stories of
//! instances are played with.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::{DecodeError, Decoder, Encoder};
use pteros::msg::describe::TypeDescription;
use pteros::msg::hash::TypeHash;
use pteros::msg::message::{Decode, Encode, Message};

/// A coloured thing somewhere; the colour says which.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    pub color: String,
    pub x: i32,
}

pub fn shape(color: &str, x: i32) -> Shape {
    Shape {
        color: color.into(),
        x,
    }
}

impl Encode for Shape {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.string(&self.color);
        out.i32(self.x);
    }
}

impl Decode for Shape {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            color: input.string(usize::MAX)?,
            x: input.i32()?,
        })
    }
}

impl Message for Shape {
    const TYPE_NAME: &'static str = "stories/msg/Shape";
    const TYPE_HASH: TypeHash = Text::TYPE_HASH;
    const KEYED: bool = true;
    const KEY_BYTES_MAX: usize = usize::MAX;

    fn type_description() -> &'static TypeDescription {
        Text::type_description()
    }

    fn encode_key(&self, out: &mut Encoder<'_>) {
        out.string(&self.color);
    }

    fn decode_key(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(shape(&input.string(usize::MAX)?, 0))
    }
}
