//! Launch request from the command line: the file and its arguments.

use super::Launch;
use crate::built_in_node::HAS_NODES;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use clap::{Args, Parser as _};
use pteros_container::ComponentIndex;
use pteros_launch::built_in_nodes::SWITCH;
use pteros_launch::run::LogFolder;
use pteros_launch::{LaunchPlan, LaunchRequest, Packages};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A launch file and its arguments.
#[derive(Debug, Args)]
pub struct LaunchTarget {
    /// A launch file; or a package and the name of a launch file in it
    #[arg(required = true, value_name = "FILE | PACKAGE FILE")]
    file: Vec<OsString>,
}

/// File name extensions of launch files.
const EXTENSIONS: [&str; 3] = [".xml", ".yaml", ".yml"];

impl Launch {
    /// The launch request.
    pub fn request(&self) -> Result<LaunchRequest> {
        let mut environment = environment();
        if self.show_all_subprocesses_output {
            environment.insert("OVERRIDE_LAUNCH_PROCESS_OUTPUT".into(), "both".into());
        }
        let components = ComponentIndex::from_environment();
        let packages = packages(&components);
        let words = self.target.file.iter();
        let words = words.map(|word| (word, word.to_string_lossy()));
        let words: Vec<(&OsString, Cow<'_, str>)> = words.collect();
        let is_assignment = |text: &str| text.contains(":=");
        let names = words.iter().filter(|(_, text)| !is_assignment(text));
        let names: Vec<(&OsString, &str)> = names.map(|(word, text)| (*word, &**text)).collect();
        let file = match names.as_slice() {
            // A path need not be UTF-8.
            [(file, _)] => PathBuf::from(file),
            [(_, file), (_, word)] if is_launch_file(file) => bail!(
                "'{word}' is not an argument of {file}; write NAME:=VALUE (pteros launch {file} --show-args lists them)"
            ),
            [(_, package), (_, file)] => find_in_package(&packages, package, file)?,
            [] => bail!("no launch file; write pteros launch FILE, or PACKAGE FILE"),
            [_, _, (_, word), ..] => {
                bail!("'{word}' is not an argument of a launch file; write NAME:=VALUE")
            }
        };
        if let [(_, package)] = names.as_slice()
            && !file.exists()
            && !package.contains(['/', '.'])
        {
            let similar = did_you_mean(package, packages.names().iter().map(String::as_str));
            let similar = similar.trim_end_matches('.');
            bail!("there is no launch file '{package}'{similar}; write its path, or PACKAGE FILE");
        }
        let mut arguments = Vec::new();
        for (_, word) in words.iter().filter(|(_, text)| is_assignment(text)) {
            let (name, value) = word.split_once(":=").unwrap_or((word, ""));
            if name.is_empty() {
                bail!("'{word}' has no argument name; write NAME:=VALUE");
            }
            arguments.push((name.to_owned(), value.to_owned()));
        }
        let mut prefix = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                arguments.push((name.into(), value.clone()));
            }
        };
        prefix("launch-prefix", &self.launch_prefix);
        prefix("launch-prefix-filter", &self.launch_prefix_filter);
        let host = host();
        let process = std::process::id();
        let log_folder = LogFolder::new(&environment, &host, process);
        Ok(LaunchRequest {
            file,
            arguments,
            log_folder: log_folder.path().to_owned(),
            environment,
            packages,
            components,
            host,
            process,
            ros2_command: std::env::current_exe().ok(),
        })
    }
}

/// Whether a word is the path of an existing launch file, and so not a package.
fn is_launch_file(word: &str) -> bool {
    let path = Path::new(word);
    let is_named = is_python(path) || EXTENSIONS.iter().any(|end| word.ends_with(end));
    is_named && path.is_file()
}

/// The environment of this process. Invalid UTF-8 is read with replacement
/// characters.
pub fn environment() -> BTreeMap<String, String> {
    let text = |word: OsString| word.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// Installed packages, those of the Cargo workspace of the current folder, and the
/// built-in nodes.
pub fn packages(components: &ComponentIndex) -> Packages {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let command = std::env::current_exe().ok().filter(|_| HAS_NODES);
    let switch = std::env::var_os(SWITCH);
    Packages::new(components, target)
        .with_workspace_of(Path::new("."))
        .with_built_in_nodes(command, switch.as_deref())
}

/// This host's name.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".into(), |name| name.trim().to_owned())
}

/// Finds a launch file by name below the share folder of a package.
fn find_in_package(packages: &Packages, package: &str, name: &str) -> Result<PathBuf> {
    let found = packages.find(package).map_err(anyhow::Error::msg)?;
    let mut files = Vec::new();
    collect(&found.share, 0, &mut files);
    let named = |path: &&PathBuf| path.file_name().is_some_and(|file| *file == *name);
    let matching: Vec<&PathBuf> = files.iter().filter(named).collect();
    match matching.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let names = files.iter().filter_map(|path| path.file_name()?.to_str());
            let similar = match did_you_mean(name, names.clone()).as_str() {
                "." => format!("; it has: {}", names.collect::<Vec<_>>().join(", ")),
                similar => similar.to_owned(),
            };
            bail!(
                "package '{package}' has no launch file '{name}' below {}{similar}",
                found.share.display()
            );
        }
        several => {
            let several: Vec<String> = several.iter().map(|p| p.display().to_string()).collect();
            bail!(
                "package '{package}' has several launch files '{name}'; write the path of one: {}",
                several.join(", ")
            );
        }
    }
}

/// The launch files of a package, by name; empty for an unknown package.
pub fn launch_files(packages: &Packages, package: &str) -> Vec<String> {
    let mut files = Vec::new();
    if let Ok(found) = packages.find(package) {
        collect(&found.share, 0, &mut files);
    }
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    names.map(str::to_owned).collect()
}

/// The arguments of the launch file that the words of a command line name, as
/// `NAME:=`. Empty if they name none, or one for Python.
pub fn launch_arguments(words: &[String]) -> Vec<String> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        launch: Launch,
    }
    let line =
        Line::try_parse_from(std::iter::once("launch").chain(words.iter().map(String::as_str)));
    let request = line
        .map_err(Into::into)
        .and_then(|line| line.launch.request());
    let arguments = request.map(|request| LaunchPlan::arguments(&request).unwrap_or_default());
    let names = arguments.unwrap_or_default().into_iter();
    names
        .map(|argument| format!("{}:=", argument.name))
        .collect()
}

/// Whether a file is a Python launch file.
pub fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "py")
}

/// Collects the launch files below a folder, except cargo's build folder.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    const DEPTH_MAX: usize = 6;
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|one| Some(one.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if depth < DEPTH_MAX && name != "target" && !name.starts_with('.') {
                collect(&path, depth + 1, files);
            }
        } else if name.contains("launch")
            && (is_python(&path) || EXTENSIONS.iter().any(|end| name.ends_with(end)))
        {
            files.push(path);
        }
    }
}
