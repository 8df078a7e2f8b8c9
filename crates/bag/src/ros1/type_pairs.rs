//! Maps types of ROS 1 to types of ROS 2.
//!
//! A standard type maps to the type of the same name (`geometry_msgs/Twist` to
//! `geometry_msgs/msg/Twist`). Every other type is translated: fields in lower case,
//! `time` as `builtin_interfaces/Time`, nested standard types as those of ROS 2.

use std::fmt::Write as _;
use std::ops::Range;

use pteros::msg::library::{InterfaceLibrary, split_full_name};

use super::convert::convert;
use super::definition::{Count, Definitions, Ros1Type};
use super::plan::{Plan, ros2_field_name};
use super::standard_definition::standard_definition;
use crate::definitions::definition_text;
use crate::mcap::CHUNK_BYTES_MAX;

/// Nesting depth above which a definition counts as invalid.
const DEPTH_MAX: usize = 32;

/// Converter of one type's messages.
#[derive(Debug)]
pub(crate) struct Converter {
    plan: Plan,
    /// Type name in ROS 2.
    pub type_name: String,
    pub definition: String,
    pub type_hash: String,
    /// A note about the translation.
    pub note: Option<String>,
}

impl Converter {
    /// Appends a message as CDR with its encapsulation header. Returns its range.
    ///
    /// # Errors
    /// The message does not fit its definition, or the output has reached the size of the
    /// largest chunk. Nothing is appended then.
    pub(crate) fn append(&self, message: &[u8], out: &mut Vec<u8>) -> Result<Range<usize>, String> {
        let start = out.len();
        let converted = if start as u64 > CHUNK_BYTES_MAX {
            Err("the chunk would be too large in ROS 2".to_owned())
        } else {
            convert(&self.plan, message, out)
        };
        if let Err(problem) = converted {
            out.truncate(start);
            return Err(problem);
        }
        Ok(start..out.len())
    }
}

/// Finds the ROS 2 types for one definition, and caches the translated ones. Another
/// definition may have other nested types of the same names.
pub(crate) struct TypePairs {
    library: InterfaceLibrary,
}

impl TypePairs {
    /// Converter of a type with this definition. Without a definition, that of the
    /// standard type of the same name is assumed and noted.
    ///
    /// # Errors
    /// The definition is missing or incomplete, or has names that ROS 2 does not allow.
    pub(crate) fn converter(
        library: &InterfaceLibrary,
        type_name: &str,
        definition: Option<&str>,
    ) -> Result<Converter, String> {
        let mut pairs = Self {
            library: library.clone(),
        };
        if let Some(text) = definition {
            return pairs.pair(type_name, &Definitions::parse(type_name, text)?);
        }
        for candidate in candidates(type_name) {
            let Ok(described) = pairs.library.describe(&candidate) else {
                continue;
            };
            let definitions = standard_definition(type_name, &described)?;
            let mut converter = pairs.pair(type_name, &definitions)?;
            converter.note = Some(format!(
                "the bag has no definition of {type_name}; it is read as {candidate}"
            ));
            return Ok(converter);
        }
        Err(format!(
            "the bag has no definition of {type_name}, and no standard type has this name"
        ))
    }

    fn pair(&mut self, type_name: &str, definitions: &Definitions) -> Result<Converter, String> {
        let mut note = None;
        let target = match self.standard_type(definitions, type_name) {
            Ok(known) => known,
            Err(reason) => {
                let translated = self.translate(definitions, type_name, 0)?;
                note = reason.map(|reason| {
                    format!(
                        "{type_name} is no pair of ROS 2's type ({reason}); it becomes {translated}"
                    )
                });
                translated
            }
        };
        let described = self.library.describe(&target).map_err(|e| e.to_string())?;
        Ok(Converter {
            plan: Plan::new(definitions, type_name, &described)?,
            definition: definition_text(&described, &self.library),
            type_hash: pteros::msg::hash::rihs01(&described).to_string(),
            type_name: target,
            note,
        })
    }

    /// The standard type of the same name, or the reason why it does not match.
    fn standard_type(
        &self,
        definitions: &Definitions,
        type_name: &str,
    ) -> Result<String, Option<String>> {
        let mut reason = None;
        for candidate in candidates(type_name) {
            let Ok(described) = self.library.describe(&candidate) else {
                continue;
            };
            match Plan::new(definitions, type_name, &described) {
                Ok(_) => return Ok(candidate),
                Err(problem) => reason = Some(problem),
            }
        }
        Err(reason)
    }

    /// Adds the translation of a type to the library. Returns its name.
    fn translate(
        &mut self,
        definitions: &Definitions,
        type_name: &str,
        depth: usize,
    ) -> Result<String, String> {
        if depth > DEPTH_MAX {
            return Err(format!("{type_name} is nested more than {DEPTH_MAX} times"));
        }
        let mut text = String::new();
        for field in definitions.fields(type_name)? {
            let element = match &field.ty {
                Ros1Type::Bool => "bool".to_owned(),
                Ros1Type::Int8 => "int8".to_owned(),
                Ros1Type::Uint8 => "uint8".to_owned(),
                Ros1Type::Int16 => "int16".to_owned(),
                Ros1Type::Uint16 => "uint16".to_owned(),
                Ros1Type::Int32 => "int32".to_owned(),
                Ros1Type::Uint32 => "uint32".to_owned(),
                Ros1Type::Int64 => "int64".to_owned(),
                Ros1Type::Uint64 => "uint64".to_owned(),
                Ros1Type::Float32 => "float32".to_owned(),
                Ros1Type::Float64 => "float64".to_owned(),
                Ros1Type::String => "string".to_owned(),
                Ros1Type::Time => "builtin_interfaces/Time".to_owned(),
                Ros1Type::Duration => "builtin_interfaces/Duration".to_owned(),
                Ros1Type::Message(name) => {
                    let nested = match self.standard_type(definitions, name) {
                        Ok(known) => known,
                        Err(_) => self.translate(definitions, name, depth + 1)?,
                    };
                    nested.replacen("/msg/", "/", 1)
                }
            };
            let count = match field.count {
                Count::One => String::new(),
                Count::Fixed(count) => format!("[{count}]"),
                Count::Variable => "[]".to_owned(),
            };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{element}{count} {}", ros2_field_name(&field.name));
        }
        let name = self.free_name(type_name, &text)?;
        if let Some((package, kind, short)) = split_full_name(&name) {
            let origin = "a bag of ROS 1";
            self.library.insert_text(package, kind, short, text, origin);
        }
        Ok(name)
    }

    /// Name of the type in ROS 2. If the library has a different type of that name,
    /// another name is chosen.
    fn free_name(&self, type_name: &str, text: &str) -> Result<String, String> {
        let (package, name) = type_name
            .split_once('/')
            .ok_or_else(|| format!("{type_name} is no name of a type; it needs a package"))?;
        let package = ros2_field_name(package);
        let words = name.split('_').map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        });
        let name: String = words.collect();
        let own = format!("{package}/msg/{name}");
        match self.library.text(&own) {
            Some(known) if known != text => Ok(format!("{package}_ros1/msg/{name}")),
            _ => Ok(own),
        }
    }
}

/// Candidate ROS 2 types for a ROS 1 type, the likeliest first.
fn candidates(type_name: &str) -> Vec<String> {
    let Some((package, name)) = type_name.split_once('/') else {
        return Vec::new();
    };
    let mut all = match type_name {
        "rosgraph_msgs/Log" => vec!["rcl_interfaces/msg/Log".to_owned()],
        "tf/tfMessage" => vec!["tf2_msgs/msg/TFMessage".to_owned()],
        _ => Vec::new(),
    };
    all.push(format!("{package}/msg/{name}"));
    if let Some(stem) = package.strip_suffix("_msgs") {
        all.push(format!("{stem}_interfaces/msg/{name}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::type_of;
    use pteros::msg::dynamic::DynamicMessage;

    const SEPARATOR: &str =
        "================================================================================\n";

    fn converter(type_name: &str, definition: &str) -> Result<Converter, String> {
        TypePairs::converter(pteros::interfaces::library(), type_name, Some(definition))
    }

    fn converted(type_name: &str, definition: &str, message: &[u8]) -> (Converter, String) {
        let converter = converter(type_name, definition).unwrap();
        let mut out = Vec::new();
        converter.append(message, &mut out).unwrap();
        let (name, nobody) = (&converter.type_name, InterfaceLibrary::new());
        let ty = type_of(name, &converter.definition, &nobody).unwrap();
        let json = DynamicMessage::from_payload(&ty, &out).unwrap().to_json();
        (converter, json)
    }

    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text.as_bytes());
    }

    fn header(frame: &str) -> Vec<u8> {
        let mut out = 7u32.to_le_bytes().to_vec();
        out.extend(12u32.to_le_bytes());
        out.extend(34u32.to_le_bytes());
        text(&mut out, frame);
        out
    }

    const HEADER: &str = "MSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";

    #[test]
    fn a_standard_type_becomes_its_namesake_without_seq_and_in_lower_case() {
        let definition = format!(
            "Header header\nuint32 height\nuint32 width\nstring distortion_model\nfloat64[] D\nfloat64[9] K\nfloat64[9] R\nfloat64[12] P\nuint32 binning_x\nuint32 binning_y\nRegionOfInterest roi\n{SEPARATOR}{HEADER}{SEPARATOR}MSG: sensor_msgs/RegionOfInterest\nuint32 x_offset\nuint32 y_offset\nuint32 height\nuint32 width\nbool do_rectify\n"
        );
        let mut message = header("cam");
        message.extend(3u32.to_le_bytes());
        message.extend(4u32.to_le_bytes());
        text(&mut message, "plumb");
        message.extend(1u32.to_le_bytes());
        for n in 0..31 {
            message.extend(f64::from(n).to_le_bytes());
        }
        message.extend([0; 8]);
        message.extend([0; 16]);
        message.push(1);
        let (converter, json) = converted("sensor_msgs/CameraInfo", &definition, &message);
        assert_eq!(converter.type_name, "sensor_msgs/msg/CameraInfo");
        assert_eq!(converter.note, None);
        assert!(
            json.contains(r#""stamp":{"sec":12,"nanosec":34},"frame_id":"cam""#),
            "{json}"
        );
        assert!(json.contains(r#""d":[0.0]"#), "{json}");
        assert!(json.contains(r#""k":[1.0,2.0,3.0"#), "{json}");
        assert!(json.contains(r#""do_rectify":true"#), "{json}");
    }

    #[test]
    fn an_own_type_is_translated_with_the_standard_types_in_it() {
        let definition = format!(
            "std_msgs/Header[] Heads\nmy_Point p\nduration age\nchar MARK=1\nbyte[2] flags\n{SEPARATOR}{HEADER}{SEPARATOR}MSG: my_pkg/my_Point\nint64 camelCase\nint16 y\n"
        );
        let mut message = 1u32.to_le_bytes().to_vec();
        message.extend(header("a"));
        message.extend((-5i64).to_le_bytes());
        message.extend(6i16.to_le_bytes());
        message.extend((-1i32).to_le_bytes());
        message.extend(9u32.to_le_bytes());
        message.extend([255, 2]);
        let (converter, json) = converted("my_pkg/Thing", &definition, &message);
        assert_eq!(converter.type_name, "my_pkg/msg/Thing");
        assert_eq!(
            json,
            r#"{"heads":[{"stamp":{"sec":12,"nanosec":34},"frame_id":"a"}],"p":{"camelcase":-5,"y":6},"age":{"sec":-1,"nanosec":9},"flags":[-1,2]}"#
        );
        assert!(
            converter.definition.contains("std_msgs/Header[] heads"),
            "{}",
            converter.definition
        );
    }

    #[test]
    fn log_messages_get_the_stamp_of_their_header_and_ros_2s_levels() {
        let definition = format!(
            "byte DEBUG=1\nHeader header\nbyte level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n{SEPARATOR}{HEADER}"
        );
        let mut message = header("");
        message.push(8);
        for value in ["/n", "hello", "f.c", "main"] {
            text(&mut message, value);
        }
        message.extend(77u32.to_le_bytes());
        message.extend(1u32.to_le_bytes());
        text(&mut message, "/t");
        let (converter, json) = converted("rosgraph_msgs/Log", &definition, &message);
        assert_eq!(converter.type_name, "rcl_interfaces/msg/Log");
        assert_eq!(
            json,
            r#"{"stamp":{"sec":12,"nanosec":34},"level":40,"name":"/n","msg":"hello","file":"f.c","function":"main","line":77}"#
        );
    }

    #[test]
    fn a_namesake_with_other_fields_gets_another_name() {
        let definition = "string mine\nint32 number\n";
        let mut message = Vec::new();
        text(&mut message, "x");
        message.extend(5i32.to_le_bytes());
        let (converter, json) = converted("std_msgs/String", definition, &message);
        assert_eq!(converter.type_name, "std_msgs_ros1/msg/String");
        let note = converter.note.unwrap();
        assert!(note.contains("has data instead"), "{note}");
        assert_eq!(json, r#"{"mine":"x","number":5}"#);
    }

    /// The sender chooses the count, and no input bytes follow.
    #[test]
    fn elements_without_bytes_take_no_time() {
        let inner = format!("{SEPARATOR}MSG: my/Inner\nstring[0] none\n");
        let mut message = vec![255; 4];
        text(&mut message, "x");
        let definition = format!("my/Inner[] extra\nstring data\n{inner}");
        let (_, json) = converted("std_msgs/String", &definition, &message);
        assert_eq!(json, r#"{"data":"x"}"#);
        let definition = format!("Nothing[] all\n{SEPARATOR}MSG: my/Nothing\n");
        let converter = self::converter("my/Bomb", &definition).unwrap();
        let error = converter.append(&[255; 4], &mut Vec::new()).unwrap_err();
        assert_eq!(error, "it has far more elements than bytes");
    }

    #[test]
    fn a_message_that_does_not_fit_is_an_error_and_takes_no_memory() {
        let text = converter("std_msgs/String", "string data\n").unwrap();
        let mut out = Vec::new();
        let huge = text.append(&[255; 8], &mut out).unwrap_err();
        assert_eq!(huge, "it ends before its definition does");
        let long = text.append(&[0; 5], &mut out).unwrap_err();
        assert_eq!(long, "1 bytes more than its definition says");
        // A sequence of messages whose fields exist only in ROS 2.
        let definition = format!("Pose[] poses\n{SEPARATOR}MSG: geometry_msgs/Pose\n");
        let poses = converter("geometry_msgs/PoseArray", &definition).unwrap();
        let error = poses.append(&[255; 4], &mut out).unwrap_err();
        assert_eq!(error, "it would be too large in ROS 2");
        let own = converter("my/Loop", "Loop[] next\n").unwrap_err();
        assert!(own.contains("nested more than"), "{own}");
        let error = converter("my/Lost", "Other x\n").unwrap_err();
        assert_eq!(error, "the bag has no definition of my/Other");
    }
}
