//! `pteros pkg create`: a Rust package as of `pteros new`, with a `package.xml`, so
//! that colcon and rosdep find it (build type `ament_cargo`).

use crate::cli_context::CliContext;
use crate::new::NewPackage;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::Command;

/// Arguments of `pkg create`.
#[derive(Debug, Args)]
#[command(
    after_help = "The package has one node, as of pteros new. Build it with cargo, or with colcon and colcon-ros-cargo."
)]
pub struct Create {
    /// Version of the package.xml format
    #[arg(long, alias = "package_format", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    package_format: u8,
    /// Description in package.xml and Cargo.toml
    #[arg(long, value_name = "TEXT", default_value = "A package for Pteros")]
    description: String,
    /// License in package.xml and Cargo.toml, as Apache-2.0; the file LICENSE is
    /// yours to add
    #[arg(long, value_name = "LICENSE", default_value = "Apache-2.0")]
    license: String,
    /// Folder in which the package folder is created [default: current folder]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    destination_directory: PathBuf,
    /// Build type; only Rust packages are created
    #[arg(long, value_name = "TYPE", default_value = BUILD_TYPE)]
    build_type: String,
    /// Packages that it depends on, for package.xml
    #[arg(long, value_name = "PACKAGE", num_args = 1..)]
    dependencies: Vec<String>,
    /// E-mail address of the maintainer [default: that of git]
    #[arg(long, value_name = "ADDRESS")]
    maintainer_email: Option<String>,
    /// Name of the maintainer [default: USER]
    #[arg(long, value_name = "NAME")]
    maintainer_name: Option<String>,
    /// Name of the program and of its node [default: the package's name]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Name of the library [default: the package's name]
    #[arg(long, value_name = "NAME")]
    library_name: Option<String>,
    /// Checkout of Pteros to build with
    /// [default: the one that this command was built from, else its repository]
    #[arg(long, value_name = "DIR")]
    pteros: Option<PathBuf>,
    /// Name of the package and of its folder
    package_name: String,
}

/// The build type of colcon-ros-cargo.
const BUILD_TYPE: &str = "ament_cargo";

impl Create {
    /// Writes the files.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if self.build_type != BUILD_TYPE {
            bail!(
                "--build-type {}: Pteros creates Rust packages, of build type {BUILD_TYPE}; leave the option out, or create C++ and Python packages with ros2 pkg create",
                self.build_type
            );
        }
        if let Some(name) = self.dependencies.iter().find(|name| !is_dependency(name)) {
            bail!(
                "--dependencies '{name}': this is not a package name; write lower-case letters, digits, underscores and dashes, as std_msgs"
            );
        }
        let fields = format!(
            "description = {:?}\nlicense = {:?}\n",
            self.description, self.license
        );
        let manifest = self.package_xml();
        let name = self.package_name;
        let package = NewPackage {
            node: self.node_name.unwrap_or_else(|| name.clone()),
            library: self.library_name.unwrap_or_else(|| name.clone()),
            fields,
            more_files: vec![("package.xml", manifest)],
            pteros: self.pteros,
            destination: self.destination_directory,
            ..NewPackage::named(&name)
        };
        package.create(cli)
    }

    fn package_xml(&self) -> String {
        let maintainer = self.maintainer_name.clone();
        let maintainer = maintainer.or_else(|| std::env::var("USER").ok());
        let maintainer = maintainer.unwrap_or_else(|| "user".into());
        let email = self.maintainer_email.clone().or_else(git_email);
        let email = email.unwrap_or_else(|| format!("{maintainer}@todo.todo"));
        let depends = self.dependencies.iter();
        let depends = depends.map(|name| format!("  <depend>{}</depend>\n", escaped(name)));
        include_str!("../new/template/package.xml.txt")
            .replace("@FORMAT@", &self.package_format.to_string())
            .replace("@DEPENDS@\n", &depends.collect::<String>())
            .replace("@EMAIL@", &escaped(&email))
            .replace("@MAINTAINER@", &escaped(&maintainer))
            .replace("@LICENSE@", &escaped(&self.license))
            .replace("@NAME@", &self.package_name)
            .replace("@DESCRIPTION@", &escaped(&self.description))
    }
}

fn is_dependency(name: &str) -> bool {
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-.".contains(letter)
    };
    name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(is_plain)
}

/// The address of git's configuration, if git is there and has one.
fn git_email() -> Option<String> {
    let output = Command::new("git").args(["config", "user.email"]).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|email| !email.is_empty())
}

/// The text within XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
