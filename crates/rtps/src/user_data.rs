//! USER_DATA as ROS 2 uses it: a `key=value;` list before the bytes of the user (DDS
//! 1.4 §2.2.3.1). Among the entries is the type hash (REP-2011, `RIHS01_…`).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

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
        free = free.get(end.saturating_add(1)..).unwrap_or_default();
    }
    free
}

const ROS_KEYS: [&str; 5] = [
    "typehash=",
    SERVICE_TYPE_HASH,
    "clientid=",
    "serviceid=",
    "anytypehash=",
];

/// The hash of a service on its topics, in rmw_fastrtps and rmw_cyclonedds since Lyrical.
/// Their `typehash=` is that of the request or of the response.
const SERVICE_TYPE_HASH: &str = "sertypehash=";

/// Entry of a reader that takes samples of every version of its type: one that never
/// decodes, as a recorder, or whose type is appendable. Other stacks skip it.
pub const ANY_TYPE_HASH: &str = "anytypehash=1;";

/// The entry of a type hash, in its text form.
pub fn type_hash_entry(hash: impl Display) -> Vec<u8> {
    alloc::format!("typehash={hash};").into_bytes()
}

/// The entry of the type hash of a service, which nodes of Lyrical list.
pub fn service_type_hash_entry(hash: impl Display) -> Vec<u8> {
    alloc::format!("{SERVICE_TYPE_HASH}{hash};").into_bytes()
}

/// The type hash in its text form; `None` without one, or with something else in its
/// place. Allocates nothing.
pub fn type_hash(user_data: &[u8]) -> Option<&str> {
    hash_of_entry(user_data, "typehash=")
}

/// As [`type_hash`], for an endpoint of a service: that of the service, if it is announced.
pub fn service_type_hash(user_data: &[u8]) -> Option<&str> {
    hash_of_entry(user_data, SERVICE_TYPE_HASH).or_else(|| type_hash(user_data))
}

fn hash_of_entry<'d>(user_data: &'d [u8], key: &str) -> Option<&'d str> {
    let mut entries = user_data.split(|byte| *byte == b';');
    let hash = entries.find_map(|entry| entry.strip_prefix(key.as_bytes()))?;
    let (version, digits) = hash.split_first_chunk::<VERSION_BYTES>()?;
    let is_hash = version.starts_with(b"RIHS")
        && version.ends_with(b"_")
        && digits.len() == DIGITS
        && digits.iter().all(u8::is_ascii_hexdigit);
    is_hash.then(|| core::str::from_utf8(hash).ok())?
}

/// Whether a writer and a reader announce different versions of their type: type hashes
/// of one kind that differ. A reader may take every version ([`ANY_TYPE_HASH`]).
/// Comments do not change a hash. Peers without one say nothing.
pub fn has_other_version(writer: &[u8], reader: &[u8]) -> bool {
    let (Some(offered), Some(requested)) = (type_hash(writer), type_hash(reader)) else {
        return false;
    };
    let kind = |hash: &str| hash.get(..VERSION_BYTES).map(str::to_owned);
    let any = ANY_TYPE_HASH.as_bytes();
    kind(offered) == kind(requested)
        && !offered.eq_ignore_ascii_case(requested)
        && !reader.windows(any.len()).any(|entry| entry == any)
}

/// `RIHS01_`.
const VERSION_BYTES: usize = 7;

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(version: &str, digit: char) -> String {
        let digits: String = core::iter::repeat_n(digit, DIGITS).collect();
        alloc::format!("{version}{digits}")
    }

    #[test]
    fn a_type_hash_is_read_from_its_entry_alone() {
        let (a, other) = (hash("RIHS01_", 'a'), hash("RIHS01_", 'A'));
        let of = |text: &str| type_hash(text.as_bytes()).map(ToOwned::to_owned);
        assert_eq!(of(&alloc::format!("typehash={a};")), Some(a.clone()));
        assert_eq!(
            of(&alloc::format!("serviceid= 1.2;typehash={other};\0")),
            Some(other)
        );
        for none in [
            "",
            ";",
            "typehash=;",
            "typehash=RIHS01_ab;",
            "enclave=/;",
            &alloc::format!("mytypehash={a};"),
            &alloc::format!("typehash={a}0;"),
            &alloc::format!("typehash={};", hash("RIHS01_", 'g')),
            &alloc::format!("typehash={};", hash("SHA256_", 'a')),
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(type_hash(&[0xff, b';', b't']), None);
    }

    #[test]
    fn the_hash_of_a_service_goes_before_that_of_its_request() {
        let (request, service) = (hash("RIHS01_", 'a'), hash("RIHS01_", 'b'));
        let mut entries = type_hash_entry(&request);
        assert_eq!(service_type_hash(&entries), Some(&*request));
        entries.extend(service_type_hash_entry(&service));
        assert_eq!(service_type_hash(&entries), Some(&*service));
        assert_eq!(type_hash(&entries), Some(&*request));
        assert_eq!(free_user_data(&entries), b"");
    }

    #[test]
    fn versions_differ_where_both_sides_announce_hashes_of_one_kind() {
        let entry = |hash: String| alloc::format!("typehash={hash};").into_bytes();
        let (a, b) = (entry(hash("RIHS01_", 'a')), entry(hash("RIHS01_", 'b')));
        assert!(has_other_version(&a, &b));
        assert!(!has_other_version(&a, &a));
        assert!(!has_other_version(&a, &entry(hash("RIHS01_", 'A'))));
        assert!(!has_other_version(&a, &entry(hash("RIHS02_", 'b'))));
        for unknown in [&b";"[..], b"", b"typehash=RIHS01_bb;", b"serviceid=1;"] {
            assert!(!has_other_version(&a, unknown));
            assert!(!has_other_version(unknown, &a));
        }
        let raw = [&b[..], ANY_TYPE_HASH.as_bytes()].concat();
        assert!(!has_other_version(&a, &raw));
        assert!(has_other_version(&raw, &a), "of readers alone");
        assert_eq!(free_user_data(&raw), b"");
    }

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
