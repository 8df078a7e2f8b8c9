//! Package lookup: packages of installation prefixes through the ament index, and
//! packages of the Cargo workspace around a launch file, which need no
//! installation. Programs that pip installed lie in `bin`; the metadata of their
//! Python distribution names them (entry points, console scripts).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pteros::msg::package_manifest::toml_values;
use pteros::msg::regular_file;
use pteros_container::ComponentIndex;

use crate::built_in_nodes::{self, Program};
use crate::close_names::{did_you_mean, listed};

/// Folder of the ament index with one file per package.
const AMENT_PACKAGES: &str = "share/ament_index/resource_index/packages";
/// Largest number of entries of a folder that are searched for a `Cargo.toml`.
const CHILDREN_MAX: usize = 256;
/// Largest number of parent folders that are searched for a `Cargo.toml`.
const ANCESTORS_MAX: usize = 16;
/// The largest `Cargo.toml` or `entry_points.txt` that is read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// An installed package, or one in a workspace of Cargo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// As in `package.xml` or `Cargo.toml`.
    pub name: String,
    /// Folder of its launch files, parameters and maps: `PREFIX/share/NAME`, or the
    /// folder of its `Cargo.toml`.
    pub share: PathBuf,
    /// Its prefix, or the folder of its `Cargo.toml`.
    pub prefix: PathBuf,
    /// Where it was found.
    pub origin: PackageOrigin,
}

/// Where a package was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageOrigin {
    /// In an installation prefix.
    Installed,
    /// In a Cargo workspace.
    Cargo,
}

/// Finds packages and their executables. Each call reads the file system again.
#[derive(Clone, Debug, Default)]
pub struct Packages {
    prefixes: Vec<PathBuf>,
    program_folders: Vec<PathBuf>,
    cargo_target: Option<PathBuf>,
    manifests: BTreeMap<String, CargoManifest>,
    built_in_nodes: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct CargoManifest {
    folder: PathBuf,
    workspace: PathBuf,
    executables: Vec<String>,
}

impl Packages {
    /// Searches the prefixes and folders of a component index; `cargo_target` is
    /// the value of `CARGO_TARGET_DIR`.
    pub fn new(index: &ComponentIndex, cargo_target: Option<PathBuf>) -> Self {
        Self {
            prefixes: index.prefixes().to_vec(),
            program_folders: index.folders().to_vec(),
            cargo_target,
            manifests: BTreeMap::new(),
            built_in_nodes: None,
        }
    }

    /// Also finds the built-in nodes, which `command run PACKAGE EXECUTABLE` starts;
    /// `switch` is the value of [`SWITCH`](built_in_nodes::SWITCH).
    #[must_use]
    pub fn with_built_in_nodes(mut self, command: Option<PathBuf>, switch: Option<&OsStr>) -> Self {
        self.built_in_nodes = command.filter(|_| built_in_nodes::are_on(switch));
        self
    }

    /// Adds the Cargo packages around a folder: the nearest `Cargo.toml` above it
    /// and the members of its workspace. Adds those in its folders and in the folders of
    /// its `src` too, as in the workspace of colcon.
    #[must_use]
    pub fn with_workspace_of(mut self, folder: &Path) -> Self {
        self.add_workspace_of(folder);
        for parent in [folder.to_owned(), folder.join("src")] {
            for child in entries(&parent).into_iter().take(CHILDREN_MAX) {
                let child = crate::scope::absolute(&child);
                self.add_members(&child, &child);
            }
        }
        self
    }

    pub(crate) fn add_workspace_of(&mut self, folder: &Path) {
        let folder = crate::scope::absolute(folder);
        let ancestors = folder.ancestors().take(ANCESTORS_MAX);
        let folders: Vec<&Path> = ancestors
            .filter(|folder| folder.join("Cargo.toml").is_file())
            .collect();
        let Some(root) = folders.last() else {
            return;
        };
        for folder in &folders {
            self.add_members(folder, root);
        }
    }

    /// Adds the package of a folder, and the members of its workspace.
    fn add_members(&mut self, folder: &Path, root: &Path) {
        let text = manifest_text(folder);
        self.add_manifest(folder, root, &text);
        for member in members(folder, &text) {
            let text = manifest_text(&member);
            self.add_manifest(&member, folder, &text);
        }
    }

    fn add_manifest(&mut self, folder: &Path, workspace: &Path, text: &str) {
        let Some(name) = toml_values(text, "[package]", "name").into_iter().next() else {
            return;
        };
        let mut executables = toml_values(text, "[[bin]]", "name");
        if folder.join("src/main.rs").is_file() && executables.is_empty() {
            executables.push(name.clone());
        }
        for entry in entries(&folder.join("src/bin")) {
            if entry.extension().is_some_and(|end| end == "rs") || entry.join("main.rs").is_file() {
                let stem = entry.file_stem().unwrap_or_default();
                executables.push(stem.to_string_lossy().into_owned());
            }
        }
        executables.sort();
        executables.dedup();
        self.manifests.entry(name).or_insert_with(|| CargoManifest {
            folder: folder.to_owned(),
            workspace: workspace.to_owned(),
            executables,
        });
    }

    /// The prefix of an installed package. One whose ament index has the package precedes
    /// one with no more than a folder of programs.
    fn prefix_of(&self, name: &str) -> Option<&PathBuf> {
        if !is_name(name) {
            return None;
        }
        let marker = Path::new(AMENT_PACKAGES).join(name);
        let programs = Path::new("lib").join(name);
        let mut prefixes = self.prefixes.iter();
        let indexed = prefixes.find(|prefix| prefix.join(&marker).is_file());
        let mut prefixes = self.prefixes.iter();
        indexed.or_else(|| prefixes.find(|prefix| prefix.join(&programs).is_dir()))
    }

    /// Whether a prefix has the package.
    pub fn is_installed(&self, name: &str) -> bool {
        self.prefix_of(name).is_some()
    }

    /// The names of all packages, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.manifests.keys().cloned().collect();
        for prefix in &self.prefixes {
            for entry in entries(&prefix.join(AMENT_PACKAGES)) {
                let name = entry.file_name().unwrap_or_default();
                names.insert(name.to_string_lossy().into_owned());
            }
        }
        names.into_iter().collect()
    }

    /// Name and folder of each Cargo package of the workspace, sorted by name.
    pub fn cargo_packages(&self) -> impl Iterator<Item = (&str, &Path)> {
        let manifests = self.manifests.iter();
        manifests.map(|(name, manifest)| (name.as_str(), manifest.folder.as_path()))
    }

    /// The package of that name. An installed package precedes one of the
    /// workspace.
    ///
    /// # Errors
    /// Unknown package, with similar names and the searched places.
    pub fn find(&self, name: &str) -> Result<Package, String> {
        if let Some(prefix) = self.prefix_of(name) {
            return Ok(Package {
                name: name.into(),
                share: prefix.join("share").join(name),
                prefix: prefix.clone(),
                origin: PackageOrigin::Installed,
            });
        }
        if let Some((name, manifest)) = self.manifest(name) {
            return Ok(Package {
                name: name.into(),
                share: manifest.folder.clone(),
                prefix: manifest.folder.clone(),
                origin: PackageOrigin::Cargo,
            });
        }
        let known = self.names();
        let similar = did_you_mean(
            name,
            known.iter().map(String::as_str),
            "packages are looked for in the prefixes of AMENT_PREFIX_PATH and PTEROS_PREFIX, in the Cargo workspaces around the launch file and the current folder, and in the folders of the current one",
        );
        let demo = if name.starts_with("demo_nodes_") {
            "; the demo nodes are in the command: pteros demo talker, pteros demo listener"
        } else {
            ""
        };
        Err(format!("there is no package {name:?}{similar}{demo}"))
    }

    /// A Cargo package. Its name may have dashes where ROS 2 has underscores.
    fn manifest(&self, name: &str) -> Option<(&str, &CargoManifest)> {
        let exact = self.manifests.get_key_value(name);
        let same = |known: &str| known.replace('-', "_") == name;
        let found = exact.or_else(|| self.manifests.iter().find(|(known, _)| same(known)));
        found.map(|(name, manifest)| (name.as_str(), manifest))
    }

    /// The program of a package, as [`Packages::executable`] finds it, else the built-in
    /// node of that name.
    ///
    /// # Errors
    /// As [`Packages::executable`].
    pub fn program(&self, package: &str, name: &str) -> Result<Program, String> {
        match self.executable(package, name) {
            Ok(path) => Ok(Program {
                path,
                arguments: Vec::new(),
            }),
            // The program of a workspace may only have to be built.
            Err(problem) if self.manifest(package).is_some() => Err(problem),
            Err(problem) => {
                let Some(command) = &self.built_in_nodes else {
                    return Err(problem + built_in_nodes::feature_hint(package, name));
                };
                let built_in = Program::built_in(command.clone(), package, name);
                built_in.ok_or_else(|| format!("{problem}{}", built_in_nodes::hint(package)))
            }
        }
    }

    /// Package and program of each built-in node that [`Packages::program`] gives, of that
    /// package or of all.
    pub fn built_in(&self, package: Option<&str>) -> Vec<(&'static str, Program)> {
        let mut found = Vec::new();
        for (of, name) in built_in_nodes::NAMES {
            if package.is_none_or(|package| package == *of)
                && let Ok(program) = self.program(of, name)
                && !program.arguments.is_empty()
            {
                found.push((*of, program));
            }
        }
        found
    }

    /// The words of a built-in node's command line, which `$(exec-in-pkg …)` joins; `None`
    /// for other texts.
    pub(crate) fn built_in_words(&self, text: &str) -> Option<Vec<String>> {
        let command = self.built_in_nodes.as_ref()?;
        built_in_nodes::NAMES.iter().find_map(|(package, name)| {
            let program = Program::built_in(command.clone(), package, name)?;
            let words: Vec<String> = program.words().collect();
            (words.join(" ") == text).then_some(words)
        })
    }

    /// The program of a package: `PREFIX/lib/PACKAGE/NAME`, a console script that pip
    /// installed, or the newest one of that name that Cargo has built.
    ///
    /// # Errors
    /// As [`Packages::find`], or an unknown program, with the known ones.
    pub fn executable(&self, package: &str, name: &str) -> Result<PathBuf, String> {
        let found = self.find(package)?;
        let path = match found.origin {
            _ if !is_name(name) => None,
            PackageOrigin::Installed => {
                let own = found.prefix.join("lib").join(package).join(name);
                let scripts = console_scripts(&found.prefix, package);
                let mut scripts = scripts.into_iter().filter(|(script, _)| script == name);
                let script = || scripts.next().map(|(_, path)| path);
                Some(own).filter(|path| is_program(path)).or_else(script)
            }
            PackageOrigin::Cargo => self.built_program(package, name),
        };
        if let Some(path) = path.filter(|path| is_program(path)) {
            return Ok(path);
        }
        let known: Vec<String> = match self.manifest(package) {
            Some((_, manifest)) if found.origin == PackageOrigin::Cargo => {
                manifest.executables.clone()
            }
            _ => self
                .executables(package)?
                .into_iter()
                .map(|(name, _)| name)
                .collect(),
        };
        if found.origin == PackageOrigin::Cargo && known.iter().any(|known| known == name) {
            return Err(format!(
                "program {name:?} of package {package:?} is not built yet; run: cargo build -p {}",
                found.name
            ));
        }
        let known = || known.iter().map(String::as_str);
        let hint = format!("it has: {}", listed(known()));
        let similar = did_you_mean(name, known(), &hint);
        Err(format!(
            "package {package:?} has no program {name:?}{similar}"
        ))
    }

    /// The programs of a package, by name.
    ///
    /// # Errors
    /// As [`Packages::find`].
    pub fn executables(&self, package: &str) -> Result<Vec<(String, PathBuf)>, String> {
        let found = self.find(package)?;
        let mut programs = Vec::new();
        match found.origin {
            PackageOrigin::Installed => {
                for path in entries(&found.prefix.join("lib").join(package)) {
                    let name = path.file_name().unwrap_or_default();
                    if is_program(&path) {
                        programs.push((name.to_string_lossy().into_owned(), path));
                    }
                }
                for (name, path) in console_scripts(&found.prefix, package) {
                    if programs.iter().all(|(known, _)| *known != name) {
                        programs.push((name, path));
                    }
                }
            }
            PackageOrigin::Cargo => {
                let manifest = self.manifest(package).map(|(_, manifest)| manifest);
                for name in manifest.into_iter().flat_map(|one| &one.executables) {
                    if let Some(path) = self.built_program(package, name) {
                        programs.push((name.clone(), path));
                    }
                }
            }
        }
        Ok(programs)
    }

    /// The programs in the manifest of a Cargo package that are not built, by name; none of
    /// another package.
    pub fn unbuilt_programs(&self, package: &str) -> Vec<&str> {
        let manifest = self.manifest(package).map(|(_, manifest)| manifest);
        let programs = manifest.into_iter().flat_map(|one| &one.executables);
        let unbuilt = programs.filter(|name| self.built_program(package, name).is_none());
        unbuilt.map(String::as_str).collect()
    }

    /// The newest program of that name that Cargo has built. A program beside this
    /// one comes first, since it is of the same build.
    fn built_program(&self, package: &str, name: &str) -> Option<PathBuf> {
        let (_, manifest) = self.manifest(package)?;
        let mut targets: Vec<PathBuf> = self.cargo_target.iter().cloned().collect();
        targets.push(manifest.folder.join("target"));
        targets.push(manifest.workspace.join("target"));
        targets.extend(configured_target(&manifest.workspace));
        targets.extend(configured_target(&manifest.folder));
        let profiles = targets
            .iter()
            .flat_map(|target| [target.join("release"), target.join("debug")]);
        let candidates = profiles.chain(self.program_folders.iter().cloned());
        let newest =
            |path: &PathBuf| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
        candidates
            .map(|folder| folder.join(name))
            .filter(|path| is_program(path))
            .max_by_key(newest)
    }
}

/// The build folder that `.cargo/config.toml` of a workspace names, relative to the
/// workspace.
fn configured_target(workspace: &Path) -> Option<PathBuf> {
    let text = text_of(&workspace.join(".cargo/config.toml"));
    let target = toml_values(&text, "[build]", "target-dir")
        .into_iter()
        .next()?;
    Some(workspace.join(target))
}

/// Whether the name is a valid file name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// Whether the path is an executable file.
pub fn is_program(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The entries of a folder, sorted; empty if there is no folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|one| Some(one.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The console scripts of the Python distribution of that name, which pip puts into
/// `PREFIX/bin`. The names are compared as PyPI does: `-`, `_` and `.` are the same.
fn console_scripts(prefix: &Path, package: &str) -> Vec<(String, PathBuf)> {
    let normalized = |name: &str| name.to_lowercase().replace(['-', '.'], "_");
    let is_python = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("python3")
    };
    let pythons = entries(&prefix.join("lib")).into_iter().filter(is_python);
    let sites = pythons
        .flat_map(|python| [python.join("site-packages"), python.join("dist-packages")])
        .flat_map(|site| entries(&site));
    let is_of_package = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let distribution = name.strip_suffix(".dist-info").and_then(|name| {
            let (distribution, _version) = name.rsplit_once('-')?;
            Some(normalized(distribution))
        });
        distribution.is_some_and(|one| one == normalized(package))
    };
    let mut scripts = Vec::new();
    for distribution in sites.filter(is_of_package) {
        let text = text_of(&distribution.join("entry_points.txt"));
        for name in keys_of(&text, "[console_scripts]") {
            let path = prefix.join("bin").join(name);
            if is_name(name) && is_program(&path) {
                scripts.push((name.to_owned(), path));
            }
        }
    }
    scripts
}

/// The keys of the lines below a heading.
fn keys_of<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == head
            && let Some((key, _)) = line.split_once('=')
        {
            keys.push(key.trim());
        }
    }
    keys
}

fn manifest_text(folder: &Path) -> String {
    text_of(&folder.join("Cargo.toml"))
}

/// The text of a small regular file; empty if there is none.
fn text_of(path: &Path) -> String {
    regular_file::read_text(path, MANIFEST_BYTES_MAX).unwrap_or_default()
}

/// The folders of a workspace's members; `*` matches any one folder.
fn members(root: &Path, text: &str) -> Vec<PathBuf> {
    let Some((_, workspace)) = text.split_once("[workspace]") else {
        return Vec::new();
    };
    let listed = workspace.split_once("members").and_then(|(_, rest)| {
        let (_, rest) = rest.split_once('[')?;
        Some(rest.split_once(']')?.0)
    });
    let patterns = listed.unwrap_or("").split(['"', '\'']).skip(1).step_by(2);
    let folders = patterns.flat_map(|pattern| match pattern.strip_suffix("/*") {
        Some(folder) => entries(&root.join(folder)),
        None => vec![root.join(pattern)],
    });
    folders
        .filter(|folder| folder.join("Cargo.toml").is_file())
        .collect()
}
