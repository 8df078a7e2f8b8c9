//! How much of a peer's words is kept. What takes part in matching must be
//! whole: beyond its limit the sample is refused. What only informs is left
//! out when it is longer, so that a talkative peer is still found.

/// The limits that can be chosen; see the constants for what happens beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataLimits {
    /// As [`NAME_BYTES`], which is the default.
    pub name_bytes: usize,
    /// As [`USER_DATA_BYTES`], which is the default.
    pub user_data_bytes: usize,
    /// As [`PROPERTIES_BYTES`], which is the default.
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

/// Topic and type names, bytes each; ROS 2 allows 247. Refused beyond.
pub const NAME_BYTES: usize = 256;
/// Partition names of one endpoint. Refused beyond.
pub const PARTITIONS: usize = 64;
/// Data representations of one endpoint. Refused beyond.
pub const REPRESENTATIONS: usize = 16;
/// User, topic and group data, bytes each: room for type hash and service id
/// ten times over. Left out beyond.
pub const USER_DATA_BYTES: usize = 1024;
/// The entity name, bytes. Left out beyond.
pub const ENTITY_NAME_BYTES: usize = 256;
/// The property list as it stands on the wire, bytes. Left out beyond.
pub const PROPERTIES_BYTES: usize = 4096;
/// Locators of each kind; the first ones are kept.
pub const LOCATORS: usize = 32;
/// Type information and each security token, bytes. Left out
/// beyond.
pub const OPAQUE_BYTES: usize = 16 * 1024;
/// Security tokens of one participant; the first ones are kept.
pub const SECURITY_TOKENS: usize = 8;
