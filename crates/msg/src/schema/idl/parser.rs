//! Parser of IDL tokens: modules, constants, type definitions and structures.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::TokenKind;
use super::lexer::Token;
use crate::describe::Extensibility;
use crate::schema::literal::{Literal, read_default, read_value, text_value};
use crate::schema::{BaseType, ConstantSpec, FieldSpec, Shape, StructSpec, TypeSpec};

/// Modules within modules.
const DEPTH_MAX: usize = 16;
/// ROS 2 gives an empty structure this member.
const PLACEHOLDER: &str = "structure_needs_at_least_one_member";
/// Module that holds the constants of a structure: the structure's name and this.
const CONSTANTS: &str = "_Constants";
const NESTED_SEQUENCE: &str =
    "a sequence of sequences or arrays; put the inner one into a structure";

/// An error's line and message.
type Failed = (u32, String);

/// See the module documentation.
pub(super) struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    package: &'t str,
    /// Names of the open modules.
    path: Vec<String>,
    /// By full name (`my_msgs::msg::Arm`).
    structures: BTreeMap<String, StructSpec>,
    /// By the full name of the structure.
    constants: BTreeMap<String, Vec<ConstantSpec>>,
    /// By full name.
    type_definitions: BTreeMap<String, TypeSpec>,
    /// Integer constants by name, which bounds may name.
    numbers: BTreeMap<String, i128>,
}

/// Annotations before a definition or a member.
#[derive(Default)]
struct Annotations {
    comments: Vec<String>,
    default: Option<Vec<Token>>,
    is_key: bool,
    extensibility: Extensibility,
}

impl<'t> Parser<'t> {
    pub fn new(tokens: &'t [Token], package: &'t str) -> Self {
        Self {
            tokens,
            at: 0,
            package,
            path: Vec::new(),
            structures: BTreeMap::new(),
            constants: BTreeMap::new(),
            type_definitions: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Reads the whole file.
    pub fn read(&mut self) -> Result<(), Failed> {
        while self.at < self.tokens.len() {
            self.definition()?;
        }
        Ok(())
    }

    /// The structure with its constants, by its full name.
    pub fn take_structure(&mut self, full: &str) -> Option<StructSpec> {
        let mut structure = self.structures.remove(full)?;
        structure.constants = self.constants.remove(full).unwrap_or_default();
        if structure.fields.len() == 1 && structure.fields.iter().any(|f| f.name == PLACEHOLDER) {
            structure.fields.clear();
        }
        Some(structure)
    }

    fn definition(&mut self) -> Result<(), Failed> {
        let annotations = self.annotations()?;
        let line = self.line();
        let word = self.word("a definition")?;
        match word.as_str() {
            "module" => self.module(),
            "struct" => self.structure(annotations),
            "typedef" => self.type_definition(),
            "const" => self.constant(annotations),
            other => Err((
                line,
                format!(
                    "{other} is not supported here; ROS 2 interfaces have modules, structures, type definitions and constants"
                ),
            )),
        }
    }

    fn module(&mut self) -> Result<(), Failed> {
        let line = self.line();
        let name = self.word("the module's name")?;
        if self.path.len() >= DEPTH_MAX {
            return Err((line, format!("module {name} is nested too deep; use two")));
        }
        self.path.push(name);
        self.expect("{")?;
        while !self.take_mark("}") {
            self.definition()?;
        }
        self.path.pop();
        self.expect(";")
    }

    fn structure(&mut self, annotations: Annotations) -> Result<(), Failed> {
        let line = self.line();
        let name = self.word("the structure's name")?;
        let full = self.full(&name);
        if self.take_mark(";") {
            // A forward declaration.
            return Ok(());
        }
        if self.take_mark(":") {
            return Err((
                line,
                format!("{name} inherits, which ROS 2 does not support; repeat the members"),
            ));
        }
        self.expect("{")?;
        let mut structure = StructSpec {
            comments: annotations.comments,
            extensibility: annotations.extensibility,
            ..StructSpec::default()
        };
        let mut names = BTreeSet::new();
        while !self.take_mark("}") {
            self.members(&mut structure, &mut names)?;
        }
        self.expect(";")?;
        match self.structures.insert(full, structure) {
            Some(_) => Err((
                line,
                format!("{name} is defined twice; remove one definition"),
            )),
            None => Ok(()),
        }
    }

    /// `@key long a, b[3];`
    fn members(
        &mut self,
        structure: &mut StructSpec,
        names: &mut BTreeSet<String>,
    ) -> Result<(), Failed> {
        let annotations = self.annotations()?;
        let ty = self.type_spec()?;
        loop {
            let line = self.line();
            let name = self.word("the member's name")?;
            if !names.insert(name.clone()) {
                return Err((
                    line,
                    format!("{name} is defined twice; give one another name"),
                ));
            }
            let ty = self.declared(ty.clone(), &name)?;
            let default = match &annotations.default {
                None => None,
                Some(tokens) => {
                    let value = default_value(&ty, tokens);
                    Some(value.map_err(|why| (line, format!("member {name}: {why}")))?)
                }
            };
            structure.fields.push(FieldSpec {
                name,
                ty,
                default,
                is_key: annotations.is_key,
                comments: annotations.comments.clone(),
                line,
            });
            if !self.take_mark(",") {
                return self.expect(";");
            }
        }
    }

    fn type_definition(&mut self) -> Result<(), Failed> {
        let ty = self.type_spec()?;
        let name = self.word("the type's name")?;
        let ty = self.declared(ty, &name)?;
        let full = self.full(&name);
        self.type_definitions.insert(full, ty);
        self.expect(";")
    }

    /// The type of a declarator: `name` or `name[3]`.
    fn declared(&mut self, ty: TypeSpec, name: &str) -> Result<TypeSpec, Failed> {
        let line = self.line();
        if !self.take_mark("[") {
            return Ok(ty);
        }
        let count = self.bound()?;
        self.expect("]")?;
        if ty.shape != Shape::Single || self.take_mark("[") {
            return Err((
                line,
                format!("{name} is an array of arrays; put the inner one into a structure"),
            ));
        }
        Ok(TypeSpec {
            shape: Shape::Array(count),
            ..ty
        })
    }

    fn constant(&mut self, annotations: Annotations) -> Result<(), Failed> {
        let line = self.line();
        let ty = self.type_spec()?;
        let name = self.word("the constant's name")?;
        self.expect("=")?;
        let mut tokens = Vec::new();
        while !self.take_mark(";") {
            tokens.push(self.token()?.clone());
        }
        let value = value_of(&ty.base, &tokens);
        let value = value.map_err(|why| (line, format!("constant {name}: {why}")))?;
        if let Literal::Int(number) = value {
            self.numbers.insert(name.clone(), number);
        }
        let constant = ConstantSpec {
            name,
            ty: ty.base,
            value,
            comments: annotations.comments,
            line,
        };
        let module = self.path.join("::");
        if let Some(structure) = module.strip_suffix(CONSTANTS) {
            let of_it = self.constants.entry(structure.to_owned()).or_default();
            of_it.push(constant);
        }
        Ok(())
    }

    fn type_spec(&mut self) -> Result<TypeSpec, Failed> {
        let line = self.line();
        let mut word = self.word("a type")?;
        if word == "sequence" {
            self.expect("<")?;
            if self.peek_word() == Some("sequence") {
                return Err((line, NESTED_SEQUENCE.to_string()));
            }
            let element = self.type_spec()?;
            let shape = if self.take_mark(",") {
                Shape::Bounded(self.bound()?)
            } else {
                Shape::Unbounded
            };
            self.expect(">")?;
            return if element.shape == Shape::Single {
                Ok(TypeSpec {
                    base: element.base,
                    shape,
                })
            } else {
                Err((line, NESTED_SEQUENCE.to_string()))
            };
        }
        while matches!(word.as_str(), "unsigned" | "long" | "unsigned long") {
            match self.peek_word() {
                Some(next @ ("short" | "long" | "double")) => {
                    word = format!("{word} {next}");
                    self.at = self.at.saturating_add(1);
                }
                _ => break,
            }
        }
        let base = match word.as_str() {
            "boolean" => BaseType::Bool,
            "octet" => BaseType::Byte,
            "int8" => BaseType::Int8,
            "uint8" => BaseType::Uint8,
            "short" | "int16" => BaseType::Int16,
            "unsigned short" | "uint16" => BaseType::Uint16,
            "long" | "int32" => BaseType::Int32,
            "unsigned long" | "uint32" => BaseType::Uint32,
            "long long" | "int64" => BaseType::Int64,
            "unsigned long long" | "uint64" => BaseType::Uint64,
            "float" => BaseType::Float32,
            "double" => BaseType::Float64,
            "string" => BaseType::String(self.text_bound()?),
            "wstring" => BaseType::WString(self.text_bound()?),
            "char" | "wchar" | "long double" | "fixed" | "any" | "map" | "union" | "enum"
            | "unsigned" => {
                return Err((
                    line,
                    format!(
                        "the type {word} is not supported; use uint8, uint16, double or a structure"
                    ),
                ));
            }
            _ => return self.named_type(word, line),
        };
        Ok(TypeSpec {
            base,
            shape: Shape::Single,
        })
    }

    /// `my_msgs::msg::Arm`, `Arm`, or the name of a type definition.
    fn named_type(&mut self, first: String, line: u32) -> Result<TypeSpec, Failed> {
        let mut words = [first].to_vec();
        while self.take_mark("::") {
            words.push(self.word("a name")?);
        }
        let name = words.join("::");
        // The innermost module first (IDL 4.2 §7.5).
        for depth in (0..=self.path.len()).rev() {
            let mut full = self.path.get(..depth).unwrap_or_default().join("::");
            if !full.is_empty() {
                full.push_str("::");
            }
            full.push_str(&name);
            if let Some(ty) = self.type_definitions.get(&full) {
                return Ok(ty.clone());
            }
        }
        let (package, name) = match words.as_slice() {
            [name] => (self.package, name),
            [package, kind, name] if kind == "msg" => (package.as_str(), name),
            _ => {
                return Err((
                    line,
                    format!("unknown type {name}; write package::msg::Name, or define it before"),
                ));
            }
        };
        Ok(TypeSpec {
            base: BaseType::Nested {
                package: package.to_owned(),
                name: name.clone(),
            },
            shape: Shape::Single,
        })
    }

    fn text_bound(&mut self) -> Result<Option<u32>, Failed> {
        if !self.take_mark("<") {
            return Ok(None);
        }
        let bound = self.bound()?;
        self.expect(">")?;
        Ok(Some(bound))
    }

    /// A length: a number, or the name of a constant.
    fn bound(&mut self) -> Result<u32, Failed> {
        let line = self.line();
        let mut name = String::new();
        let value = loop {
            match &self.token()?.kind {
                TokenKind::Number(digits) => break integer(digits),
                TokenKind::Word(word) => name.clone_from(word),
                TokenKind::Mark(_) | TokenKind::Text(_) => break None,
            }
            if !self.take_mark("::") {
                break self.numbers.get(&name).copied();
            }
        };
        let value = value.and_then(|value| u32::try_from(value).ok());
        value.filter(|value| *value > 0).ok_or_else(|| {
            let message = "a length is wrong; write a whole number above 0, or a constant's name";
            (line, message.to_string())
        })
    }

    fn annotations(&mut self) -> Result<Annotations, Failed> {
        let mut annotations = Annotations::default();
        while self.take_mark("@") {
            let line = self.line();
            let name = self.word("the annotation's name")?;
            let arguments = self.annotation_arguments()?;
            match name.as_str() {
                "verbatim" => annotations.comments.extend(comment_lines(&arguments)),
                "unit" => annotations.comments.extend(unit_line(&arguments)),
                "default" => annotations.default = Some(value_argument(&arguments)),
                "key" => annotations.is_key = true,
                "appendable" => annotations.extensibility = Extensibility::Appendable,
                "final" => annotations.extensibility = Extensibility::Final,
                "mutable" => {
                    return Err((
                        line,
                        "@mutable types are not supported; write @appendable or @final".to_string(),
                    ));
                }
                // Other annotations change neither type nor value.
                _ => {}
            }
        }
        Ok(annotations)
    }

    /// The tokens in parentheses behind an annotation.
    fn annotation_arguments(&mut self) -> Result<Vec<Token>, Failed> {
        let mut arguments = Vec::new();
        if !self.take_mark("(") {
            return Ok(arguments);
        }
        let mut open = 1_usize;
        loop {
            let token = self.token()?.clone();
            match token.kind {
                TokenKind::Mark("(") => open = open.saturating_add(1),
                TokenKind::Mark(")") => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return Ok(arguments);
            }
            arguments.push(token);
        }
    }

    fn full(&self, name: &str) -> String {
        match self.path.join("::") {
            path if path.is_empty() => name.to_owned(),
            path => format!("{path}::{name}"),
        }
    }

    fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn token(&mut self) -> Result<&'t Token, Failed> {
        let line = self.line();
        let token = self.tokens.get(self.at);
        self.at = self.at.saturating_add(1);
        token.ok_or_else(|| {
            let message = "the file ends in the middle of a definition; is a brace missing?";
            (line, message.to_string())
        })
    }

    fn word(&mut self, wanted: &str) -> Result<String, Failed> {
        let token = self.token()?;
        match &token.kind {
            TokenKind::Word(word) => Ok(word.clone()),
            other => Err((
                token.line,
                format!("{} where {wanted} should be", shown(other)),
            )),
        }
    }

    fn peek_word(&self) -> Option<&'t str> {
        match &self.tokens.get(self.at)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let next = self.tokens.get(self.at).map(|token| &token.kind);
        let is_it = matches!(next, Some(TokenKind::Mark(found)) if *found == mark);
        if is_it {
            self.at = self.at.saturating_add(1);
        }
        is_it
    }

    fn expect(&mut self, mark: &str) -> Result<(), Failed> {
        let token = self.token()?;
        match &token.kind {
            TokenKind::Mark(found) if *found == mark => Ok(()),
            other => Err((
                token.line,
                format!("{} where \"{mark}\" should be", shown(other)),
            )),
        }
    }
}

fn shown(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Word(text) | TokenKind::Number(text) => format!("\"{text}\""),
        TokenKind::Text(text) => format!("the text {text:?}"),
        TokenKind::Mark(mark) => format!("\"{mark}\""),
    }
}

/// `010` is octal and `0x1F` hexadecimal, as in C.
fn integer(digits: &str) -> Option<i128> {
    if let Some(rest) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        return i128::from_str_radix(rest, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(rest) if !rest.is_empty() => i128::from_str_radix(rest, 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// A constant's or default's value from its tokens.
fn value_of(base: &BaseType, tokens: &[Token]) -> Result<Literal, String> {
    let texts: Vec<&str> = tokens.iter().filter_map(text_of).collect();
    if matches!(base, BaseType::String(_) | BaseType::WString(_)) {
        if texts.is_empty() || texts.len() != tokens.len() {
            return Err(format!("the value is not a text, as {base} needs"));
        }
        // Adjacent texts are one.
        return text_value(base, texts.concat());
    }
    let (sign, rest) = match tokens {
        [
            Token {
                kind: TokenKind::Mark("-"),
                ..
            },
            rest @ ..,
        ] => ("-", rest),
        [
            Token {
                kind: TokenKind::Mark("+"),
                ..
            },
            rest @ ..,
        ] => ("", rest),
        _ => ("", tokens),
    };
    let [token] = rest else {
        return Err("the value is an expression; write its result".to_string());
    };
    match &token.kind {
        TokenKind::Word(word) => read_value(base, word),
        TokenKind::Text(text) => read_value(base, text),
        TokenKind::Number(digits) => match (integer(digits), base) {
            (Some(number), BaseType::Float32 | BaseType::Float64) => {
                read_value(base, &format!("{sign}{number}.0"))
            }
            (Some(number), _) => read_value(base, &format!("{sign}{number}")),
            (None, _) => {
                let digits = digits.trim_end_matches(['f', 'F', 'd', 'D', 'l', 'L']);
                read_value(base, &format!("{sign}{digits}"))
            }
        },
        TokenKind::Mark(mark) => Err(format!("\"{mark}\" is not a value")),
    }
}

/// A default's value. Those of arrays are a text: `"(1, 2, 3)"`.
fn default_value(ty: &TypeSpec, tokens: &[Token]) -> Result<Literal, String> {
    if ty.shape == Shape::Single {
        return value_of(&ty.base, tokens);
    }
    let texts: Vec<&str> = tokens.iter().filter_map(text_of).collect();
    let list = texts.concat();
    let inner = list.trim().trim_start_matches(['(', '[']);
    let inner = inner.trim_end_matches([')', ']']).trim();
    read_default(ty, &format!("[{}]", inner.trim_end_matches(',')))
}

fn text_of(token: &Token) -> Option<&str> {
    match &token.kind {
        TokenKind::Text(text) => Some(text),
        _ => None,
    }
}

/// The tokens behind `value =`.
fn value_argument(arguments: &[Token]) -> Vec<Token> {
    let equals = |token: &Token| token.kind == TokenKind::Mark("=");
    let from = arguments
        .iter()
        .position(equals)
        .map_or(0, |at| at.saturating_add(1));
    arguments.get(from..).unwrap_or_default().to_vec()
}

/// The lines of `@verbatim (language="comment", text="a" "\n" "b")`.
fn comment_lines(arguments: &[Token]) -> Vec<String> {
    let is_text = |token: &Token| token.kind == TokenKind::Word("text".to_owned());
    let from = arguments
        .iter()
        .position(is_text)
        .unwrap_or(arguments.len());
    let behind = arguments.get(from..).unwrap_or_default();
    let texts: Vec<&str> = behind.iter().filter_map(text_of).collect();
    let whole = texts.concat();
    whole.lines().map(|line| format!(" {line}")).collect()
}

/// `@unit (value="m")` as a comment.
fn unit_line(arguments: &[Token]) -> Option<String> {
    let unit = arguments.iter().find_map(text_of)?;
    Some(format!(" unit: {unit}"))
}
