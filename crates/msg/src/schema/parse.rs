//! Parser of interface files: text to [`InterfaceFile`], line by line.

use super::literal::{read_default, read_value};
use super::{
    BaseType, ConstantSpec, FieldSpec, InterfaceFile, InterfaceKind, SchemaError, Shape,
    StructSpec, TypeSpec, annotation, idl, is_constant_name, is_field_name, is_idl,
    is_interface_name, is_package_name,
};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Parses one interface file, in either format: ROS 2's own, or IDL.
///
/// `package` and `name` identify the definition, `origin` identifies the text in
/// errors, usually its path. Allocates the result.
///
/// # Errors
/// The first error, with its line and what to write instead.
pub fn parse(
    package: &str,
    name: &str,
    kind: InterfaceKind,
    text: &str,
    origin: &str,
) -> Result<InterfaceFile, SchemaError> {
    let error = |line: u32, message: String| SchemaError {
        file: origin.to_string(),
        line,
        message,
    };
    check_file_names(package, name, kind).map_err(|message| error(1, message))?;
    if is_idl(text) {
        return idl::parse(package, name, kind, text, origin);
    }
    let mut parts = Vec::with_capacity(kind.part_count());
    let mut part = PartReader {
        is_message: kind == InterfaceKind::Message,
        ..PartReader::default()
    };
    let mut line_number = 0_u32;
    for line in text.trim_start_matches('\u{feff}').lines() {
        line_number = line_number.saturating_add(1);
        if line.trim() == "---" {
            if parts.len().saturating_add(1) == kind.part_count() {
                return Err(error(line_number, extra_separator(kind)));
            }
            parts.push(core::mem::take(&mut part).finish());
            continue;
        }
        part.read_line(line, line_number, package)
            .map_err(|message| error(line_number, message))?;
    }
    parts.push(part.finish());
    if parts.len() != kind.part_count() {
        return Err(error(line_number.max(1), missing_separator(kind)));
    }
    Ok(InterfaceFile {
        package: package.to_string(),
        name: name.to_string(),
        kind,
        parts,
    })
}

fn check_file_names(package: &str, name: &str, kind: InterfaceKind) -> Result<(), String> {
    if !is_package_name(package) {
        return Err(format!(
            "\"{package}\" is not a package name; use lower-case letters, digits and single underscores"
        ));
    }
    if !is_interface_name(name) {
        return Err(format!(
            "\"{name}\" is not a {kind} name; use CamelCase letters and digits, as in MyState.{kind}"
        ));
    }
    Ok(())
}

fn extra_separator(kind: InterfaceKind) -> String {
    let parts = match kind {
        InterfaceKind::Message => {
            "a .msg file has one part and no \"---\"; a file with two is a .srv"
        }
        InterfaceKind::Service => {
            "a .srv file has one \"---\", between request and response; a file with two is an .action"
        }
        InterfaceKind::Action => "an .action file has two \"---\", around the result",
    };
    format!("one \"---\" too many: {parts}")
}

fn missing_separator(kind: InterfaceKind) -> String {
    match kind {
        InterfaceKind::Action => {
            "a \"---\" is missing: an .action file has goal, result and feedback, with a line \"---\" after each of the first two, even where a part is empty".to_string()
        }
        _ => "the \"---\" is missing: a .srv file has request and response with a line \"---\" between them, even where a part is empty".to_string(),
    }
}

/// Collects one structure from its lines.
#[derive(Default)]
struct PartReader {
    part: StructSpec,
    /// Line of each name.
    lines: BTreeMap<String, u32>,
    /// Comment lines not yet given to an element.
    waiting: Vec<String>,
    last: LastElement,
    /// Of a message, which alone can be annotated.
    is_message: bool,
}

#[derive(Default)]
enum LastElement {
    #[default]
    None,
    Field,
    Constant,
}

impl PartReader {
    fn read_line(&mut self, line: &str, number: u32, package: &str) -> Result<(), String> {
        let (code, comment) = split_comment(line);
        let code = code.trim();
        if let Some(comment) = comment
            && !self.is_message
        {
            annotation::refuse_outside_messages(comment)?;
        }
        if code.is_empty() {
            match comment {
                Some(comment) if annotation::apply_to_struct(&mut self.part, comment)? => {}
                Some(comment) => self.waiting.push(comment.to_string()),
                None if matches!(self.last, LastElement::None) => {
                    // A block set off by an empty line speaks of the whole structure.
                    self.part.comments.append(&mut self.waiting);
                }
                None => {}
            }
            return Ok(());
        }
        self.read_element(code, number, package, comment)
    }

    fn read_element(
        &mut self,
        code: &str,
        line: u32,
        package: &str,
        comment: Option<&str>,
    ) -> Result<(), String> {
        let mut comments = core::mem::take(&mut self.waiting);
        let (type_text, rest) = code
            .split_once(|c: char| c.is_whitespace())
            .ok_or_else(|| format!("\"{code}\" has no name; write \"{code} some_name\""))?;
        let ty = read_type(type_text, package)?;
        let rest = rest.trim();
        let name_end = rest
            .find(|c: char| c.is_whitespace() || c == '=')
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(name_end);
        let after = after.trim_start();
        if let Some(value) = after.strip_prefix('=') {
            comment.map_or(Ok(()), annotation::refuse_on_constant)?;
            comments.extend(comment.map(str::to_string));
            let constant = read_constant(name, ty, value.trim(), line, comments)?;
            self.check_new_name(name, line)?;
            self.part.constants.push(constant);
            self.last = LastElement::Constant;
            return Ok(());
        }
        if !is_field_name(name) {
            return Err(bad_field_name(name));
        }
        self.check_new_name(name, line)?;
        let default = match after {
            "" => None,
            text => Some(read_default(&ty, text).map_err(|why| format!("field {name}: {why}"))?),
        };
        let mut field = FieldSpec {
            name: name.to_string(),
            ty,
            default,
            is_key: false,
            comments,
            line,
        };
        if let Some(comment) = comment {
            annotation::apply_to_field(&mut field, comment)?;
        }
        self.part.fields.push(field);
        self.last = LastElement::Field;
        Ok(())
    }

    fn check_new_name(&mut self, name: &str, line: u32) -> Result<(), String> {
        match self.lines.insert(name.to_string(), line) {
            Some(line) => Err(format!(
                "{name} is already defined in line {line}; give one of them another name"
            )),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> StructSpec {
        self.part.comments.append(&mut self.waiting);
        self.part
    }
}

fn read_constant(
    name: &str,
    ty: TypeSpec,
    value: &str,
    line: u32,
    comments: Vec<String>,
) -> Result<ConstantSpec, String> {
    if !is_constant_name(name) {
        return Err(if is_field_name(name) {
            format!(
                "\"{name}\" looks like a field, but \"=\" makes a constant; write {} for a constant, or leave out \"=\" to give the field a default",
                name.to_ascii_uppercase()
            )
        } else {
            format!(
                "\"{name}\" is not a constant name; use capitals, digits and single underscores"
            )
        });
    }
    if ty.shape != Shape::Single || matches!(ty.base, BaseType::Nested { .. }) {
        return Err(format!(
            "constant {name} cannot have the type {ty}; constants are single numbers, bools or strings"
        ));
    }
    let value = read_value(&ty.base, value).map_err(|why| format!("constant {name}: {why}"))?;
    Ok(ConstantSpec {
        name: name.to_string(),
        ty: ty.base,
        value,
        comments,
        line,
    })
}

fn bad_field_name(name: &str) -> String {
    let snake = name.to_ascii_lowercase();
    if is_field_name(&snake) {
        format!(
            "\"{name}\" is not a field name; write {snake} (or {name}=value if a constant is meant)"
        )
    } else {
        format!(
            "\"{name}\" is not a field name; use lower-case letters, digits and single underscores, a letter first"
        )
    }
}

fn read_type(text: &str, package: &str) -> Result<TypeSpec, String> {
    let Some(inner) = text.strip_suffix(']') else {
        return Ok(TypeSpec {
            base: read_base(text, package)?,
            shape: Shape::Single,
        });
    };
    let (element, count) = inner
        .rsplit_once('[')
        .ok_or_else(|| format!("\"{text}\" closes a bracket that it does not open"))?;
    if element.ends_with(']') {
        return Err(format!(
            "\"{text}\" is an array of arrays; put the inner one into a message of its own"
        ));
    }
    let shape = if count.is_empty() {
        Shape::Unbounded
    } else if let Some(bound) = count.strip_prefix("<=") {
        Shape::Bounded(read_count(bound, text)?)
    } else {
        Shape::Array(read_count(count, text)?)
    };
    Ok(TypeSpec {
        base: read_base(element, package)?,
        shape,
    })
}

fn read_count(digits: &str, whole: &str) -> Result<u32, String> {
    match digits.parse::<u32>() {
        Ok(count) if count > 0 && !digits.starts_with('+') => Ok(count),
        _ => Err(format!(
            "\"{digits}\" in {whole} is not a length; write a whole number from 1 to {}",
            u32::MAX
        )),
    }
}

fn read_base(text: &str, package: &str) -> Result<BaseType, String> {
    if let Some((word, bound)) = text.split_once("<=") {
        let bound = Some(read_count(bound, text)?);
        return match word {
            "string" => Ok(BaseType::String(bound)),
            "wstring" => Ok(BaseType::WString(bound)),
            _ => Err(format!(
                "only string and wstring take \"<=\" behind the type, {word} does not; for a bounded sequence write {word}[<=N]"
            )),
        };
    }
    Ok(match text {
        "bool" => BaseType::Bool,
        "byte" => BaseType::Byte,
        "char" => BaseType::Char,
        "int8" => BaseType::Int8,
        "uint8" => BaseType::Uint8,
        "int16" => BaseType::Int16,
        "uint16" => BaseType::Uint16,
        "int32" => BaseType::Int32,
        "uint32" => BaseType::Uint32,
        "int64" => BaseType::Int64,
        "uint64" => BaseType::Uint64,
        "float32" => BaseType::Float32,
        "float64" => BaseType::Float64,
        "string" => BaseType::String(None),
        "wstring" => BaseType::WString(None),
        _ => return read_nested(text, package),
    })
}

/// `Name`, `package/Name` or `package/msg/Name`.
fn read_nested(text: &str, own_package: &str) -> Result<BaseType, String> {
    let mut words = text.split('/');
    let (package, name) = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(name), None, None, None) => (own_package, name),
        (Some(package), Some(name), None, None) => (package, name),
        (Some(package), Some("msg"), Some(name), None) => (package, name),
        _ => {
            return Err(format!(
                "\"{text}\" is not a type; other messages are written package/Name"
            ));
        }
    };
    if is_package_name(package) && is_interface_name(name) {
        return Ok(BaseType::Nested {
            package: package.to_string(),
            name: name.to_string(),
        });
    }
    Err(match suggestion(text) {
        Some(other) => format!("there is no type \"{text}\" in ROS 2; use {other}"),
        None => format!(
            "there is no type \"{text}\"; use a basic type (bool, byte, char, int8 to uint64, float32, float64, string, wstring) or a message as package/Name"
        ),
    })
}

/// Suggestions for common type names of ROS 1 or C.
fn suggestion(text: &str) -> Option<&'static str> {
    Some(match text {
        "time" => "builtin_interfaces/Time",
        "duration" => "builtin_interfaces/Duration",
        "int" | "long" | "i32" => "int32",
        "uint" | "u32" => "uint32",
        "float" | "f32" => "float32",
        "double" | "f64" => "float64",
        "boolean" => "bool",
        "str" => "string",
        "u8" => "uint8",
        "i8" => "int8",
        "i16" => "int16",
        "u16" => "uint16",
        "i64" => "int64",
        "u64" => "uint64",
        _ => return None,
    })
}

/// Splits a line at its `#`, unless that is inside a quoted value.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    let cut = find_comment(line, true).or_else(|unclosed| {
        // An apostrophe in an unquoted text is no quote: `string A=rock 'n roll # x`.
        if unclosed {
            find_comment(line, false)
        } else {
            Err(false)
        }
    });
    match cut {
        Ok(at) => {
            let (before, comment) = line.split_at_checked(at).unwrap_or((line, ""));
            let comment = comment.trim_start_matches('#');
            let comment = comment.strip_prefix(' ').unwrap_or(comment);
            (before, Some(comment.trim_end()))
        }
        Err(_) => (line, None),
    }
}

/// Byte index of the comment's `#`; `Err(true)` when a quote stays open.
fn find_comment(line: &str, honour_quotes: bool) -> Result<usize, bool> {
    let mut open_quote = None;
    let mut previous = ' ';
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match open_quote {
            Some(quote) => {
                if c == quote && !escaped {
                    open_quote = None;
                }
                escaped = c == '\\' && !escaped;
            }
            None if c == '#' => return Ok(at),
            None => {
                let opens = previous.is_whitespace() || matches!(previous, '=' | '[' | ',');
                if honour_quotes && opens && matches!(c, '"' | '\'') {
                    open_quote = Some(c);
                }
            }
        }
        previous = c;
    }
    Err(open_quote.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::Literal;
    use super::*;
    use crate::describe::Extensibility;
    use alloc::vec;

    fn message(text: &str) -> Result<StructSpec, String> {
        parse("my_pkg", "Thing", InterfaceKind::Message, text, "Thing.msg")
            .map(|mut file| file.parts.remove(0))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_of_field_is_read() {
        let part = message(
            "int32 a\nfloat64[9] b\nstring<=5[<=3] c\nstd_msgs/msg/Header[] d\nOther e\nwstring<=2 f\n",
        )
        .unwrap();
        let types: Vec<String> = part.fields.iter().map(|f| f.ty.to_string()).collect();
        assert_eq!(
            types,
            [
                "int32",
                "float64[9]",
                "string<=5[<=3]",
                "std_msgs/Header[]",
                "my_pkg/Other",
                "wstring<=2"
            ]
        );
    }

    #[test]
    fn defaults_are_values_of_the_field_type() {
        let part = message(concat!(
            "bool a true\nint64 b -9223372036854775808\nfloat32 c 1e-3\n",
            "string d \"say \\\"hi\\\" # not a comment\" # a comment\n",
            "string e 'it\\'s'\nstring f plain words\n",
            "string[] g [\"a, b\", 'c', d]\nuint8[<=4] h []\nuint64 i 18446744073709551615\n",
        ))
        .unwrap();
        let text = |s: &str| Literal::Text(s.into());
        let defaults: Vec<Literal> = part
            .fields
            .iter()
            .map(|f| f.default.clone().unwrap())
            .collect();
        assert_eq!(
            defaults,
            [
                Literal::Bool(true),
                Literal::Int(i64::MIN.into()),
                Literal::Float(1e-3),
                text("say \"hi\" # not a comment"),
                text("it's"),
                text("plain words"),
                Literal::List(vec![text("a, b"), text("c"), text("d")]),
                Literal::List(vec![]),
                Literal::Int(u64::MAX.into()),
            ]
        );
        assert_eq!(part.fields[3].comments, ["a comment"]);
    }

    #[test]
    fn constants_of_all_types_are_read() {
        let part = message(
            "uint8 A=1\nint8 B = -0x10\nfloat64 C=3.5 # half\nstring D= it's fine # really\nbool E=true\nbyte F=255\n",
        )
        .unwrap();
        let values: Vec<String> = part.constants.iter().map(|c| c.value.to_string()).collect();
        assert_eq!(values, ["1", "-16", "3.5", "it's fine", "True", "255"]);
        assert_eq!(part.constants[2].comments, ["half"]);
    }

    #[test]
    fn comments_stay_with_what_they_describe() {
        let part = message("# About the file\n\n# about a\nint32 a # more\n\n# the end\n").unwrap();
        assert_eq!(part.comments, ["About the file", "the end"]);
        assert_eq!(part.fields[0].comments, ["about a", "more"]);
    }

    #[test]
    fn annotations_tell_key_extensibility_and_dds_name() {
        let part = message(concat!(
            "# A shape.\n# @appendable since version 2\n# @dds_name demo::ShapeType\n",
            "# @brief Doxygen's word, so a comment\n\n",
            "string<=128 color # @key\nint32 x #@key of old\nint32 y # at @key\n",
        ))
        .unwrap();
        assert_eq!(part.extensibility, Extensibility::Appendable);
        assert_eq!(part.dds_name.as_deref(), Some("demo::ShapeType"));
        assert_eq!(
            part.comments,
            [
                "since version 2",
                "A shape.",
                "@brief Doxygen's word, so a comment"
            ]
        );
        let keys: Vec<bool> = part.fields.iter().map(|field| field.is_key).collect();
        assert_eq!(keys, [true, true, false]);
        let comments: Vec<_> = part.fields.iter().map(|field| &field.comments).collect();
        assert_eq!(
            comments,
            [
                &vec![],
                &vec!["of old".to_string()],
                &vec!["at @key".to_string()]
            ]
        );
        let plain = message("# @final\nint32 x").unwrap();
        assert_eq!(plain.extensibility, Extensibility::Final);
    }

    #[test]
    fn services_and_actions_have_their_parts() {
        let parts = |kind, text| {
            parse("p", "N", kind, text, "N")
                .map(|f| f.parts.iter().map(|p| p.fields.len()).collect::<Vec<_>>())
        };
        assert_eq!(parts(InterfaceKind::Service, "---").unwrap(), [0, 0]);
        assert_eq!(
            parts(InterfaceKind::Action, "int8 a\n---\n---\nint8 a\nint8 b").unwrap(),
            [1, 0, 2]
        );
        assert!(parts(InterfaceKind::Service, "int8 a").is_err());
        assert!(parts(InterfaceKind::Action, "---").is_err());
        assert!(parts(InterfaceKind::Message, "---").is_err());
        let keyed = parse("p", "N", InterfaceKind::Service, "int8 a # @key\n---", "N");
        let error = keyed.unwrap_err().to_string();
        assert!(error.contains("in a .msg file only"), "{error}");
    }

    #[test]
    fn schema_errors_name_file_line_and_remedy() {
        let cases = [
            (
                "int32 a\nint b",
                "Thing.msg:2: there is no type \"int\" in ROS 2; use int32",
            ),
            (
                "time t",
                "Thing.msg:1: there is no type \"time\" in ROS 2; use builtin_interfaces/Time",
            ),
            ("int32", "has no name"),
            ("int32 A", "write a (or A=value"),
            ("int32 a=1", "write A for a constant"),
            ("int32 a\nint32 a", "already defined in line 1"),
            ("uint8 a 256", "field a: 256 does not fit uint8"),
            ("uint8 A=-1", "constant A: -1 does not fit uint8"),
            ("bool a maybe", "not a bool"),
            ("int32[2] a [1]", "needs exactly 2"),
            ("int32[<=2] a [1,2,3]", "at most 2"),
            ("int32[] a [1,,3]", "extra comma"),
            ("Other a 3", "only numbers"),
            ("int32[] A=3", "cannot have the type"),
            ("int32[0] a", "not a length"),
            ("int32<=4 a", "int32[<=N]"),
            ("int32[2][2] a", "array of arrays"),
            ("a/b/c/D a", "package/Name"),
            ("string a \"open", "lacks its closing"),
            ("float32 a 1e300", "too large"),
            ("# @mutable\nint32 a", "Thing.msg:1: @mutable types"),
            (
                "int32 a\n# @appendable\n",
                "Thing.msg:2: @appendable stands before",
            ),
            ("int32 a # @appendable", "@appendable stands before"),
            ("# @key\nint32 a", "@key stands on the line of its field"),
            ("int32 A=1 # @key", "@key stands on no constant"),
            ("# @dds_name\nint32 a", "@dds_name \"\" is not a type name"),
            (
                "# @dds_name a::3\nint32 a",
                "@dds_name \"a::3\" is not a type name",
            ),
        ];
        for (text, expected) in cases {
            let error = message(text).unwrap_err();
            assert!(error.contains(expected), "{text:?} gave {error:?}");
        }
    }

    #[test]
    fn arbitrary_text_is_a_file_or_an_error() {
        // Pieces of the grammar in every order a small generator finds.
        const PIECES: [&str; 24] = [
            "int8", "string", "wstring", "a", "A", "/", "[", "]", "<=", "=", "3", "-", "0x", "\"",
            "'", "\\", "#", " ", "\n", "---", ",", "ä", "\u{feff}", ".",
        ];
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                text.push_str(PIECES[random.usize(..PIECES.len())]);
            }
            for kind in InterfaceKind::ALL {
                let _ = parse("p", "N", kind, &text, "N");
            }
        }
    }
}
