//! Names of stores and of their files, and the stores in a folder.

use crate::error::StoreError;

/// Extension of store files.
pub const FILE_EXTENSION: &str = "redb";

/// Limit of a file name without extension, bytes. The rest of a longer name is
/// replaced by a hash.
pub const NAME_BYTES_MAX: usize = 200;

/// The default name of a publisher's store: the same after every restart, and
/// different for each domain, node and topic.
pub fn default_name(domain_id: u32, node: &str, topic: &str) -> String {
    format!("{domain_id}{node}:{topic}")
}

/// The file name of a store: slashes become `%`; other characters than letters,
/// digits and `._-:` become `=` and their number.
///
/// # Errors
/// [`StoreError::Name`] for an empty name.
pub fn file_name(name: &str) -> Result<String, StoreError> {
    if name.trim().is_empty() {
        return Err(StoreError::Name {
            name: name.into(),
            reason: "it is empty",
        });
    }
    let mut file = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'/' => file.push('%'),
            // Not a hidden file.
            b'.' if at > 0 => file.push('.'),
            b'_' | b'-' | b':' => file.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => file.push(char::from(byte)),
            _ => file.push_str(&format!("={byte:02x}")),
        }
    }
    if file.len() > NAME_BYTES_MAX {
        let hash = fnv1a(name.as_bytes());
        file.truncate(NAME_BYTES_MAX - 17);
        file.push_str(&format!("~{hash:016x}"));
    }
    Ok(format!("{file}.{FILE_EXTENSION}"))
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files_that_stay_in_their_folder() {
        let name = default_name(42, "/arm/driver", "/arm/state");
        assert_eq!(file_name(&name).unwrap(), "42%arm%driver:%arm%state.redb");
        assert_eq!(file_name("../a b%").unwrap(), "=2e.%a=20b=25.redb");
        assert!(file_name(" ").is_err());
        let long = "x".repeat(300);
        let file = file_name(&long).unwrap();
        assert_eq!(file.len(), NAME_BYTES_MAX + 5);
        assert_ne!(file, file_name(&format!("{long}y")).unwrap());
    }
}
