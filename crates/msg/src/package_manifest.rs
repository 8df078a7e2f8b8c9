//! Names in package manifests: `package.xml` and `Cargo.toml`. Feature `std`; reads files,
//! never writes.
//!
//! An interface package has the name that its manifest states, as in the generated types.
//! The folder's own name counts only without a manifest.

use crate::regular_file;
use crate::schema::is_package_name;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::path::{Component, Path, PathBuf};

/// Largest manifest in bytes; the largest of ROS 2 has 40 KB.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The name in the folder's `package.xml`, else that of its Cargo package with `-` as `_`.
/// Blocks for the disk. None without a manifest that names a package.
pub fn declared_name(folder: &Path) -> Option<String> {
    let read = |file| regular_file::read_text(&folder.join(file), MANIFEST_BYTES_MAX).ok();
    let of_xml = || name_in_package_xml(&read("package.xml")?);
    let of_cargo = || {
        let text = read("Cargo.toml")?;
        let names = toml_values(&text, "[package]", "name").into_iter();
        let mut names = names.map(|name| name.replace('-', "_"));
        names.find(|name| is_package_name(name))
    };
    of_xml().or_else(of_cargo)
}

/// The declared name of a folder or of the one above it, as of the folder `interfaces` of a
/// package. Blocks for the disk.
pub fn declared_name_around(folder: &Path) -> Option<String> {
    let folder = named(folder);
    declared_name(&folder).or_else(|| declared_name(folder.parent()?))
}

/// The package name of a folder of definitions: the declared one of the folder or of the
/// one above it, else the folder's own name with `-` as `_`. Blocks for the disk.
pub fn package_name_of(folder: &Path) -> String {
    declared_name_around(folder).unwrap_or_else(|| folder_name(folder))
}

/// The folder's own name with `-` as `_`; `interfaces` where it has none, as `/`.
pub(crate) fn folder_name(folder: &Path) -> String {
    let folder = named(folder);
    let own = folder.file_name().and_then(|name| name.to_str());
    own.unwrap_or("interfaces").replace('-', "_")
}

/// The folder by a path that ends in its name, which `.` and `..` do not.
fn named(folder: &Path) -> PathBuf {
    let has_up = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    let path = match std::path::absolute(folder) {
        Ok(path) if has_up(&path) => path.canonicalize(),
        path => path,
    };
    path.unwrap_or_else(|_| folder.to_path_buf())
}

/// The text of the first `<name>` element outside comments.
fn name_in_package_xml(xml: &str) -> Option<String> {
    let mut rest = xml;
    loop {
        let (before, inner) = rest.split_once("<name>")?;
        if let Some((clear, _)) = before.split_once("<!--") {
            // The comment may hold the element that was found.
            let comment = rest.get(clear.len()..)?;
            rest = comment.split_once("-->")?.1;
            continue;
        }
        let text = inner.split_once("</name>")?.0.trim();
        return is_package_name(text).then(|| text.to_string());
    }
}

/// The values of `key` in sections with this heading of a TOML file. Reads as much of TOML
/// as Cargo's tools write: strings on the line of their key.
pub fn toml_values(text: &str, heading: &str, key: &str) -> Vec<String> {
    let mut section = "";
    let mut values = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.split('#').next().unwrap_or("").trim();
        } else if section == heading
            && let Some((found, value)) = line.split_once('=')
            && found.trim() == key
        {
            let mut quoted = value.split(['"', '\'']).skip(1);
            values.extend(quoted.next().map(String::from));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_outside_comments_counts() {
        for (xml, name) in [
            ("<package><name> a_msgs </name>", Some("a_msgs")),
            ("<!-- <name>x</name> --><name>b</name>", Some("b")),
            ("<!-- a --><!--<name>x</name>--> <name>c</name>", Some("c")),
            ("<!-- <name>x</name>", None),
            ("<name>not a name</name>", None),
            ("<name>open", None),
        ] {
            assert_eq!(name_in_package_xml(xml).as_deref(), name, "{xml}");
        }
    }

    #[test]
    fn the_values_of_a_section_are_found() {
        let text = "[workspace]\nname = \"no\"\n[package] # own\nname = 'yes'\n[[bin]]\nname=\"a\"\n[[bin]]\nname=\"b\"";
        assert_eq!(toml_values(text, "[package]", "name"), ["yes"]);
        assert_eq!(toml_values(text, "[[bin]]", "name"), ["a", "b"]);
    }
}
