//! Test support: a container in this process, and the libraries that it loads.
#![allow(clippy::disallowed_methods, reason = "the container is a thread")]

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesRequest, LoadNode, LoadNodeRequest, LoadNodeResponse, UnloadNode,
    UnloadNodeRequest, UnloadNodeResponse,
};
use pteros::prelude::*;
use pteros_container::{ComponentIndex, Container, ContainerOptions};
// Only a program that shares Pteros can load components.
use pteros_dylib as _;

pub const TIMEOUT: Duration = Duration::from_secs(20);
pub const DEMO_PACKAGE: &str = "pteros_demo_components";
pub const MISBEHAVING_PACKAGE: &str = "misbehaving";

/// The library of that name, as the current cargo command built it.
pub fn library(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.with_file_name(format!("lib{name}.so"))
}

/// An index of the demo and the misbehaving components.
pub fn index() -> ComponentIndex {
    ComponentIndex::new([library(DEMO_PACKAGE).parent().unwrap().to_owned()], [])
}

/// A spinning container with clients of its services.
pub struct Running {
    pub context: Context,
    _container: Arc<Container>,
    load: Client<LoadNode>,
    unload: Client<UnloadNode>,
    list: Client<ListNodes>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn new(options: ContainerOptions) -> Self {
        let context = Context::with_options(ContextOptions {
            discovery_range: Some(DiscoveryRange::Off),
            ..ContextOptions::default()
        })
        .unwrap();
        Self::in_context(&context, options)
    }

    pub fn in_context(context: &Context, options: ContainerOptions) -> Self {
        let container = Arc::new(Container::new(context, options).unwrap());
        let node = context.create_node("asker").unwrap();
        let service = |name| format!("/ComponentManager/_container/{name}");
        let spun = container.clone();
        Self {
            load: node.create_client(service("load_node")).unwrap(),
            unload: node.create_client(service("unload_node")).unwrap(),
            list: node.create_client(service("list_nodes")).unwrap(),
            thread: Some(std::thread::spawn(move || spun.spin().unwrap())),
            context: context.clone(),
            _container: container,
        }
    }

    /// A container with default options and the libraries of these tests.
    pub fn plain() -> Self {
        Self::new(ContainerOptions {
            index: index(),
            ..ContainerOptions::default()
        })
    }

    pub fn call_load(&self, request: &LoadNodeRequest) -> LoadNodeResponse {
        let answer = self.load.call(request, TIMEOUT).unwrap();
        (*answer).clone()
    }

    pub fn load(&self, package: &str, class: &str) -> LoadNodeResponse {
        self.call_load(&request(package, class))
    }

    pub fn unload(&self, unique_id: u64) -> UnloadNodeResponse {
        let request = UnloadNodeRequest { unique_id };
        (*self.unload.call(&request, TIMEOUT).unwrap()).clone()
    }

    pub fn list(&self) -> Vec<(u64, String)> {
        let answer = self.list.call(&ListNodesRequest::default(), TIMEOUT);
        let answer = (*answer.unwrap()).clone();
        answer
            .unique_ids
            .into_iter()
            .zip(answer.full_node_names)
            .collect()
    }

    /// The error of a refused request.
    pub fn load_error(&self, request: &LoadNodeRequest) -> String {
        let before = self.list();
        let answer = self.call_load(request);
        assert!(!answer.success, "{answer:?}");
        assert_eq!((answer.unique_id, answer.full_node_name.as_str()), (0, ""));
        assert_eq!(self.list(), before);
        answer.error_message
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.context.shutdown();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Fails with the whole text unless it contains the part.
#[track_caller]
pub fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

/// A request for a class of a package, `package::Class`.
pub fn request(package: &str, class: &str) -> LoadNodeRequest {
    LoadNodeRequest {
        package_name: package.into(),
        plugin_name: format!("{package}::{class}"),
        ..LoadNodeRequest::default()
    }
}
