//! Submessages of DDS Security: recognised here, but not decrypted (DDS Security
//! 1.1 §7.3.6, §9.5.3.3).

/// The kind of a protected submessage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SecureKind {
    /// SEC_BODY: encrypted submessages or payload.
    Body,
    /// SEC_PREFIX: before protected submessages.
    Prefix,
    /// SEC_POSTFIX: after protected submessages.
    Postfix,
    /// SRTPS_PREFIX: before a protected message.
    RtpsPrefix,
    /// SRTPS_POSTFIX: after a protected message.
    RtpsPostfix,
}

impl SecureKind {
    /// The kind with this submessage id.
    pub const fn of_id(id: u8) -> Option<Self> {
        Some(match id {
            0x30 => Self::Body,
            0x31 => Self::Prefix,
            0x32 => Self::Postfix,
            0x33 => Self::RtpsPrefix,
            0x34 => Self::RtpsPostfix,
            _ => return None,
        })
    }
}
