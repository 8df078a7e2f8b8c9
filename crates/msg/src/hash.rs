//! RIHS01 type hash, by which ROS 2 endpoints compare types.
//!
//! The hash is the SHA-256 of the type's description as JSON, with fixed key order,
//! `", "` and `": "` as separators and ASCII only; defaults and comments do not
//! count. Two types with equal hashes have the same fields in the same order, at
//! all depths. Source: `rosidl_generator_type_description`, REP 2016.

use crate::describe::{Field, IndividualTypeDescription, TypeDescription};
use alloc::string::{String, ToString};
use core::fmt::{self, Write};
use core::str::FromStr;

/// A type's hash. Displays as `RIHS01_` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHash {
    version: u8,
    value: [u8; 32],
}

impl TypeHash {
    /// A RIHS01 hash with this SHA-256 value.
    pub const fn rihs01(value: [u8; 32]) -> Self {
        Self { version: 1, value }
    }

    /// A RIHS01 hash from its 64 hexadecimal digits, for constants.
    ///
    /// # Panics
    /// On anything else; in a constant that is an error of the compiler's.
    pub const fn from_hex(digits: &str) -> Self {
        #[allow(clippy::panic, reason = "for constants: the compiler says it")]
        match parse_hex(digits.as_bytes()) {
            Ok(value) => Self::rihs01(value),
            Err(_) => panic!("a RIHS01 hash has 64 hexadecimal digits"),
        }
    }

    /// The 64 lower-case hexadecimal digits behind the prefix.
    pub fn hex(&self) -> String {
        let text = self.to_string();
        text.split_once('_')
            .map_or(String::new(), |(_, hex)| hex.into())
    }

    /// The standard's version: 1 for RIHS01.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The 32 bytes behind the prefix.
    pub const fn value(&self) -> &[u8; 32] {
        &self.value
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RIHS{:02}_", self.version)?;
        self.value
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is no type hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TypeHashError;

crate::debug_as_display!(TypeHashError);

impl fmt::Display for TypeHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a type hash; expected RIHS01_ and 64 hexadecimal digits")
    }
}

impl core::error::Error for TypeHashError {}

impl FromStr for TypeHash {
    type Err = TypeHashError;

    /// Reads `RIHS01_<64 hex digits>`; other versions are refused, since their
    /// value would mean something else.
    fn from_str(text: &str) -> Result<Self, TypeHashError> {
        let digits = text.strip_prefix("RIHS01_").ok_or(TypeHashError)?;
        parse_hex(digits.as_bytes()).map(Self::rihs01)
    }
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a constant function has no iterators; the length is checked first"
)]
const fn parse_hex(digits: &[u8]) -> Result<[u8; 32], TypeHashError> {
    let mut value = [0; 32];
    if digits.len() != 64 {
        return Err(TypeHashError);
    }
    let mut index = 0;
    while index < 32 {
        match (
            hex_digit(digits[2 * index]),
            hex_digit(digits[2 * index + 1]),
        ) {
            (Ok(high), Ok(low)) => value[index] = high << 4 | low,
            _ => return Err(TypeHashError),
        }
        index += 1;
    }
    Ok(value)
}

const fn hex_digit(digit: u8) -> Result<u8, TypeHashError> {
    match digit {
        b'0'..=b'9' => Ok(digit & 0x0f),
        b'a'..=b'f' | b'A'..=b'F' => Ok((digit & 0x0f).saturating_add(9)),
        _ => Err(TypeHashError),
    }
}

/// The hash of a described type. `referenced` must be complete and sorted by
/// name, as [`InterfaceLibrary::describe`](crate::library::InterfaceLibrary::describe)
/// gives it.
pub fn rihs01(description: &TypeDescription) -> TypeHash {
    let mut hasher = JsonHasher(hmac_sha256::Hash::new());
    // The hasher takes any text, so formatting into it cannot fail.
    let _ = write_description(&mut hasher, description);
    TypeHash::rihs01(hasher.0.finalize())
}

/// Feeds text into SHA-256 as it is written: no JSON is ever stored.
struct JsonHasher(hmac_sha256::Hash);

impl Write for JsonHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

fn write_description(out: &mut impl Write, description: &TypeDescription) -> fmt::Result {
    out.write_str("{\"type_description\": ")?;
    write_individual(out, &description.type_description)?;
    out.write_str(", \"referenced_type_descriptions\": [")?;
    for (index, referenced) in description.referenced.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_individual(out, referenced)?;
    }
    out.write_str("]}")
}

fn write_individual(out: &mut impl Write, ty: &IndividualTypeDescription) -> fmt::Result {
    out.write_str("{\"type_name\": ")?;
    write_json_string(out, &ty.type_name)?;
    out.write_str(", \"fields\": [")?;
    for (index, field) in ty.fields.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_field(out, field)?;
    }
    out.write_str("]}")
}

fn write_field(out: &mut impl Write, field: &Field) -> fmt::Result {
    let ty = &field.field_type;
    out.write_str("{\"name\": ")?;
    write_json_string(out, &field.name)?;
    write!(
        out,
        ", \"type\": {{\"type_id\": {}, \"capacity\": {}, \"string_capacity\": {}, \"nested_type_name\": ",
        ty.type_id, ty.capacity, ty.string_capacity
    )?;
    write_json_string(out, &ty.nested_type_name)?;
    out.write_str("}}")
}

/// Names are ASCII by grammar; descriptions from the network may hold anything,
/// so the rest is escaped as Python's `json.dumps(ensure_ascii=True)` does.
fn write_json_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            ' '..='~' => out.write_char(c)?,
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_round_trips_through_text() {
        let text = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
        let hash: TypeHash = text.parse().unwrap();
        assert_eq!(hash.to_string(), text);
        assert_eq!(hash.value()[0], 0xdf);
    }

    #[test]
    fn invalid_hash_text_is_rejected() {
        for bad in [
            "",
            "RIHS01_",
            "RIHS01_df",
            "RIHS02_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
            "RIHS01_xf668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
        ] {
            assert_eq!(bad.parse::<TypeHash>(), Err(TypeHashError), "{bad}");
        }
    }
}
