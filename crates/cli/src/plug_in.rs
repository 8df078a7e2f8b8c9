//! The file of the middleware plug-in, `librmw_pteros_cpp.so`: where the command finds
//! it, and what it was built for. There is one for each distribution of ROS 2.
//!
//! The plug-in is not loaded. Its build note (`rmw_pteros/src/build_note.rs`) is read
//! from the file.

use crate::ros2_installation::{Ros2Installation, distribution, path_list};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use pteros::msg::regular_file;
use std::path::{Path, PathBuf};

/// The value of `RMW_IMPLEMENTATION`.
pub const NAME: &str = "rmw_pteros_cpp";
/// The file that rmw_implementation loads for it.
pub const FILE: &str = "librmw_pteros_cpp.so";
/// Distributions with a plug-in. Each is a package of cargo (`rmw_pteros/build.rs`).
pub const DISTRIBUTIONS: [&str; 4] = ["humble", "jazzy", "kilted", "lyrical"];
/// Those of them that were tried with no program of the distribution.
pub const BY_THE_HEADERS: &[&str] = &["lyrical"];
/// The one whose package and file are named after none.
pub const DEFAULT_DISTRIBUTION: &str = "jazzy";
/// The version that belongs to this command.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The beginning of the build note.
const NOTE: &str = "pteros-rmw-build ";
/// Bytes after it that hold the note.
const NOTE_MAX: usize = 200;
/// Largest file that is read. A debug build has about 150 MB.
const BYTES_MAX: u64 = 1 << 30;
/// Class, byte order, type and machine of an ELF file, and the magic before.
const ELF_HEADER: usize = 20;
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// ET_DYN: a shared object.
const ELF_SHARED: u8 = 3;

/// A file of the plug-in.
#[derive(Debug)]
pub struct PlugIn {
    pub path: PathBuf,
    /// The version of Pteros.
    pub version: String,
    /// Major and minor version of the `rmw` that it implements.
    pub rmw_abi: String,
}

impl PlugIn {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a plug-in for this kind of machine.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = regular_file::read(path, BYTES_MAX)
            .with_context(|| format!("reading the plug-in {shown}"))?;
        ensure!(
            bytes.len() > ELF_HEADER && bytes.starts_with(ELF_MAGIC),
            "{shown} is no shared library; name the file {FILE}"
        );
        ensure!(
            bytes.get(16) == Some(&ELF_SHARED) && is_of_this_machine(&bytes),
            "{shown} is a library for another kind of machine; build it here: cargo build \
             --release -p pteros-rmw"
        );
        let note = note(&bytes).ok_or_else(|| {
            anyhow!(
                "{shown} is not the middleware plug-in of Pteros, or one of before 0.1.0; name \
                 the file {FILE} that belongs to this command"
            )
        })?;
        let field = |name: &str| {
            let mut words = note.split(' ');
            let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.map(str::to_owned)
        };
        let unreadable = || anyhow!("{shown}: its build note is damaged: {note:?}; build it again");
        Ok(Self {
            path: path.to_owned(),
            version: field("version").ok_or_else(unreadable)?,
            rmw_abi: field("rmw").ok_or_else(unreadable)?,
        })
    }

    /// The plug-in for a distribution beside this command: in the same folder, as in a
    /// build folder, or in `../lib/pteros`, as in a package.
    ///
    /// # Errors
    /// It is in neither place, or there is none for the distribution.
    pub fn beside_command(distribution: &str) -> Result<PathBuf> {
        ensure!(
            DISTRIBUTIONS.contains(&distribution),
            "Pteros has no plug-in for ROS 2 {distribution}; it has them for {}",
            DISTRIBUTIONS.join(", ")
        );
        let (file, package) = match distribution {
            DEFAULT_DISTRIBUTION => (FILE.to_owned(), "pteros-rmw".to_owned()),
            name => (format!("lib{NAME}_{name}.so"), format!("pteros-rmw-{name}")),
        };
        let command = std::env::current_exe().context("finding the path of this command")?;
        let folder = command.parent().unwrap_or(Path::new("."));
        let places = [folder.join(&file), folder.join("../lib/pteros").join(&file)];
        if let Some(found) = places.iter().find(|place| place.is_file()) {
            return Ok(found.clone());
        }
        bail!(
            "no {file} is beside this command ({}, {}); build it with `cargo build --release -p \
             {package}`, or name the file with --library",
            places[0].display(),
            places[1].display()
        )
    }

    /// The files that the loader finds by `LD_LIBRARY_PATH`, the effective one first.
    pub fn on_library_path() -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for folder in path_list("LD_LIBRARY_PATH") {
            let path = folder.join(FILE);
            if path.is_file() && !found.contains(&path) {
                found.push(path);
            }
        }
        found
    }

    /// The distribution that it was built for.
    pub fn distribution(&self) -> &str {
        distribution(&self.rmw_abi).unwrap_or("unknown")
    }

    /// Checks that an installation has its ABI.
    ///
    /// # Errors
    /// The ABI is another one.
    pub fn check_abi(&self, ros2: &Ros2Installation) -> Result<()> {
        if self.rmw_abi == ros2.rmw_abi() {
            return Ok(());
        }
        let fix = match ros2.distribution() {
            Some(name) if DISTRIBUTIONS.contains(&name) => {
                format!("install the one for it: pteros rmw install --distro {name}")
            }
            _ => format!("use a ROS 2 {}", self.distribution()),
        };
        bail!(
            "{} was built for ROS 2 {} (rmw {}), but this is {}; {fix}",
            self.path.display(),
            self.distribution(),
            self.rmw_abi,
            ros2.title(),
        )
    }
}

/// The text of the build note.
fn note(bytes: &[u8]) -> Option<String> {
    let at = bytes.windows(NOTE.len()).position(|w| w == NOTE.as_bytes());
    let rest = bytes.get(at? + NOTE.len()..)?;
    let end = rest.iter().take(NOTE_MAX).position(|byte| *byte == b';')?;
    let text = std::str::from_utf8(rest.get(..end)?).ok()?;
    Some(text.to_owned())
}

/// Whether an ELF file has class, byte order and machine of this command's own file.
fn is_of_this_machine(bytes: &[u8]) -> bool {
    let parts = |bytes: &[u8]| Some((bytes.get(4..6)?.to_vec(), bytes.get(18..20)?.to_vec()));
    let own = std::env::current_exe().and_then(std::fs::read);
    own.is_ok_and(|own| parts(&own) == parts(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_note_ends_at_its_semicolon() {
        let bytes = b"\0junk pteros-rmw-build version=0.1.0 rmw=7.3;more";
        assert_eq!(note(bytes).as_deref(), Some("version=0.1.0 rmw=7.3"));
        assert_eq!(note(b"pteros-rmw-build version=0.1.0"), None);
        assert_eq!(note(b"pteros-rmw-build \xff;"), None);
        assert_eq!(note(b""), None);
    }
}
