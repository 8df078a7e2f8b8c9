//! SQLite records: variable-length integers, serial types and values.

use std::ops::Range;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    /// Range of the bytes in the record.
    Blob(Range<usize>),
}

impl Value {
    /// The integer; `None` for other types.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The text; `None` for other types.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Parses a variable-length integer: seven bits per byte, the ninth byte whole.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, String> {
    let mut value = 0u64;
    for position in 0..9 {
        let byte = bytes
            .get(*at)
            .copied()
            .ok_or("a number goes beyond its page")?;
        *at += 1;
        if position == 8 {
            return Ok(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

/// Text encoding of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEncoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl TextEncoding {
    fn decode(self, bytes: &[u8]) -> String {
        let words = |combine: fn([u8; 2]) -> u16| {
            let pairs = bytes.as_chunks::<2>().0.iter();
            let words: Vec<u16> = pairs.map(|pair| combine(*pair)).collect();
            String::from_utf16_lossy(&words)
        };
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Self::Utf16Le => words(u16::from_le_bytes),
            Self::Utf16Be => words(u16::from_be_bytes),
        }
    }
}

/// Parses the first `columns` values of a record. `record` may end early if later columns
/// are not needed.
pub(crate) fn values(
    record: &[u8],
    columns: usize,
    encoding: TextEncoding,
) -> Result<Vec<Value>, String> {
    let mut at = 0;
    let header_end = varint(record, &mut at)?;
    let header_end = usize::try_from(header_end).unwrap_or(usize::MAX);
    if header_end > record.len() {
        return Err("the head of a record is longer than the record".to_owned());
    }
    let mut body = header_end;
    let mut values = Vec::new();
    while at < header_end && values.len() < columns {
        let serial_type = varint(record, &mut at)?;
        let length = length_of(serial_type)?;
        let end = body.checked_add(length).ok_or("a value is too long")?;
        values.push(match serial_type {
            0 => Value::Null,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 => Value::Integer(integer(bytes_of(record, body..end)?)),
            7 => {
                let bits = integer(bytes_of(record, body..end)?);
                Value::Real(f64::from_bits(bits.cast_unsigned()))
            }
            // The caller compares the end with the record's length.
            even if even % 2 == 0 => Value::Blob(body..end),
            _ => Value::Text(encoding.decode(bytes_of(record, body..end)?)),
        });
        body = end;
    }
    Ok(values)
}

fn bytes_of(record: &[u8], range: Range<usize>) -> Result<&[u8], String> {
    let found = record.get(range);
    found.ok_or_else(|| "a value is longer than its record".to_owned())
}

fn length_of(serial_type: u64) -> Result<usize, String> {
    let length = match serial_type {
        0 | 8 | 9 => 0,
        1..=4 => serial_type,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return Err(format!("serial type {serial_type}, which is reserved")),
        other => (other - 12) / 2,
    };
    usize::try_from(length).map_err(|_| "a value is too long".to_owned())
}

/// A big-endian signed integer of 1 to 8 bytes.
fn integer(bytes: &[u8]) -> i64 {
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let start = if is_negative { -1i64 } else { 0 };
    bytes
        .iter()
        .fold(start, |value, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_to_nine_bytes() {
        for (bytes, expected) in [
            (&[0x05][..], 5),
            (&[0x81, 0x00], 128),
            (&[0xff; 9], u64::MAX),
            (&[0x80, 0x80, 0x01], 1),
        ] {
            let mut at = 0;
            assert_eq!(varint(bytes, &mut at).unwrap(), expected);
            assert_eq!(at, bytes.len());
        }
        assert!(varint(&[0xff, 0xff], &mut 0).is_err());
    }

    #[test]
    fn values_of_all_serial_types_are_read() {
        let record = [
            9, 0, 1, 2, 3, 8, 9, 14, 17, 0xff, 0x01, 0x00, 0xff, 0xff, 0xfe, 7, b'h', b'i',
        ];
        let read = values(&record, 9, TextEncoding::Utf8).unwrap();
        let expected = [
            Value::Null,
            Value::Integer(-1),
            Value::Integer(256),
            Value::Integer(-2),
            Value::Integer(0),
            Value::Integer(1),
            Value::Blob(15..16),
            Value::Text("hi".into()),
        ];
        assert_eq!(read, expected);
        assert_eq!(values(&record, 2, TextEncoding::Utf8).unwrap().len(), 2);
        assert!(values(&record[..17], 9, TextEncoding::Utf8).is_err());
        assert!(values(&[2, 10], 9, TextEncoding::Utf8).is_err());
        assert_eq!(TextEncoding::Utf16Be.decode(&[0, b'a', 0, b'b']), "ab");
    }
}
