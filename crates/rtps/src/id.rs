//! Identifiers: GUIDs (gid in ROS), entity ids, vendor ids, protocol versions (RTPS 2.5 §8.2.4,
//! §9.3.1).

use core::fmt;

/// The first twelve bytes of a [`Guid`]: one participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

impl GuidPrefix {
    /// No particular participant (GUIDPREFIX_UNKNOWN).
    pub const UNKNOWN: Self = Self([0; 12]);

    /// The GUID of an entity of this participant.
    pub const fn with(self, entity: EntityId) -> Guid {
        Guid {
            prefix: self,
            entity,
        }
    }
}

impl fmt::Debug for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if i > 0 && i % 4 == 0 {
                f.write_str(".")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The last four bytes of a [`Guid`]: one entity within its participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityId {
    /// Chosen by the participant, unique together with `kind`.
    pub key: [u8; 3],
    /// Writer or reader, keyed or not, built in or not (RTPS 2.5 table 9.1).
    pub kind: u8,
}

impl EntityId {
    /// No entity: in a submessage, every matching one (ENTITYID_UNKNOWN).
    pub const UNKNOWN: Self = Self::new([0, 0, 0], 0);
    /// The participant itself.
    pub const PARTICIPANT: Self = Self::new([0, 0, 1], 0xc1);
    /// SPDP writer.
    pub const SPDP_WRITER: Self = Self::new([0, 1, 0], 0xc2);
    /// SPDP reader.
    pub const SPDP_READER: Self = Self::new([0, 1, 0], 0xc7);
    /// SEDP writer of publications.
    pub const SEDP_PUBLICATIONS_WRITER: Self = Self::new([0, 0, 3], 0xc2);
    /// SEDP reader of publications.
    pub const SEDP_PUBLICATIONS_READER: Self = Self::new([0, 0, 3], 0xc7);
    /// SEDP writer of subscriptions.
    pub const SEDP_SUBSCRIPTIONS_WRITER: Self = Self::new([0, 0, 4], 0xc2);
    /// SEDP reader of subscriptions.
    pub const SEDP_SUBSCRIPTIONS_READER: Self = Self::new([0, 0, 4], 0xc7);
    /// Writer liveliness protocol, writer (ParticipantMessageData).
    pub const WLP_WRITER: Self = Self::new([0, 2, 0], 0xc2);
    /// Writer liveliness protocol, reader.
    pub const WLP_READER: Self = Self::new([0, 2, 0], 0xc7);

    /// Authentication handshake of DDS Security, writer (1.1 §7.4.5).
    pub const STATELESS_WRITER: Self = Self::new([0, 2, 1], 0xc3);
    /// Authentication handshake of DDS Security, reader.
    pub const STATELESS_READER: Self = Self::new([0, 2, 1], 0xc4);
    /// Key exchange, writer.
    pub const VOLATILE_SECURE_WRITER: Self = Self::new([0xff, 2, 2], 0xc3);
    /// Key exchange, reader.
    pub const VOLATILE_SECURE_READER: Self = Self::new([0xff, 2, 2], 0xc4);
    /// Secured SPDP, writer.
    pub const SECURE_SPDP_WRITER: Self = Self::new([0xff, 1, 1], 0xc2);
    /// Secured SPDP, reader.
    pub const SECURE_SPDP_READER: Self = Self::new([0xff, 1, 1], 0xc7);
    /// Secured SEDP writer of publications.
    pub const SECURE_PUBLICATIONS_WRITER: Self = Self::new([0xff, 0, 3], 0xc2);
    /// Secured SEDP reader of publications.
    pub const SECURE_PUBLICATIONS_READER: Self = Self::new([0xff, 0, 3], 0xc7);
    /// Secured SEDP writer of subscriptions.
    pub const SECURE_SUBSCRIPTIONS_WRITER: Self = Self::new([0xff, 0, 4], 0xc2);
    /// Secured SEDP reader of subscriptions.
    pub const SECURE_SUBSCRIPTIONS_READER: Self = Self::new([0xff, 0, 4], 0xc7);
    /// Secured writer liveliness protocol, writer.
    pub const SECURE_WLP_WRITER: Self = Self::new([0xff, 2, 0], 0xc2);
    /// Secured writer liveliness protocol, reader.
    pub const SECURE_WLP_READER: Self = Self::new([0xff, 2, 0], 0xc7);

    /// TypeLookup service, writer of requests.
    pub const TYPE_REQUEST_WRITER: Self = Self::new([0, 3, 0], 0xc3);
    /// TypeLookup service, reader of requests.
    pub const TYPE_REQUEST_READER: Self = Self::new([0, 3, 0], 0xc4);
    /// TypeLookup service, writer of replies.
    pub const TYPE_REPLY_WRITER: Self = Self::new([0, 3, 1], 0xc3);
    /// TypeLookup service, reader of replies.
    pub const TYPE_REPLY_READER: Self = Self::new([0, 3, 1], 0xc4);

    /// Kind byte of a user writer without key.
    pub const KIND_WRITER_NO_KEY: u8 = 0x03;
    /// Kind byte of a user reader without key.
    pub const KIND_READER_NO_KEY: u8 = 0x04;
    /// Kind byte of a user writer with key.
    pub const KIND_WRITER_WITH_KEY: u8 = 0x02;
    /// Kind byte of a user's writer group: a DDS publisher.
    pub const KIND_WRITER_GROUP: u8 = 0x08;
    /// Kind byte of a user's reader group: a DDS subscriber.
    pub const KIND_READER_GROUP: u8 = 0x09;
    /// Kind byte of a user reader with key.
    pub const KIND_READER_WITH_KEY: u8 = 0x07;

    /// An id from its parts.
    pub const fn new(key: [u8; 3], kind: u8) -> Self {
        Self { key, kind }
    }

    /// The four bytes in wire order.
    pub const fn to_bytes(self) -> [u8; 4] {
        [self.key[0], self.key[1], self.key[2], self.kind]
    }

    /// An id from its four bytes in wire order.
    pub const fn from_bytes(b: [u8; 4]) -> Self {
        Self::new([b[0], b[1], b[2]], b[3])
    }

    /// Whether the kind byte marks a built-in entity of the specification.
    pub const fn is_builtin(self) -> bool {
        self.kind & 0xc0 == 0xc0
    }

    /// Whether the kind byte marks a writer.
    pub const fn is_writer(self) -> bool {
        matches!(self.kind & 0x3f, 0x02 | 0x03)
    }

    /// Whether the kind byte marks a reader.
    pub const fn is_reader(self) -> bool {
        matches!(self.kind & 0x3f, 0x04 | 0x07)
    }

    /// Whether the endpoint's topic has a key.
    pub const fn is_keyed(self) -> bool {
        matches!(self.kind & 0x3f, 0x02 | 0x07)
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.to_bytes();
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

/// The identity of one participant, writer or reader in the whole domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid {
    /// Its participant.
    pub prefix: GuidPrefix,
    /// The entity within the participant.
    pub entity: EntityId,
}

impl Guid {
    /// No entity at all (GUID_UNKNOWN).
    pub const UNKNOWN: Self = Self {
        prefix: GuidPrefix::UNKNOWN,
        entity: EntityId::UNKNOWN,
    };

    /// The sixteen bytes in wire order, as in a ROS gid.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..12].copy_from_slice(&self.prefix.0);
        out[12..].copy_from_slice(&self.entity.to_bytes());
        out
    }

    /// A GUID from its sixteen bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let mut prefix = [0; 12];
        prefix.copy_from_slice(&bytes[..12]);
        Self {
            prefix: GuidPrefix(prefix),
            entity: EntityId::from_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}|{:?}", self.prefix, self.entity)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Vendor of the sender (RTPS 2.5 §9.3.2; the OMG keeps the list).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// Pteros. Not in the OMG's list yet; distinct from the numbers in use.
    pub const PTEROS: Self = Self([0x01, 0x50]);
    /// RTI Connext.
    pub const RTI: Self = Self([0x01, 0x01]);
    /// OpenDDS.
    pub const OPENDDS: Self = Self([0x01, 0x03]);
    /// eProsima Fast DDS.
    pub const FAST_DDS: Self = Self([0x01, 0x0f]);
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: Self = Self([0x01, 0x10]);
    /// RustDDS.
    pub const RUSTDDS: Self = Self([0x01, 0x12]);

    /// The product's name, of the OMG's list of vendor ids.
    pub const fn name(self) -> Option<&'static str> {
        match self.0 {
            [0x01, 0x50] => Some("Pteros"),
            [0x01, 0x01] => Some("RTI Connext"),
            [0x01, 0x02] => Some("OpenSplice"),
            [0x01, 0x03] => Some("OpenDDS"),
            [0x01, 0x04] => Some("Mil-DDS"),
            [0x01, 0x05] => Some("InterCOM DDS"),
            [0x01, 0x06] => Some("CoreDX DDS"),
            [0x01, 0x07] => Some("Lakota DDS"),
            [0x01, 0x08] => Some("ICOUP DDS"),
            [0x01, 0x09] => Some("Diamond DDS"),
            [0x01, 0x0a] => Some("RTI Connext Micro"),
            [0x01, 0x0b] => Some("Vortex Cafe"),
            [0x01, 0x0c] => Some("PrismTech DDS"),
            [0x01, 0x0d] => Some("Vortex Lite"),
            [0x01, 0x0e] => Some("Qeo"),
            [0x01, 0x0f] => Some("Fast DDS"),
            [0x01, 0x10] => Some("Cyclone DDS"),
            [0x01, 0x11] => Some("GurumDDS"),
            [0x01, 0x12] => Some("RustDDS"),
            [0x01, 0x13] => Some("ZRDDS"),
            [0x01, 0x14] => Some("Dust DDS"),
            _ => None,
        }
    }
}

impl fmt::Debug for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "vendor 0x{:02x}{:02x}", self.0[0], self.0[1]),
        }
    }
}

/// A version of the RTPS protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProtocolVersion {
    /// Only 2 is supported; other majors are ignored (§8.3.5.3).
    pub major: u8,
    /// Higher minors than ours are read as ours.
    pub minor: u8,
}

impl ProtocolVersion {
    /// The announced version. ROS 2 peers since 2020 accept 2.3 without a warning,
    /// and nothing we send needs a later minor.
    pub const OURS: Self = Self { major: 2, minor: 3 };
}
