//! `pteros new`: creates a package with one node, in Rust or in Python, that builds, runs
//! and tests with one command each.

mod package_xml;

pub use package_xml::{DESCRIPTION, LICENSE, PackageXml};

use crate::cli_context::CliContext;
use crate::launch::packages;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::names::validate_node;
use pteros_container::ComponentIndex;
use pteros_launch::packages::PackageOrigin;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of `new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Then, in the folder:\n  cargo run                                  the node\n  cargo test                                 its test\n  cargo build && pteros launch launch/NAME.launch.xml\nOr, of a package in Python, in an environment with the wheel:\n  pip install . && pteros run NAME NAME      the node\n  python -m unittest discover -s test        its test\n  pteros launch NAME NAME.launch.xml"
)]
pub struct New {
    /// Name of the package, of its node and of its folder
    name: String,
    /// Make a package in Python, for rclpy and the wheel of Pteros, in place of Rust
    #[arg(long)]
    python: bool,
    /// Checkout of Pteros to build with
    /// [default: the one that this command was built from, else its repository]
    #[arg(long, value_name = "DIR", conflicts_with = "python")]
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

impl New {
    /// Writes the files.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let package = NewPackage {
            pteros: self.pteros,
            destination: self.destination_directory,
            // One in Python is not found without.
            package_xml: self.python.then(PackageXml::default),
            language: if self.python {
                Language::Python
            } else {
                Language::Rust
            },
            ..NewPackage::named(&self.name)
        };
        package.create(cli)
    }
}

/// The language of a new package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Built by Cargo.
    Rust,
    /// Installed by pip, for rclpy.
    Python,
}

impl Language {
    /// The build type in `package.xml`.
    pub fn build_type(self) -> &'static str {
        match self {
            Self::Rust => "ament_cargo",
            Self::Python => "ament_python",
        }
    }

    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => &RUST_FILES,
            Self::Python => &PYTHON_FILES,
        }
    }

    /// The ROS packages that the template uses.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &[],
            Self::Python => &["rclpy", "rcl_interfaces", "std_msgs"],
        }
    }

    fn reserved(self) -> &'static str {
        match self {
            Self::Rust => RESERVED,
            Self::Python => PYTHON_RESERVED,
        }
    }

    /// The next steps with a new package in `folder`, for the user.
    fn next_steps(self, folder: &str, name: &str, node: &str) -> String {
        match self {
            Self::Rust => format!(
                "cd {folder} && cargo run; cargo test; cargo build && pteros launch launch/{name}.launch.xml"
            ),
            Self::Python => format!(
                "in a Python environment with the wheel of Pteros, pip install {folder} && pteros run {name} {node}; pteros launch {name} {name}.launch.xml"
            ),
        }
    }
}

/// File names and texts of a package in Rust. `@NAME@` and similar placeholders are
/// replaced.
const RUST_FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    (
        ".cargo/config.toml",
        include_str!("template/cargo_config.toml.txt"),
    ),
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

/// The same of a package in Python.
const PYTHON_FILES: [(&str, &str); 8] = [
    ("setup.py", include_str!("template/python/setup.py.txt")),
    (
        "@LIBRARY@/@NODE@.py",
        include_str!("template/python/node.py.txt"),
    ),
    ("@LIBRARY@/__init__.py", ""),
    ("resource/@NAME@", ""),
    (
        "test/test_@NODE@.py",
        include_str!("template/python/test_node.py.txt"),
    ),
    (
        "launch/@NAME@.launch.xml",
        include_str!("template/launch.xml.txt"),
    ),
    ("README.md", include_str!("template/python/README.md.txt")),
    (".gitignore", include_str!("template/python/gitignore.txt")),
];

/// A package to create: of `pteros new`, or of `pteros pkg create`.
pub struct NewPackage {
    /// Name of the package and of its folder.
    pub name: String,
    /// Name of its program and of the node.
    pub node: String,
    /// Name of its library.
    pub library: String,
    /// Its language.
    pub language: Language,
    /// Its `package.xml`, whose description and license the other manifest has too.
    pub package_xml: Option<PackageXml>,
    /// Checkout of Pteros to build with.
    pub pteros: Option<PathBuf>,
    /// The folder for the package's folder.
    pub destination: PathBuf,
}

impl NewPackage {
    /// A package whose node and library have its name, in the current folder.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            node: name.into(),
            library: name.into(),
            language: Language::Rust,
            package_xml: None,
            pteros: None,
            destination: ".".into(),
        }
    }

    /// Writes the files and prints what to do next.
    pub fn create(self, cli: &CliContext) -> Result<()> {
        let name = &self.name;
        let reserved = self.language.reserved();
        check_name("package", name, reserved)?;
        check_name("node", &self.node, reserved)?;
        check_name("library", &self.library, reserved)?;
        if let Some(facts) = &self.package_xml {
            facts.check()?;
        }
        let folder = self.destination.join(name);
        if folder.exists() {
            bail!(
                "{} exists already; choose another name, or remove it",
                folder.display()
            );
        }
        check_is_free(cli, name)?;
        let dependency = match self.language {
            Language::Rust => Some(self.dependency()?),
            Language::Python => None,
        };
        let facts = self.package_xml.as_ref();
        let description = facts.map_or(DESCRIPTION, |facts| &facts.description);
        let license = facts.map_or(LICENSE, |facts| &facts.license);
        let filled = |text: &str| {
            text.replace("@FIELDS@\n", &self.cargo_lines())
                .replace("@NAME@", name)
                .replace("@NODE@", &self.node)
                .replace("@LIBRARY@", &self.library)
                .replace("@TYPE@", &type_name(&self.node))
                .replace("@PTEROS@", dependency.as_deref().unwrap_or_default())
                // Strings of JSON are strings of Python.
                .replace("@DESCRIPTION@", &json!(description).to_string())
                .replace("@LICENSE@", &json!(license).to_string())
        };
        let files = self.language.files().iter();
        let mut files: Vec<(String, String)> = files
            .map(|(file, text)| (filled(file), filled(text)))
            .collect();
        if let Some(facts) = facts {
            let text = facts.text(name, self.language.build_type(), self.language.packages());
            files.push(("package.xml".into(), text));
        }
        for (file, text) in &files {
            let file = folder.join(file);
            let parent = file.parent().unwrap_or(&folder);
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the folder {}", parent.display()))?;
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let console = cli.console;
        let shown = folder.display().to_string();
        if console.json {
            let files: Vec<&String> = files.iter().map(|(file, _)| file).collect();
            let row =
                json!({ "package": name, "folder": shown, "files": files, "pteros": dependency });
            return Ok(console.json(&row)?);
        }
        let next = self.language.next_steps(&shown, name, &self.node);
        Ok(console.line(format!("created {shown}; now: {next}"))?)
    }

    /// The lines of `Cargo.toml` behind name, version and edition.
    fn cargo_lines(&self) -> String {
        let facts = self.package_xml.as_ref();
        let mut lines = facts.map_or_else(String::new, |facts| {
            format!(
                "description = {}\nlicense = {}\n",
                toml_string(&facts.description),
                toml_string(&facts.license)
            )
        });
        if self.library != self.name {
            lines += &format!("\n[lib]\nname = {:?}\n", self.library);
        }
        if self.node != self.name {
            lines += &format!(
                "\n[[bin]]\nname = {:?}\npath = \"src/main.rs\"\n",
                self.node
            );
        }
        lines + "\n"
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
                Some(path) => Ok(format!("{{ path = {} }}", toml_path(&path)?)),
                None => bail!(
                    "--pteros {}: this is not a checkout of Pteros, which has crates/pteros/Cargo.toml; name the folder that git cloned",
                    checkout.display()
                ),
            };
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Ok(match own.and_then(by_path) {
            Some(path) => format!("{{ path = {} }}", toml_path(&path)?),
            None => format!("{{ git = {:?} }}", env!("CARGO_PKG_REPOSITORY")),
        })
    }
}

/// A path as a string of TOML.
fn toml_path(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(toml_string(text)),
        None => bail!(
            "{}: Cargo cannot read a path that is not UTF-8; use a link with another name",
            path.display()
        ),
    }
}

/// A text as a basic string of TOML 1.0, whose escapes are not Rust's.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04X}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Checks a name for Cargo and ROS: lower-case letters, digits and underscores.
fn check_name(what: &str, name: &str, reserved: &str) -> Result<()> {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let is_good = name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(is_plain)
        && !name.contains("__")
        && !name.ends_with('_')
        && validate_node(name).is_ok();
    if !is_good {
        bail!(
            "'{name}' is not a valid {what} name; write lower-case letters, digits and single underscores, a letter first, as my_robot"
        );
    }
    if name.len() > NAME_LENGTH_MAX {
        bail!(
            "'{name}' has {} letters; choose a {what} name of at most {NAME_LENGTH_MAX}, because file names are made of it",
            name.len()
        );
    }
    if reserved.split(' ').any(|word| word == name) {
        bail!(
            "'{name}' is reserved by the language or its tools; choose another {what} name, as {name}_node"
        );
    }
    Ok(())
}

/// Refuses the name of a package that is there: one of the two would never be found.
fn check_is_free(cli: &CliContext, name: &str) -> Result<()> {
    let own = format!("my_{name}");
    let library = cli.library()?;
    if library.packages().contains(&name) {
        bail!(
            "'{name}' is the name of an interface package, whose types programs use; choose another package name, as {own}"
        );
    }
    let packages = packages(&ComponentIndex::from_environment());
    if let Ok(found) = packages.find(name)
        && found.origin == PackageOrigin::Installed
    {
        bail!(
            "package '{name}' is installed in {}, and pteros run and launch would find that one; choose another package name, as {own}",
            found.prefix.display()
        );
    }
    Ok(())
}

/// Longest name in letters. Object files have it twice, and a file name has 255.
const NAME_LENGTH_MAX: usize = 100;
/// Keywords of Python, and modules that a program or its build imports.
const PYTHON_RESERVED: &str = "and as assert async await break class continue def del elif else except finally for \
    from global if import in is lambda nonlocal not or pass raise return try while with \
    yield build glob launch launch_ros os pteros rclpy setup setuptools test time \
    unittest";
/// Names that Cargo refuses for packages or programs: keywords of Rust, crates that come
/// with it, and folders of a build. The last is the crate that the package uses.
const RESERVED: &str = "abstract as async await become box break const continue crate do dyn else enum extern \
    false final fn for gen if impl in let loop macro match mod move mut override priv pub \
    ref return self static struct super trait true try type typeof unsafe unsized use \
    virtual where while yield alloc core std test build deps examples incremental pteros";

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
    use super::{NewPackage, PackageXml, toml_path};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn a_path_of_any_letters_is_a_string_of_toml() {
        let quoted = |path: &str| toml_path(Path::new(path)).unwrap();
        assert_eq!(quoted("/a ü/u\u{308}"), "\"/a ü/u\u{308}\"");
        assert_eq!(quoted("/a\"b\\c\td"), r#""/a\"b\\c\u0009d""#);
        assert!(toml_path(Path::new(OsStr::from_bytes(b"/\xff"))).is_err());
    }

    /// Found in review: Rust's escapes of joined letters are not TOML's.
    #[test]
    fn a_description_of_any_letters_is_a_string_of_toml() {
        for (description, quoted) in [
            ("My robot \u{2764}\u{fe0f}", "\"My robot \u{2764}\u{fe0f}\""),
            ("cafe\u{301}", "\"cafe\u{301}\""),
            ("it's an \"arm\" \\", r#""it's an \"arm\" \\""#),
        ] {
            let package = NewPackage {
                package_xml: Some(PackageXml {
                    description: description.into(),
                    license: description.into(),
                    ..PackageXml::default()
                }),
                ..NewPackage::named("arm")
            };
            let lines = format!("description = {quoted}\nlicense = {quoted}\n\n");
            assert_eq!(package.cargo_lines(), lines);
        }
    }
}
