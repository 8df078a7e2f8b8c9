//! RTPS wire format: one file for each submessage (RTPS 2.5 §8.3, §9.4).
//!
//! Parsing yields values, or views into the datagram where a peer chooses the size.
//! A parsed value obeys the validity rules of its clause (§8.3.8), so no caller
//! checks again. Both byte orders are read; little endian is written. Nothing here
//! allocates memory for received data.

mod acknack;
mod cursor;
mod data;
mod data_frag;
mod gap;
mod header;
mod heartbeat;
mod heartbeat_frag;
mod info;
mod inline_qos;
mod locators;
mod nack_frag;
mod number_set;
mod parameter;
mod secure;
mod submessage;
mod submessage_header;

pub use acknack::AckNack;
pub use cursor::{Cursor, Endianness};
pub use data::{Data, DataHead};
pub use data_frag::{DataFrag, DataFragHead};
pub use gap::Gap;
pub use header::Header;
pub use heartbeat::{GroupSequenceInfo, Heartbeat};
pub use heartbeat_frag::HeartbeatFrag;
pub use info::{InfoReply, InfoSource};
pub use inline_qos::{InlineQos, InlineQosHead, StatusInfo};
pub use locators::LocatorList;
pub use nack_frag::NackFrag;
pub use number_set::{FragmentSet, NumberSet, SequenceSet, SetNumber};
pub use parameter::{Parameter, Parameters, pid};
pub use secure::SecureKind;
pub use submessage::Submessage;
pub use submessage_header::SubmessageHeader;

pub(crate) use info::{write_info_destination, write_info_timestamp};
pub(crate) use parameter::{begin_parameter, end_parameter, write_parameter, write_sentinel};
pub(crate) use submessage_header::{begin_submessage, end_submessage};

use core::fmt;

/// Why bytes are not a message, a submessage or a parameter list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireError {
    /// The datagram does not begin with "RTPS".
    NotRtps,
    /// A major version other than 2.
    UnsupportedVersion(u8),
    /// A field ends before it is complete.
    Truncated,
    /// A length field points outside its container.
    InvalidLength,
    /// A sequence number that no writer may use here.
    InvalidSequence,
    /// A fragment number, count or size that contradicts the others.
    InvalidFragment,
    /// A set of numbers with an impossible base or too many bits.
    InvalidSet,
    /// Flags that exclude each other.
    InvalidFlags,
    /// A parameter that is malformed; its id.
    InvalidParameter(u16),
    /// A parameter that is needed and absent; its id.
    MissingParameter(u16),
    /// An unknown parameter with the must-understand flag; its id.
    NotUnderstood(u16),
    /// A value longer than our limit; the parameter's id.
    TooLong(u16),
    /// A payload in an encapsulation that is not meant for it; the identifier.
    UnsupportedEncapsulation(u16),
}

pteros_msg::debug_as_display!(WireError);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRtps => f.write_str("not an RTPS message"),
            Self::UnsupportedVersion(major) => {
                write!(
                    f,
                    "RTPS major version {major} is not supported; only version 2 is"
                )
            }
            Self::Truncated => f.write_str("the message ends before it is complete"),
            Self::InvalidLength => f.write_str("a length points outside of the message"),
            Self::InvalidSequence => f.write_str("the sequence number is out of range"),
            Self::InvalidFragment => {
                f.write_str("fragment number, count and size contradict each other")
            }
            Self::InvalidSet => {
                f.write_str("the number set has an invalid base or more than 256 bits")
            }
            Self::InvalidFlags => f.write_str("the flags exclude each other"),
            Self::InvalidParameter(id) => write!(f, "parameter 0x{id:04x} is malformed"),
            Self::MissingParameter(id) => write!(f, "parameter 0x{id:04x} is missing"),
            Self::NotUnderstood(id) => {
                write!(f, "parameter 0x{id:04x} must be understood and is unknown")
            }
            Self::TooLong(id) => write!(
                f,
                "the value of parameter 0x{id:04x} is longer than the limit"
            ),
            Self::UnsupportedEncapsulation(id) => {
                write!(f, "encapsulation 0x{id:04x} is not expected here")
            }
        }
    }
}

impl core::error::Error for WireError {}
