//! Launch scope: arguments, environment, namespace, parameters and remaps that
//! apply at a position of a launch file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The state that `let`, `set_env`, `push_ros_namespace` and similar actions
/// change. A group restores it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Launch configurations: arguments and the values that `let` sets.
    pub configurations: BTreeMap<String, String>,
    /// Environment of started processes.
    pub environment: BTreeMap<String, String>,
    /// The pushed namespace; empty or with a leading slash.
    pub namespace: String,
    /// Parameters for all nodes, in order.
    pub parameters: Vec<GlobalParameter>,
    /// Remaps for all nodes, in order.
    pub remaps: Vec<(String, String)>,
    /// Variables of the enclosing loops.
    pub loop_variables: BTreeMap<String, String>,
    /// The file being read.
    pub file: Arc<Path>,
    /// Names without a value because of an error. A use of one is a consequence of
    /// that error.
    pub failed: FailedNames,
}

/// Names whose values are unknown, since an action has failed.
#[derive(Clone, Debug, Default)]
pub struct FailedNames {
    /// Launch configurations.
    pub configurations: BTreeSet<String>,
    /// Environment variables.
    pub environment: BTreeSet<String>,
    /// Whether any further name may be missing: a group, include or loop has failed.
    pub any_other: bool,
    /// The first Python file that was left out. It might set any name.
    pub left_out: Option<String>,
}

/// A parameter or parameter file for every node in scope.
#[derive(Clone, Debug, PartialEq)]
pub enum GlobalParameter {
    /// A name and its value in YAML.
    Value(String, String),
    /// Path of a parameter file.
    File(PathBuf),
}

impl Scope {
    /// The initial scope of the first file.
    pub fn new(
        configurations: BTreeMap<String, String>,
        environment: BTreeMap<String, String>,
        file: Arc<Path>,
    ) -> Self {
        Self {
            configurations,
            environment,
            namespace: String::new(),
            parameters: Vec::new(),
            remaps: Vec::new(),
            loop_variables: BTreeMap::new(),
            file,
            failed: FailedNames::default(),
        }
    }

    /// Sets a launch configuration.
    pub fn set(&mut self, name: String, value: String) {
        self.failed.configurations.remove(&name);
        self.configurations.insert(name, value);
    }

    /// Marks a launch configuration as unknown.
    pub fn fail(&mut self, name: String) {
        self.configurations.remove(&name);
        self.failed.configurations.insert(name);
    }

    /// Drops arguments, namespace, parameters and remaps, as `reset` and a group
    /// without forwarding do. In ROS 2 all of these are launch configurations.
    pub fn reset(&mut self, kept: BTreeMap<String, String>) {
        self.configurations = kept;
        self.failed.configurations.clear();
        self.namespace.clear();
        self.parameters.clear();
        self.remaps.clear();
    }

    /// The folder of the file being read; absolute if possible.
    pub fn folder(&self) -> PathBuf {
        let file = absolute(&self.file);
        file.parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// The namespace relative to the pushed one. A leading slash makes it absolute.
    pub fn namespaced(&self, namespace: Option<&str>) -> String {
        let pushed = self.namespace.trim_end_matches('/');
        let joined = match namespace.filter(|name| !name.is_empty()) {
            None => pushed.to_owned(),
            Some(name) if name.starts_with('/') => name.to_owned(),
            Some(name) => format!("{pushed}/{name}"),
        };
        match joined.len() {
            0 | 1 => joined,
            _ => joined.trim_end_matches('/').to_owned(),
        }
    }
}

/// The absolute path, for messages and `$(dirname)`.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
