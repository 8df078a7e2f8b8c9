//! Limits of discovery data received from peers.
//!
//! Data that takes part in matching must be complete: a sample that exceeds such a
//! limit is refused. Informative data that exceeds its limit is left out, so that
//! the peer is still discovered.

/// The configurable limits. Each constant below documents the effect of its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataLimits {
    /// See [`NAME_BYTES`], the default.
    pub name_bytes: usize,
    /// See [`USER_DATA_BYTES`], the default.
    pub user_data_bytes: usize,
    /// See [`PROPERTIES_BYTES`], the default.
    pub property_list_bytes: usize,
}

impl Default for DataLimits {
    fn default() -> Self {
        Self {
            name_bytes: NAME_BYTES,
            user_data_bytes: USER_DATA_BYTES,
            property_list_bytes: PROPERTIES_BYTES,
        }
    }
}

/// Topic and type names, bytes each; ROS 2 allows 247. A longer one is refused.
pub const NAME_BYTES: usize = 256;
/// Partition names of one endpoint. More are refused.
pub const PARTITIONS: usize = 64;
/// Data representations of one endpoint. More are refused.
pub const REPRESENTATIONS: usize = 16;
/// User, topic and group data, bytes each: ten times the size of type hash and
/// service id. Longer data is left out.
pub const USER_DATA_BYTES: usize = 1024;
/// The entity name, bytes. A longer one is left out.
pub const ENTITY_NAME_BYTES: usize = 256;
/// The property list in its wire form, bytes. A longer one is left out.
pub const PROPERTIES_BYTES: usize = 4096;
/// Locators of each kind; the first ones are kept.
pub const LOCATORS: usize = 32;
/// Type information and each security token, bytes. Longer ones are left out.
pub const OPAQUE_BYTES: usize = 16 * 1024;
/// Stalled readers of one writer; the first ones are kept.
pub const STALLED_READERS: usize = 16;
/// Writers of one reader that sent undecodable samples; the first ones are kept.
pub const UNDECODABLE_WRITERS: usize = 16;
/// Security tokens of one participant; the first ones are kept.
pub const SECURITY_TOKENS: usize = 8;
