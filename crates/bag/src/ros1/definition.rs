//! Message definitions of ROS 1: the text of a type, followed by its nested types after
//! separator lines.

use std::collections::BTreeMap;

/// Builtin types and message types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ros1Type {
    Bool,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
    String,
    Time,
    Duration,
    /// Type name, for example `geometry_msgs/Point`.
    Message(String),
}

impl Ros1Type {
    /// Serialized size of types with a fixed size.
    pub(super) fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => Some(1),
            Self::Int16 | Self::Uint16 => Some(2),
            Self::Int32 | Self::Uint32 | Self::Float32 => Some(4),
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::Time | Self::Duration => Some(8),
            Self::String | Self::Message(_) => None,
        }
    }

    fn parse(text: &str, package: &str) -> Self {
        match text {
            "bool" => Self::Bool,
            // ROS 1's byte is signed, its char is not.
            "int8" | "byte" => Self::Int8,
            "uint8" | "char" => Self::Uint8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "uint64" => Self::Uint64,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "string" => Self::String,
            "time" => Self::Time,
            "duration" => Self::Duration,
            "Header" => Self::Message("std_msgs/Header".into()),
            other if other.contains('/') => Self::Message(other.into()),
            other => Self::Message(format!("{package}/{other}")),
        }
    }
}

/// Number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Fixed(usize),
    Variable,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ros1Field {
    pub name: String,
    pub ty: Ros1Type,
    pub count: Count,
}

/// Message definitions by full name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definitions {
    pub messages: BTreeMap<String, Vec<Ros1Field>>,
}

impl Definitions {
    /// Parses a type's definition with all nested ones.
    ///
    /// # Errors
    /// A line is neither a field nor a constant.
    pub(super) fn parse(type_name: &str, text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        let mut name = type_name.to_owned();
        let mut fields = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if line.len() >= 10 && line.bytes().all(|byte| byte == b'=') {
                all.messages.insert(name, std::mem::take(&mut fields));
                name = String::new();
            } else if let Some(next) = line.strip_prefix("MSG:") {
                name = next.trim().to_owned();
            } else if let Some(field) = parse_line(line, &name)? {
                fields.push(field);
            }
        }
        all.messages.insert(name, fields);
        Ok(all)
    }

    /// Fields of a message.
    ///
    /// # Errors
    /// The definition lacks the message.
    pub(super) fn fields(&self, name: &str) -> Result<&[Ros1Field], String> {
        let found = self.messages.get(name).map(Vec::as_slice);
        found.ok_or_else(|| format!("the bag has no definition of {name}"))
    }
}

/// Parses the field of a line. `None` for blanks, comments and constants.
fn parse_line(line: &str, message: &str) -> Result<Option<Ros1Field>, String> {
    let code = line.split('#').next().unwrap_or_default().trim();
    if code.is_empty() || code.contains('=') {
        return Ok(None);
    }
    let invalid = || format!("{message}: the line {line:?} is no field");
    let (type_text, name) = code
        .split_once(char::is_whitespace)
        .map(|(ty, name)| (ty, name.trim()))
        .filter(|(_, name)| !name.is_empty() && !name.contains(char::is_whitespace))
        .ok_or_else(invalid)?;
    let (element, count) = match type_text.strip_suffix(']') {
        None => (type_text, Count::One),
        Some(open) => match open.split_once('[').ok_or_else(invalid)? {
            (element, "") => (element, Count::Variable),
            (element, number) => (
                element,
                Count::Fixed(number.trim().parse().map_err(|_| invalid())?),
            ),
        },
    };
    let package = message.split('/').next().unwrap_or_default();
    Ok(Some(Ros1Field {
        name: name.to_owned(),
        ty: Ros1Type::parse(element, package),
        count,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_constants_left_out() {
        let text = "# a comment\nHeader header\nuint8 BIG=1 # constant\nstring NAME=a#b\nPoint[] points # nested\nfloat64[9] K\n================================================================================\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n================================================================================\nMSG: my_msgs/Point\nbyte x\n";
        let all = Definitions::parse("my_msgs/Cloud", text).unwrap();
        let fields = all.fields("my_msgs/Cloud").unwrap();
        let shown: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(shown, ["header", "points", "K"]);
        assert_eq!(fields[0].ty, Ros1Type::Message("std_msgs/Header".into()));
        assert_eq!(fields[1].ty, Ros1Type::Message("my_msgs/Point".into()));
        assert_eq!(
            (&fields[2].ty, fields[2].count),
            (&Ros1Type::Float64, Count::Fixed(9))
        );
        assert_eq!(all.fields("std_msgs/Header").unwrap()[1].ty, Ros1Type::Time);
        assert_eq!(all.fields("my_msgs/Point").unwrap()[0].ty, Ros1Type::Int8);
        let error = Definitions::parse("a/B", "uint8[x] y").unwrap_err();
        assert_eq!(error, "a/B: the line \"uint8[x] y\" is no field");
    }
}
