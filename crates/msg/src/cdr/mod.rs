//! CDR serialization of messages: XCDR1 and XCDR2 in both byte orders.
//!
//! A payload is a 4-byte encapsulation header and one value; alignment counts from
//! the end of the header. ROS 2 uses XCDR1, little endian. Appendable types are
//! delimited in XCDR2. Sources: DDS-XTypes 1.3 §7.4.3 (encodings), §7.6.3.1.2
//! (header and padding count).
//!
//! The decoder does not trust its input: every length is compared with the rest of
//! the payload before memory is allocated. Bytes after the value are ignored, so
//! that types may grow.

mod codec;
mod decoder;
mod encapsulation;
#[allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "sizes of values that are in memory; the type of larger ones is documented"
)]
mod encoder;
mod error;
mod limits;
mod payload;
mod reserved_sequence;

pub use codec::{Decode, Encode};
pub use decoder::{Decoder, DecoderScope};
pub use encapsulation::{Encapsulation, Endian, HEADER_BYTES, Representation};
pub use encoder::{BufferTooSmall, Encoder, EncoderScope};
pub use error::DecodeError;
pub use limits::{DEPTH_MAX, MISSING_BYTES_MAX, UNBOUNDED};
pub use payload::{
    decode_payload, fixed_header, from_payload, payload_len, payload_len_reserving, to_payload,
    to_payload_in, to_payload_reserving, to_payload_slice,
};
pub use reserved_sequence::{ReserveError, ReservedSequence};

#[cfg(test)]
mod tests;
