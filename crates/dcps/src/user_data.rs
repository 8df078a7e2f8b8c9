//! USER_DATA as ROS 2 uses it: a `key=value;` list before the bytes of the user (DDS
//! 1.4 §2.2.3.1).

use alloc::borrow::ToOwned;
use alloc::string::String;

/// USER_DATA of an endpoint without entries. Empty USER_DATA makes rmw_cyclonedds
/// and rmw_fastrtps print a warning for every such endpoint that they discover.
pub const NO_ENTRIES: &[u8] = b";";

/// The value of `key` in a `key=value;` list; other keys are skipped.
pub fn user_data_value(user_data: &[u8], key: &str) -> Option<String> {
    // Arbitrary bytes of the user may follow.
    let text = String::from_utf8_lossy(user_data);
    text.trim_end_matches('\0')
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .find(|(k, _)| *k == key)
        .map(|(_, value)| value.to_owned())
}

/// An endpoint's USER_DATA without the entries of ROS 2: the type hash and the id
/// of a service client or server.
pub fn free_user_data(user_data: &[u8]) -> &[u8] {
    if user_data == NO_ENTRIES {
        return &[];
    }
    let mut free = user_data;
    while let Some(end) = free.iter().position(|byte| *byte == b';')
        && ROS_KEYS.iter().any(|key| free.starts_with(key.as_bytes()))
    {
        free = free.get(end + 1..).unwrap_or_default();
    }
    free
}

const ROS_KEYS: [&str; 3] = ["typehash=", "clientid=", "serviceid="];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_is_a_list_of_pairs_with_unknown_keys() {
        let data = b"serviceid= 1.2;typehash=RIHS01_ab;enclave=/;\0";
        assert_eq!(
            user_data_value(data, "typehash").as_deref(),
            Some("RIHS01_ab")
        );
        assert_eq!(user_data_value(data, "enclave").as_deref(), Some("/"));
        assert_eq!(user_data_value(&[0xff, 0xfe], "enclave"), None);
        let with_bytes = b"typehash=RIHS01_ab;\xff;\x00;";
        assert!(user_data_value(with_bytes, "typehash").is_some());
        assert_eq!(free_user_data(with_bytes), b"\xff;\x00;");
        assert_eq!(free_user_data(b"typehash=RIHS01_ab;"), b"");
        assert_eq!(free_user_data(b"mine;"), b"mine;");
        assert_eq!(free_user_data(NO_ENTRIES), b"");
        assert_eq!(user_data_value(NO_ENTRIES, "typehash"), None);
    }
}
