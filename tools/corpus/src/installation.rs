//! Installation prefixes for the packages of repositories: one temporary prefix per
//! repository, whose share folders are links to the packages' sources.
//!
//! Programs and component classes are taken to be built: a stub is made when a launch
//! file names one of a package that is there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use pteros_container::ComponentIndex;
use pteros_launch::Packages;

use crate::repository::{Repository, text_of};

const INDEX: &str = "share/ament_index/resource_index";

/// The prefixes. The folder is removed when this is dropped.
pub struct Installation {
    folder: PathBuf,
    prefixes: Vec<PathBuf>,
}

impl Installation {
    /// Makes the prefixes.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn new(repositories: &[Repository]) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pteros-corpus-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let mut installation = Self {
            prefixes: Vec::new(),
            folder,
        };
        fs::create_dir_all(installation.empty_folder())
            .with_context(|| format!("make {}", installation.folder.display()))?;
        for (index, repository) in repositories.iter().enumerate() {
            let prefix = installation.folder.join(index.to_string());
            fs::create_dir_all(prefix.join(INDEX).join("packages"))?;
            for (source, package) in &repository.packages {
                let share = prefix.join("share").join(&package.name);
                // The first package of a name counts.
                if is_file_name(&package.name) && !package.is_ros1 && !share.exists() {
                    link_share(source, &share)?;
                    let mark = prefix.join(INDEX).join("packages").join(&package.name);
                    fs::write(mark, "")?;
                }
            }
            installation.prefixes.push(prefix);
        }
        Ok(installation)
    }

    /// A folder without programs, for PATH.
    pub fn empty_folder(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// A folder for the log files that a launch would write.
    pub fn log_folder(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Packages and components as files of a repository see them: its own first.
    pub fn seen_by(&self, repository: usize) -> (Packages, ComponentIndex) {
        let own = self.prefixes.get(repository).into_iter();
        let others = self.prefixes.iter().enumerate();
        let others = others.filter(|(index, _)| *index != repository);
        let prefixes = own.chain(others.map(|(_, prefix)| prefix)).cloned();
        let components = ComponentIndex::new([], prefixes);
        (Packages::new(&components, None), components)
    }

    /// Adds a program to a package. False if the package is not there, or has it.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn add_program(&self, packages: &Packages, package: &str, name: &str) -> Result<bool> {
        let Some(prefix) = prefix_of(packages, package).filter(|_| is_file_name(name)) else {
            return Ok(false);
        };
        let folder = prefix.join("lib").join(package);
        let program = folder.join(name);
        if program.exists() {
            return Ok(false);
        }
        fs::create_dir_all(&folder)?;
        fs::write(&program, "")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(true)
    }

    /// Adds a component class to a package, as an entry of rclcpp's components. False if
    /// the package is not there, or has it.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn add_component(&self, packages: &Packages, package: &str, class: &str) -> Result<bool> {
        let Some(prefix) = prefix_of(packages, package).filter(|_| !class.contains([';', '\n']))
        else {
            return Ok(false);
        };
        let folder = prefix.join(INDEX).join("rclcpp_components");
        let file = folder.join(package);
        let line = format!("{class};lib/lib{package}.so");
        let known = fs::read_to_string(&file).unwrap_or_default();
        if known.lines().any(|known| known == line) {
            return Ok(false);
        }
        fs::create_dir_all(&folder)?;
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)?;
        writeln!(file, "{line}")?;
        Ok(true)
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        // A folder that stays is in the way of nothing.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes the share folder of a package: its source folder, and the folders that its
/// `CMakeLists.txt` installs from deeper ones.
fn link_share(source: &Path, share: &Path) -> Result<()> {
    fs::create_dir_all(share)?;
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        symlink(&path, share.join(path.file_name().unwrap_or_default()))?;
    }
    let rules = text_of(&source.join("CMakeLists.txt")).unwrap_or_default();
    for (folder, destination) in installed_folders(&rules) {
        let (from, to) = (Path::new(&folder), Path::new(&destination));
        if !is_within(from) || !is_within(to) || !source.join(from).is_dir() {
            continue;
        }
        // CMake copies the folder itself, or its content if the name ends with a slash.
        let target = match from.file_name() {
            Some(name) if !folder.ends_with('/') => share.join(to).join(name),
            _ => share.join(to),
        };
        merge(&source.join(from), &target)?;
    }
    Ok(())
}

/// The folders that `install(DIRECTORY …)` copies, each with its destination below the
/// package's share folder.
fn installed_folders(rules: &str) -> Vec<(String, String)> {
    let lines = rules
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let rules = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for call in rules.split("install(").skip(1) {
        let call = call.split(')').next().unwrap_or("");
        let words: Vec<&str> = call
            .split_whitespace()
            .map(|word| word.trim_matches('"'))
            .collect();
        let Some((&"DIRECTORY", words)) = words.split_first() else {
            continue;
        };
        let Some(at) = words.iter().position(|word| *word == "DESTINATION") else {
            continue;
        };
        let destination = words.get(at + 1).copied().unwrap_or("");
        let below = ["share/${PROJECT_NAME}", "share/${PROJECT_NAME}/"];
        let below = below
            .iter()
            .rev()
            .find_map(|start| destination.strip_prefix(start));
        if let Some(below) = below {
            let folders = words[..at].iter();
            found.extend(folders.map(|folder| ((*folder).to_owned(), below.to_owned())));
        }
    }
    found
}

/// Links a folder's entries into a target, beside those that it has.
fn merge(source: &Path, target: &Path) -> Result<()> {
    if !target.exists() {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        return Ok(symlink(source, target)?);
    }
    if !source.is_dir() || !target.is_dir() || target.canonicalize()? == source.canonicalize()? {
        return Ok(());
    }
    if target.is_symlink() {
        let linked = fs::read_link(target)?;
        fs::remove_file(target)?;
        fs::create_dir(target)?;
        merge(&linked, target)?;
    }
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        merge(&path, &target.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Whether a path stays below the folder that it starts from.
fn is_within(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn prefix_of(packages: &Packages, package: &str) -> Option<PathBuf> {
    packages.find(package).ok().map(|package| package.prefix)
}

/// Whether a name stays within its folder.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}
