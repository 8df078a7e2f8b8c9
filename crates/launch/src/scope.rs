//! What holds at a place of a launch file: arguments, environment, namespace,
//! parameters and remaps for the nodes below.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `let`, `set_env`, `push_ros_namespace` and their kin change, and groups
/// put back.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Launch configurations: arguments and what `let` sets.
    pub configurations: BTreeMap<String, String>,
    /// The environment of what is started.
    pub environment: BTreeMap<String, String>,
    /// The namespace pushed so far; empty or beginning with a slash.
    pub namespace: String,
    /// Parameters for all nodes, in order.
    pub parameters: Vec<GlobalParameter>,
    /// Remaps for all nodes, in order.
    pub remaps: Vec<(String, String)>,
    /// Variables of the loops around.
    pub loop_variables: BTreeMap<String, String>,
    /// The file being read.
    pub file: Arc<Path>,
}

/// A parameter, or a file of them, for every node in scope.
#[derive(Clone, Debug, PartialEq)]
pub enum GlobalParameter {
    /// A name and its value in YAML.
    Value(String, String),
    /// A file.
    File(PathBuf),
}

impl Scope {
    /// The scope at the beginning of the first file.
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
        }
    }

    /// Forgets arguments, namespace, parameters and remaps, as `reset` and a group
    /// that forwards nothing do; in ROS 2 all of these are launch configurations.
    pub fn reset(&mut self, kept: BTreeMap<String, String>) {
        self.configurations = kept;
        self.namespace.clear();
        self.parameters.clear();
        self.remaps.clear();
    }

    /// The folder of the file being read, absolute where the system knows it.
    pub fn folder(&self) -> PathBuf {
        let file = absolute(&self.file);
        file.parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// The namespace below the one pushed; a leading slash begins anew.
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

/// The path from the root, for messages and `$(dirname)`.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
