//! Subject names of certificates, in the forms that permissions files use: RFC 4514
//! (`CN=a,O=b`, last part first), OpenSSL's orders and spaces (`O = b, CN = a`),
//! and its old form (`/O=b/CN=a`). Two names are equal if their parts are, forwards
//! or backwards.

use std::fmt;

use der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use der::{Encode, Tag, Tagged};
use x509_cert::name::Name;

/// A distinguished name: parts in the order of the certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectName {
    /// Each part has one attribute, seldom more: type as dotted OID, value.
    parts: Vec<Vec<(String, String)>>,
}

impl SubjectName {
    /// Parses a name in a permissions file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_slashed = text.strip_prefix('/').is_some_and(begins_attribute);
        let parts = if is_slashed {
            slashed(text)?
        } else {
            split(text, &[',', ';'])?
                .into_iter()
                .map(|part| {
                    split(part, &['+'])?
                        .into_iter()
                        .map(attribute)
                        .collect::<Result<Vec<_>, _>>()
                })
                .collect::<Result<Vec<_>, _>>()?
        };
        if parts.is_empty() {
            return Err("empty".into());
        }
        Ok(Self::ordered(parts))
    }

    /// The name in a certificate.
    pub fn of(name: &Name) -> Self {
        let parts = name
            .0
            .iter()
            .map(|part| {
                let attributes = part.0.iter();
                attributes
                    .map(|a| (a.oid.to_string(), text_of(&a.value)))
                    .collect()
            })
            .collect();
        Self::ordered(parts)
    }

    /// Whether both names are equal. OpenSSL and RFC 4514 write the parts in
    /// opposite orders, and a file does not say which order it has.
    pub fn is_same_subject(&self, other: &Self) -> bool {
        self.parts == other.parts || self.parts.iter().eq(other.parts.iter().rev())
    }

    /// The first common name.
    pub fn common_name(&self) -> Option<&str> {
        let attributes = self.parts.iter().flatten();
        let mut names = attributes.filter(|(oid, _)| oid == "2.5.4.3");
        names.next().map(|(_, value)| value.as_str())
    }

    fn ordered(mut parts: Vec<Vec<(String, String)>>) -> Self {
        for part in &mut parts {
            part.sort();
        }
        Self { parts }
    }
}

/// RFC 4514: the last part first.
impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().rev().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            for (index, (oid, value)) in part.iter().enumerate() {
                if index > 0 {
                    f.write_str("+")?;
                }
                let name = SHORT_NAMES.iter().find(|(_, known)| *known == oid);
                write!(f, "{}=", name.map_or(oid.as_str(), |(name, _)| name))?;
                for c in value.chars() {
                    if matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
                        f.write_str("\\")?;
                    }
                    fmt::Write::write_char(f, c)?;
                }
            }
        }
        Ok(())
    }
}

/// The value of an attribute as text; other values as `#` and hexadecimal.
fn text_of(value: &der::Any) -> String {
    let text = match value.tag() {
        Tag::Utf8String => value
            .decode_as::<Utf8StringRef<'_>>()
            .map(|s| s.to_string())
            .ok(),
        Tag::PrintableString => value
            .decode_as::<PrintableStringRef<'_>>()
            .map(|s| s.to_string())
            .ok(),
        Tag::Ia5String => value
            .decode_as::<Ia5StringRef<'_>>()
            .map(|s| s.to_string())
            .ok(),
        Tag::TeletexString => value
            .decode_as::<TeletexStringRef<'_>>()
            .map(|s| s.to_string())
            .ok(),
        _ => None,
    };
    text.unwrap_or_else(|| {
        let bytes = value.to_der().unwrap_or_default();
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("#{hexadecimal}")
    })
}

/// Whether the text begins with `TYPE=` of a known type.
fn begins_attribute(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| oid_of(name).is_ok())
}

/// `/C=DE/O=a/b/CN=/talker`: a slash begins a part only before a known type.
fn slashed(text: &str) -> Result<Vec<Vec<(String, String)>>, String> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('/') {
        let next = at.saturating_add(1);
        if at > 0 && text.get(next..).is_some_and(begins_attribute) {
            parts.push(vec![attribute(text.get(start..at).unwrap_or_default())?]);
            start = next;
        } else if at == 0 {
            start = next;
        }
    }
    parts.push(vec![attribute(text.get(start..).unwrap_or_default())?]);
    Ok(parts)
}

/// Splits at these characters, except in quotes and after a backslash.
fn split<'a>(text: &'a str, at: &[char]) -> Result<Vec<&'a str>, String> {
    let mut parts = Vec::new();
    let (mut start, mut escaped, mut quoted) = (0, false, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if !quoted && at.contains(&c) => {
                parts.push(text.get(start..index).unwrap_or_default());
                start = index.saturating_add(c.len_utf8());
            }
            _ => {}
        }
    }
    if quoted || escaped {
        return Err("a quote or backslash is left open".into());
    }
    parts.push(text.get(start..).unwrap_or_default());
    Ok(parts)
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("'{}' has no =", text.trim()))?;
    Ok((oid_of(name)?, unescaped(value.trim())?))
}

fn oid_of(name: &str) -> Result<String, String> {
    let name = name.trim();
    let known = SHORT_NAMES
        .iter()
        .find(|(short, _)| short.eq_ignore_ascii_case(name));
    if let Some((_, oid)) = known {
        return Ok((*oid).into());
    }
    let dotted = name.contains('.') && name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if dotted {
        Ok(name.into())
    } else {
        Err(format!("'{name}' is not a known attribute"))
    }
}

/// RFC 4514 §2.4, and the quotes of RFC 2253 §4.
fn unescaped(value: &str) -> Result<String, String> {
    let value = value
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
        .unwrap_or(value);
    let mut bytes = Vec::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        let hexadecimal = rest
            .as_str()
            .get(..2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (c, hexadecimal) {
            ('\\', Some(byte)) => {
                bytes.push(byte);
                rest = rest.as_str().get(2..).unwrap_or_default().chars();
            }
            ('\\', None) => {
                let escaped = rest.next().ok_or("ends with a backslash")?;
                bytes.extend(escaped.to_string().bytes());
            }
            _ => bytes.extend(c.to_string().bytes()),
        }
    }
    String::from_utf8(bytes).map_err(|_| "the escaped bytes are not UTF-8".into())
}

/// Of two names for one type, the first is displayed.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("CN", "2.5.4.3"),
    ("SN", "2.5.4.4"),
    ("serialNumber", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("S", "2.5.4.8"),
    ("street", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("title", "2.5.4.12"),
    ("GN", "2.5.4.42"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
    ("E", "1.2.840.113549.1.9.1"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_subject_may_be_written_in_many_ways() {
        let name = SubjectName::parse("C=DE, O=Robots\\, Inc., CN=/arm/left").unwrap();
        for same in [
            "CN=/arm/left,O=Robots\\, Inc.,C=DE",
            "cn = /arm/left ; o = \"Robots, Inc.\" ; c = DE",
            "/C=DE/O=Robots, Inc./CN=/arm/left",
            "2.5.4.3=/arm/left,O=Robots\\2C Inc.,C=DE",
        ] {
            let same = SubjectName::parse(same).unwrap();
            assert!(
                same.is_same_subject(&name) && name.is_same_subject(&same),
                "{same}"
            );
        }
        for other in [
            "CN=/arm/left",
            "O=Robots\\, Inc.,CN=/arm/left,C=DE",
            "CN=/arm/Left,O=Robots\\, Inc.,C=DE",
        ] {
            let other = SubjectName::parse(other).unwrap();
            assert!(!other.is_same_subject(&name), "{other}");
        }
        assert_eq!(name.common_name(), Some("/arm/left"));
        assert_eq!(SubjectName::parse(&name.to_string()).unwrap(), {
            SubjectName::parse("CN=/arm/left,O=Robots\\, Inc.,C=DE").unwrap()
        });
    }

    #[test]
    fn invalid_subjects_are_rejected() {
        for text in [
            "", "talker", "/talker", "FOO=x", "CN=\"a", "CN=a\\", "CN=\\ff",
        ] {
            assert!(SubjectName::parse(text).is_err(), "{text}");
        }
    }
}
