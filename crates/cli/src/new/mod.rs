//! `pteros new`: creates a Rust package with one node that builds, runs and tests
//! with one command each.

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::names::validate_node;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of `new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Then, in the folder:\n  cargo run                                  the node\n  cargo test                                 its test\n  cargo build && pteros launch launch/NAME.launch.xml"
)]
pub struct New {
    /// Name of the package, of its node and of its folder
    name: String,
    /// Checkout of Pteros to build with
    /// [default: the one that this command was built from, else its repository]
    #[arg(long, value_name = "DIR")]
    pteros: Option<PathBuf>,
    /// Folder in which the package folder is created [default: current folder]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    destination_directory: PathBuf,
}

/// File names and texts of a package. `@NAME@` and similar placeholders are
/// replaced.
const TEMPLATE_FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("template/lib.rs.txt")),
    ("src/main.rs", include_str!("template/main.rs.txt")),
    ("tests/node.rs", include_str!("template/node.rs.txt")),
    (
        "launch/@NAME@.launch.xml",
        include_str!("template/launch.xml.txt"),
    ),
    ("README.md", include_str!("template/README.md.txt")),
    (".gitignore", "/target\n"),
];

impl New {
    /// Writes the files.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let name = &self.name;
        self.check_name()?;
        let folder = self.destination_directory.join(name);
        if folder.exists() {
            bail!(
                "{} exists already; choose another name, or remove it",
                folder.display()
            );
        }
        let dependency = self.dependency()?;
        for (file, text) in TEMPLATE_FILES {
            let file = folder.join(file.replace("@NAME@", name));
            let text = text
                .replace("@NAME@", name)
                .replace("@TYPE@", &type_name(name))
                .replace("@PTEROS@", &dependency);
            let parent = file.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
            fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        }
        let console = cli.console;
        let shown = folder.display().to_string();
        if console.json {
            let files: Vec<String> = TEMPLATE_FILES
                .iter()
                .map(|(f, _)| f.replace("@NAME@", name))
                .collect();
            let row =
                json!({ "package": name, "folder": shown, "files": files, "pteros": dependency });
            return Ok(console.json(&row)?);
        }
        Ok(console.line(format!(
            "created {shown}; now: cd {shown} && cargo run; cargo test; cargo build && pteros launch launch/{name}.launch.xml"
        ))?)
    }

    /// Checks the name for Cargo and ROS: lower-case letters, digits and
    /// underscores.
    fn check_name(&self) -> Result<()> {
        let name = &self.name;
        let is_plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let is_good = name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.chars().all(is_plain)
            && !name.contains("__")
            && !name.ends_with('_')
            && validate_node(name).is_ok();
        if !is_good {
            bail!(
                "'{name}' is not a valid package name; write lower-case letters, digits and single underscores, a letter first, as my_robot"
            );
        }
        // Cargo refuses keywords of Rust and its own names; these are the likely
        // ones.
        const TAKEN: [&str; 13] = [
            "test", "core", "std", "alloc", "self", "crate", "super", "fn", "mod", "type", "move",
            "loop", "pteros",
        ];
        if TAKEN.contains(&name.as_str()) {
            bail!("'{name}' is reserved by Cargo or Rust; choose another name, as {name}_node");
        }
        Ok(())
    }

    /// The value of `pteros =` in `Cargo.toml`.
    fn dependency(&self) -> Result<String> {
        let by_path = |checkout: &Path| {
            let path = checkout.join("crates/pteros");
            path.join("Cargo.toml").is_file().then_some(path)
        };
        if let Some(checkout) = &self.pteros {
            let checkout = std::path::absolute(checkout).context("--pteros")?;
            return match by_path(&checkout) {
                Some(path) => Ok(format!("{{ path = {} }}", toml_string(&path)?)),
                None => bail!(
                    "--pteros {}: this is not a checkout of Pteros (it has crates/pteros/Cargo.toml)",
                    checkout.display()
                ),
            };
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Ok(match own.and_then(by_path) {
            Some(path) => format!("{{ path = {} }}", toml_string(&path)?),
            None => format!("{{ git = {:?} }}", env!("CARGO_PKG_REPOSITORY")),
        })
    }
}

/// A path as a basic string of TOML 1.0, whose escapes are not Rust's.
fn toml_string(path: &Path) -> Result<String> {
    let Some(text) = path.to_str() else {
        bail!(
            "{}: Cargo cannot read a path that is not UTF-8; use a link with another name",
            path.display()
        );
    };
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04X}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    Ok(quoted + "\"")
}

/// `my_robot` as `MyRobot`.
fn type_name(name: &str) -> String {
    let words = name.split('_').filter_map(|word| {
        let mut letters = word.chars();
        Some(format!(
            "{}{}",
            letters.next()?.to_ascii_uppercase(),
            letters.as_str()
        ))
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::toml_string;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn a_path_of_any_letters_is_a_string_of_toml() {
        let quoted = |path: &str| toml_string(Path::new(path)).unwrap();
        assert_eq!(quoted("/a ü/u\u{308}"), "\"/a ü/u\u{308}\"");
        assert_eq!(quoted("/a\"b\\c\td"), r#""/a\"b\\c\u0009d""#);
        assert!(toml_string(Path::new(OsStr::from_bytes(b"/\xff"))).is_err());
    }
}
