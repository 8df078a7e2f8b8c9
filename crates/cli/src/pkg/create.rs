//! `pteros pkg create`: a package as of `pteros new`, with a `package.xml`, so that colcon
//! and rosdep find it (build types `ament_cargo` and `ament_python`).

use crate::cli_context::CliContext;
use crate::new::{DESCRIPTION, LICENSE, Language, NewPackage, PackageXml};
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `pkg create`.
#[derive(Debug, Args)]
#[command(
    after_help = "The package has one node, as of pteros new. Build one in Rust with cargo, or with colcon and colcon-ros-cargo; install one in Python with pip, or with colcon."
)]
pub struct Create {
    /// Version of the package.xml format
    #[arg(long, alias = "package_format", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    package_format: u8,
    /// Description in package.xml, and in Cargo.toml or setup.py
    #[arg(long, value_name = "TEXT", default_value = DESCRIPTION)]
    description: String,
    /// License in package.xml, and in Cargo.toml or setup.py; the file LICENSE is yours to
    /// add
    #[arg(long, value_name = "LICENSE", default_value = LICENSE)]
    license: String,
    /// Folder in which the package folder is created [default: current folder]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    destination_directory: PathBuf,
    /// Build type: ament_cargo for Rust, ament_python for Python
    #[arg(long, value_name = "TYPE", default_value = "ament_cargo")]
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

impl Create {
    /// Writes the files.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let languages = [Language::Rust, Language::Python];
        let mut languages = languages.into_iter();
        let Some(language) = languages.find(|one| one.build_type() == self.build_type) else {
            bail!(
                "--build-type {}: Pteros creates packages of the build types ament_cargo (Rust) and ament_python; write one of them, or create C++ packages with ros2 pkg create",
                self.build_type
            );
        };
        if let Some(name) = self.dependencies.iter().find(|name| !is_dependency(name)) {
            bail!(
                "--dependencies '{name}': this is not a package name; write lower-case letters, digits, underscores and dashes, as std_msgs"
            );
        }
        if language == Language::Python && self.pteros.is_some() {
            bail!("--pteros is for packages in Rust; leave it out");
        }
        let name = self.package_name;
        let package = NewPackage {
            node: self.node_name.unwrap_or_else(|| name.clone()),
            library: self.library_name.unwrap_or_else(|| name.clone()),
            language,
            package_xml: Some(PackageXml {
                format: self.package_format,
                description: self.description,
                license: self.license,
                maintainer: self.maintainer_name,
                email: self.maintainer_email,
                dependencies: self.dependencies,
            }),
            pteros: self.pteros,
            destination: self.destination_directory,
            ..NewPackage::named(&name)
        };
        package.create(cli)
    }
}

fn is_dependency(name: &str) -> bool {
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-.".contains(letter)
    };
    name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(is_plain)
}
