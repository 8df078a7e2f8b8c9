//! The files of an overlay with the plug-in: library, ament index, manifest, CMake
//! configuration, setup files.
//!
//! A prefix that has setup files of its own, as a merged colcon workspace, keeps them;
//! they read the package's files for colcon and ament. Every file is replaced by a
//! rename, so that a running program keeps the library that it has mapped.

use crate::plug_in::{FILE, NAME, PlugIn};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The manifest. `colcon/rmw_pteros_cpp` has the same.
const MANIFEST: &str = include_str!("package.xml");
/// The first words of a setup file of ours.
const MARK: &str = "# Written by pteros rmw install";
const SHELLS: [&str; 3] = ["sh", "bash", "zsh"];
/// Variables that colcon and ament prepend to for the package, in their format (`.dsv`).
const PREPENDED: &str = "prepend-non-duplicate;AMENT_PREFIX_PATH;\n\
                         prepend-non-duplicate;CMAKE_PREFIX_PATH;\n\
                         prepend-non-duplicate;LD_LIBRARY_PATH;lib\n";

/// An overlay on disk.
pub struct Overlay {
    /// Its prefix, an absolute path.
    pub prefix: PathBuf,
    /// Whether the prefix kept setup files of another origin.
    pub keeps_setup_files: bool,
}

impl Overlay {
    /// Writes the files. `underlay` is the folder with the setup files of the ROS 2
    /// that belongs below.
    ///
    /// # Errors
    /// The prefix is an isolated workspace, or a file cannot be written.
    pub fn write(prefix: &Path, plug_in: &PlugIn, underlay: Option<&Path>) -> Result<Self> {
        let layout = fs::read_to_string(prefix.join(".colcon_install_layout"));
        if layout.is_ok_and(|layout| layout.trim() == "isolated") {
            bail!(
                "--prefix {}: this workspace has a folder per package; use --prefix {}",
                prefix.display(),
                prefix.join(NAME).display()
            );
        }
        let overlay = Self {
            prefix: prefix.to_owned(),
            keeps_setup_files: SHELLS.iter().any(|shell| {
                let setup = fs::read_to_string(prefix.join(format!("setup.{shell}")));
                setup.is_ok_and(|text| !text.starts_with(MARK))
            }),
        };
        // The library comes last: before, nothing can choose the plug-in.
        for (path, text) in package_files(&plug_in.version, underlay) {
            overlay.replace(&path, text.as_bytes())?;
        }
        if !overlay.keeps_setup_files {
            for shell in SHELLS {
                let local = local_setup(shell, prefix);
                overlay.replace(&format!("local_setup.{shell}"), local.as_bytes())?;
                let setup = setup(shell, prefix, underlay);
                overlay.replace(&format!("setup.{shell}"), setup.as_bytes())?;
            }
        }
        let library = fs::read(&plug_in.path)
            .with_context(|| format!("reading the plug-in {}", plug_in.path.display()))?;
        overlay.replace(&format!("lib/{FILE}"), &library)?;
        Ok(overlay)
    }

    /// The setup file for a shell.
    pub fn setup(&self, shell: &str) -> PathBuf {
        self.prefix.join(format!("setup.{shell}"))
    }

    pub fn library(&self) -> PathBuf {
        self.prefix.join("lib").join(FILE)
    }

    /// Writes a file beside its place, then renames it.
    fn replace(&self, relative: &str, bytes: &[u8]) -> Result<()> {
        let path = self.prefix.join(relative);
        let folder = path.parent().unwrap_or(&self.prefix);
        let written = (|| {
            fs::create_dir_all(folder)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let beside = folder.join(format!(".{name}.{}", std::process::id()));
            fs::write(&beside, bytes)?;
            let renamed = fs::rename(&beside, &path);
            if renamed.is_err() {
                // The error of the rename is the one that counts.
                let _ = fs::remove_file(&beside);
            }
            renamed
        })();
        written.with_context(|| {
            format!(
                "writing {}; choose another folder with --prefix",
                path.display()
            )
        })
    }
}

/// Files of the package, which colcon, ament and CMake read.
fn package_files(version: &str, underlay: Option<&Path>) -> Vec<(String, String)> {
    let index = |kind: &str, text: &str| {
        let path = format!("share/ament_index/resource_index/{kind}/{NAME}");
        (path, text.to_owned())
    };
    let share = |name: &str, text: String| (format!("share/{NAME}/{name}"), text);
    let (of_c, of_cpp) = (
        "rosidl_typesupport_c;rosidl_typesupport_introspection_c",
        "rosidl_typesupport_cpp;rosidl_typesupport_introspection_cpp",
    );
    let parent = underlay.map(|folder| folder.display().to_string());
    vec![
        index("packages", ""),
        index("package_run_dependencies", "rcutils;rmw"),
        index("parent_prefix_path", &parent.unwrap_or_default()),
        index("rmw_typesupport_c", of_c),
        index("rmw_typesupport_cpp", of_cpp),
        index("rmw_typesupport", &format!("{of_c};{of_cpp}")),
        (
            format!("share/colcon-core/packages/{NAME}"),
            "rcutils:rmw".into(),
        ),
        share("package.xml", MANIFEST.to_owned()),
        share("package.dsv", PREPENDED.to_owned()),
        share("local_setup.dsv", PREPENDED.to_owned()),
        share(
            &format!("cmake/{NAME}Config.cmake"),
            include_str!("config.cmake").to_owned(),
        ),
        share(
            &format!("cmake/{NAME}Config-version.cmake"),
            format!(
                "set(PACKAGE_VERSION \"{version}\")\n\
                 if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)\n  \
                 set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
            ),
        ),
    ]
}

/// Finds its own folder where the shell knows it, so that the overlay may be moved.
fn own_folder(shell: &str, prefix: &Path) -> String {
    let name = match shell {
        "bash" => "${BASH_SOURCE[0]}",
        "zsh" => "${(%):-%x}",
        // A plain shell does not know it: the folder is that of the installation.
        _ => return format!("_pteros_rmw_prefix='{}'\n", prefix.display()),
    };
    format!(
        "_pteros_rmw_prefix=\"$(CDPATH= cd -- \"$(dirname -- \"{name}\")\" > /dev/null && pwd)\"\n"
    )
}

/// Adds the overlay to the environment.
fn local_setup(shell: &str, prefix: &Path) -> String {
    let mut text = format!("{MARK}: adds this overlay to the environment.\n");
    text += &own_folder(shell, prefix);
    text += "_pteros_rmw_prepend() {\n\
             \x20 eval \"_pteros_rmw_old=\\\"\\${$1-}\\\"\"\n\
             \x20 case \":$_pteros_rmw_old:\" in\n\
             \x20   *\":$2:\"*) ;;\n\
             \x20   *) eval \"export $1=\\\"\\$2\\${_pteros_rmw_old:+:\\$_pteros_rmw_old}\\\"\" ;;\n\
             \x20 esac\n\
             }\n\
             _pteros_rmw_prepend AMENT_PREFIX_PATH \"$_pteros_rmw_prefix\"\n\
             _pteros_rmw_prepend CMAKE_PREFIX_PATH \"$_pteros_rmw_prefix\"\n\
             _pteros_rmw_prepend LD_LIBRARY_PATH \"$_pteros_rmw_prefix/lib\"\n\
             unset -f _pteros_rmw_prepend\n\
             unset _pteros_rmw_prefix _pteros_rmw_old\n";
    text
}

/// Sources the underlay unless that was done, then the overlay.
fn setup(shell: &str, prefix: &Path, underlay: Option<&Path>) -> String {
    let mut text = format!("{MARK}: ROS 2, then this overlay.\n");
    if let Some(folder) = underlay.map(Path::display) {
        // Setup files of colcon take this variable for their own folder.
        text += &format!(
            "if [ -z \"${{AMENT_PREFIX_PATH-}}\" ] && [ -f '{folder}/setup.{shell}' ]; then\n\
             \x20 unset COLCON_CURRENT_PREFIX\n\
             \x20 . '{folder}/setup.{shell}'\n\
             fi\n"
        );
    }
    text += &own_folder(shell, prefix);
    text += &format!(". \"$_pteros_rmw_prefix/local_setup.{shell}\"\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_that_of_the_cmake_package() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../colcon");
        let package = folder.join(NAME).join("package.xml");
        assert_eq!(fs::read_to_string(package).unwrap(), MANIFEST);
        let version = format!("<version>{}</version>", env!("CARGO_PKG_VERSION"));
        assert!(MANIFEST.contains(&version), "{MANIFEST}");
        assert!(MANIFEST.contains(&format!("<name>{NAME}</name>")));
    }
}
