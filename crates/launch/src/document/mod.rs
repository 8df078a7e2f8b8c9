//! A launch file as a tree, the same for XML and YAML: elements with attributes
//! and children, each with its line and column.
//!
//! In YAML a key whose value is a scalar or a list of scalars is an attribute, one
//! whose value is a list of mappings is as many children of that name, and
//! `children` (or a list in place of the mapping) holds actions, as in
//! `launch_yaml/entity.py`.

mod xml;
mod yaml;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::fault::{Fault, Faults, Place};

/// The largest launch file, in bytes: far more than people write.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// How deep elements may lie in each other.
pub const DEPTH_MAX: usize = 64;

/// A file that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// The element `launch`.
    pub root: Element,
}

/// An action, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Its name: `node`, `param`.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// What it says, in the file's order.
    pub attributes: Vec<Attribute>,
    /// What lies in it.
    pub children: Vec<Element>,
}

/// One `name="value"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Where its value begins, which is where one has to look.
    pub place: Place,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One text.
    Scalar(Scalar),
    /// Several: a list in YAML, an attribute with `-sep` beside it in XML.
    List(Vec<Scalar>),
}

/// A text, substitutions still in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// Whether YAML's quotes made it a text whatever it looks like.
    pub quoted: bool,
}

impl Element {
    /// The attribute of that name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|one| one.name == name)
    }
}

impl Document {
    /// Reads a file by the end of its name, `.xml`, `.yaml` or `.yml`; one of another
    /// name by its first character.
    ///
    /// # Errors
    /// What cannot be read, is larger than [`FILE_BYTES_MAX`], or is neither; with
    /// place. A Python file is refused.
    pub fn read(path: &Path) -> Result<Self, Faults> {
        let name = path.display();
        let unreadable = |reason: std::io::Error| {
            Fault::nowhere(format!(
                "cannot read launch file {name}: {reason}; check its path"
            ))
        };
        if path.extension().is_some_and(|end| end == "py") {
            return Err(Fault::nowhere(format!(
                "{name}: Python launch files cannot be run here; write XML or YAML (docs/launch.md shows how), or start it with ros2 launch"
            ))
            .into());
        }
        let file = fs::File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(
                Fault::nowhere(format!("{name} is a folder; name the launch file in it")).into(),
            );
        }
        let mut bytes = Vec::new();
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(Fault::nowhere(format!(
                "launch file {name} is larger than {} MiB; split it with include",
                FILE_BYTES_MAX >> 20
            ))
            .into());
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Fault::nowhere(format!(
                "launch file {name} is no text: byte {at} is not UTF-8"
            ))
        })?;
        Self::parse(path, &text)
    }

    /// Reads the text of a file, which `path` names in errors.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, Faults> {
        let file: Arc<Path> = path.into();
        let extension = path.extension().and_then(|end| end.to_str());
        let is_xml = match extension {
            Some("xml") => true,
            Some("yaml" | "yml") => false,
            _ => text.trim_start().starts_with('<'),
        };
        let root = match is_xml {
            true => xml::read(&file, text)?,
            false => yaml::read(&file, text)?,
        };
        if root.name != "launch" {
            return Err(Fault::at(
                &root.place,
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

/// The fault of a file whose elements lie too deep.
fn too_deep(place: &Place) -> Fault {
    Fault::at(
        place,
        format!("elements lie more than {DEPTH_MAX} deep; split the file with include"),
    )
}
