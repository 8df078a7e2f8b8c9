//! Launch file document: one tree for XML and YAML. It holds elements with
//! attributes and children, each with line and column.
//!
//! In YAML, a key with a scalar or a list of scalars is an attribute. A key with a
//! list of mappings is that many children of this name. `children` (or a list in
//! place of the mapping) holds actions, as in `launch_yaml/entity.py`.

mod xml;
mod yaml;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pteros::msg::regular_file;

use crate::error::{LaunchFileError, LaunchFileErrors, SourceLocation};

/// Largest launch file in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most attributes of an element. The most that an action of ROS 2 takes is 24.
pub const ATTRIBUTES_MAX: usize = 1000;
/// Largest nesting depth of elements.
pub const DEPTH_MAX: usize = 64;

/// A parsed launch file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The file, as given by the user.
    pub file: Arc<Path>,
    /// The root element `launch`.
    pub root: Element,
}

/// An action or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Its name: `node`, `param`.
    pub name: String,
    /// Location of its start.
    pub location: SourceLocation,
    /// Its attributes, in file order.
    pub attributes: Vec<Attribute>,
    /// Its child elements.
    pub children: Vec<Element>,
}

/// One `name="value"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// As written, `exec`.
    pub name: String,
    /// One text or several, with unevaluated substitutions.
    pub value: Value,
    /// Location of its value.
    pub location: SourceLocation,
}

/// An attribute value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One text.
    Scalar(Scalar),
    /// Several texts: a YAML list, or an XML attribute with `-sep`.
    List(Vec<Scalar>),
}

/// A text with unevaluated substitutions.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// As written; YAML and XML escapes are resolved.
    pub text: String,
    /// Whether YAML quotes make it a string.
    pub quoted: bool,
}

impl Element {
    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|one| one.name == name)
    }

    /// The location of an attribute, or of the element.
    pub fn location_of(&self, name: &str) -> &SourceLocation {
        self.attribute(name)
            .map_or(&self.location, |one| &one.location)
    }
}

impl Document {
    /// Reads a file. The format follows from its extension, `.xml`, `.yaml` or
    /// `.yml`, else from its first character.
    ///
    /// # Errors
    /// Unreadable files, files larger than [`FILE_BYTES_MAX`], and syntax errors
    /// with their location. Python files are refused.
    pub fn read(path: &Path) -> Result<Self, LaunchFileErrors> {
        let name = path.display();
        let unreadable = |reason: std::io::Error| {
            LaunchFileError::without_location(format!(
                "cannot read launch file {name}: {reason}; check its path"
            ))
        };
        if path.extension().is_some_and(|end| end == "py") {
            return Err(LaunchFileError::without_location(format!(
                "{name} is a Python launch file, which only Python can read; start it with pteros launch, or write XML or YAML (docs/reference/file_formats.md shows how)"
            ))
            .into());
        }
        if path.is_dir() {
            return Err(LaunchFileError::without_location(format!(
                "{name} is a folder; name the launch file in it"
            ))
            .into());
        }
        let mut bytes = Vec::new();
        let file = regular_file::open(path).map_err(unreadable)?;
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(LaunchFileError::without_location(format!(
                "launch file {name} is larger than {} MiB; split it with include",
                FILE_BYTES_MAX >> 20
            ))
            .into());
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            LaunchFileError::without_location(format!(
                "launch file {name} is not text: byte {at} is not UTF-8"
            ))
        })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file; `path` names it in errors.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, LaunchFileErrors> {
        let file: Arc<Path> = path.into();
        let extension = path.extension().and_then(|end| end.to_str());
        let is_xml = match extension {
            Some("xml") => true,
            Some("yaml" | "yml") => false,
            _ => text.trim_start().starts_with('<'),
        };
        let root = if is_xml {
            xml::read(&file, text)?
        } else {
            yaml::read(&file, text)?
        };
        if root.name != "launch" {
            return Err(LaunchFileError::at(
                &root.location,
                format!(
                    "the outermost element is {:?}; a launch file has <launch>…</launch>, or launch: in YAML",
                    root.name
                ),
            )
            .into());
        }
        Ok(Self { file, root })
    }
}

/// The error for an element with too many attributes.
fn too_many_attributes(location: &SourceLocation) -> LaunchFileError {
    LaunchFileError::at(
        location,
        format!("an element has more than {ATTRIBUTES_MAX} attributes; write elements in it"),
    )
}

/// The error for elements that are nested too deep.
fn too_deep(location: &SourceLocation) -> LaunchFileError {
    LaunchFileError::at(
        location,
        format!("elements are nested more than {DEPTH_MAX} deep; split the file with include"),
    )
}
