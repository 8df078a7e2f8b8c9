//! Package manifests: `package.xml`, read and printed as ros2 does.
//!
//! ros2 prints what Python's ElementTree keeps: the root element without comments
//! and processing instructions.

use anyhow::{Context as _, Result, bail};
use pteros::msg::regular_file;
use roxmltree::{Document, Node, ParsingOptions};
use std::fmt::Write;
use std::path::Path;

/// The largest manifest that is read.
const BYTES_MAX: u64 = 1 << 20;
/// Largest number of XML nodes in a manifest.
const NODES_MAX: u32 = 20_000;
/// Largest depth of elements.
const DEPTH_MAX: usize = 32;

#[derive(Debug)]
pub struct PackageManifest {
    xml: String,
    elements: Vec<TaggedText>,
}

/// The text of an element, and the names of the elements from the root's child on.
#[derive(Debug)]
struct TaggedText {
    path: String,
    text: Option<String>,
}

impl PackageManifest {
    /// Reads a file.
    ///
    /// # Errors
    /// No such file, a file that is too large, or XML that is malformed or nested
    /// too deep.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = regular_file::read_text(path, BYTES_MAX);
        let text = text.with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| format!("{shown} is not a package manifest"))
    }

    fn parse(text: &str) -> Result<Self> {
        let options = ParsingOptions {
            allow_dtd: false,
            nodes_limit: NODES_MAX,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)?;
        let root = document.root_element();
        let mut manifest = Self {
            xml: String::new(),
            elements: Vec::new(),
        };
        manifest.add(root, "", 0)?;
        Ok(manifest)
    }

    /// The root element as XML, without a line break at its end.
    pub fn xml(&self) -> &str {
        &self.xml
    }

    /// The texts of the elements of that name below the root, or of that path
    /// (`export/build_type`). An element without text has none.
    pub fn values(&self, tag: &str) -> Vec<Option<&str>> {
        let found = self.elements.iter().filter(|one| one.path == tag);
        found.map(|one| one.text.as_deref()).collect()
    }

    fn add(&mut self, element: Node<'_, '_>, path: &str, depth: usize) -> Result<()> {
        let name = element.tag_name().name();
        if depth > DEPTH_MAX {
            bail!("<{name}> is nested deeper than {DEPTH_MAX} elements");
        }
        // Writing to a string cannot fail.
        let _ = write!(self.xml, "<{name}");
        for attribute in element.attributes() {
            let value = escaped(attribute.value()).replace('"', "&quot;");
            let _ = write!(self.xml, " {}=\"{value}\"", attribute.name());
        }
        let at = self.elements.len();
        if depth > 0 {
            self.elements.push(TaggedText {
                path: path.into(),
                text: None,
            });
        }
        let kept: Vec<Node<'_, '_>> = element
            .children()
            .filter(|child| child.is_element() || child.is_text())
            .collect();
        if kept.is_empty() {
            self.xml.push_str(" />");
            return Ok(());
        }
        self.xml.push('>');
        let mut is_first = true;
        for child in kept {
            if child.is_element() {
                is_first = false;
                let own = child.tag_name().name();
                let path = if depth == 0 {
                    own.to_owned()
                } else {
                    format!("{path}/{own}")
                };
                self.add(child, &path, depth + 1)?;
                continue;
            }
            let text = child.text().unwrap_or_default();
            self.xml.push_str(&escaped(text));
            if let (true, true, Some(one)) = (is_first, depth > 0, self.elements.get_mut(at)) {
                one.text.get_or_insert_default().push_str(text);
            }
        }
        let _ = write!(self.xml, "</{name}>");
        Ok(())
    }
}

/// The text as ElementTree writes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<?xml version="1.0"?>
<!-- a comment -->
<package format="3">
  <name>arm</name><!-- another -->
  <author email="a@b.c">A &amp; B</author>
  <depend>one</depend>
  <depend>two</depend>
  <export>
    <build_type>ament_cargo</build_type>
    <empty/>
  </export>
</package>
"#;

    #[test]
    fn a_manifest_is_printed_as_elementtree_does() {
        let manifest = PackageManifest::parse(TEXT).unwrap();
        assert_eq!(
            manifest.xml(),
            r#"<package format="3">
  <name>arm</name>
  <author email="a@b.c">A &amp; B</author>
  <depend>one</depend>
  <depend>two</depend>
  <export>
    <build_type>ament_cargo</build_type>
    <empty />
  </export>
</package>"#
        );
        assert_eq!(manifest.values("depend"), [Some("one"), Some("two")]);
        assert_eq!(manifest.values("author"), [Some("A & B")]);
        let built = manifest.values("export/build_type");
        assert_eq!(built, [Some("ament_cargo")]);
        assert_eq!(manifest.values("export/empty"), [None]);
        assert!(manifest.values("package").is_empty());
    }

    #[test]
    fn malformed_and_deep_manifests_are_refused() {
        assert!(PackageManifest::parse("<package>").is_err());
        let deep = "<a>".repeat(40) + &"</a>".repeat(40);
        let error = PackageManifest::parse(&deep).unwrap_err().to_string();
        assert!(error.contains("nested deeper than 32"), "{error}");
    }
}
