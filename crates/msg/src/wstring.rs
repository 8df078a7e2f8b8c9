//! UTF-16 strings (`wstring`), which Rust does not have.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A ROS `wstring`: UTF-16 code units, valid or not, as they travel.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub Vec<u16>);

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Unpaired surrogates show as U+FFFD.
impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        char::decode_utf16(self.0.iter().copied())
            .try_for_each(|c| f.write_char(c.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl fmt::Debug for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&format!("{self}"), f)
    }
}
