//! CDR, the bytes of a message: XCDR1 and XCDR2 in both byte orders.
//!
//! A payload is a 4-byte encapsulation header and one value; alignment counts
//! from the end of the header. ROS 2 speaks XCDR1, little endian. Appendable
//! types are delimited in XCDR2. Sources: DDS-XTypes
//! 1.3 §7.4.3 (encodings), §7.6.3.1.2 (header and padding count).
//!
//! Decoding trusts nothing: every length is compared with what is left of the
//! payload before memory is asked for, and whatever follows the value is
//! ignored, so that types may grow.

mod decoder;
mod encapsulation;
#[allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "sizes of values that are in memory; what exceeds 32 bits is told so"
)]
mod encoder;
mod error;
mod room;

pub use decoder::{DEPTH_MAX, Decoder, DecoderScope, MISSING_BYTES_MAX, UNBOUNDED};
pub use encapsulation::{
    Encapsulation, Endian, HEADER_BYTES, Representation, decode_payload, from_payload, payload_len,
    to_payload, to_payload_in, to_payload_slice,
};
pub use encoder::{Encoder, EncoderScope, TooSmall};
pub use error::DecodeError;
pub use room::{NoRoom, Room, fixed_header, payload_len_with_room, to_payload_with_room};

#[cfg(test)]
mod tests;
