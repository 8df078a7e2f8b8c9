//! Components that cannot be loaded are refused with a reason and a hint, and the
//! container goes on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{
    DEMO_PACKAGE, MISBEHAVING_PACKAGE, Running, assert_contains, library, request,
};
use pteros::component::FINGERPRINT;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::parameter::ParameterValue;
use pteros_container::{ComponentIndex, ContainerOptions, LibraryError, Loader};
use pteros_test_support::folder::Folder;

/// A temporary installation prefix, removed when dropped.
struct Prefix(Folder);

impl Prefix {
    fn new(name: &str) -> Self {
        let prefix = Self(Folder::new(name));
        fs::create_dir_all(prefix.0.join("lib")).unwrap();
        prefix
    }

    /// Adds a package to the ament index.
    fn list(&self, resource: &str, package: &str, lines: &str) {
        let folder = self
            .0
            .join("share/ament_index/resource_index")
            .join(resource);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(package), lines).unwrap();
    }

    fn library(&self, name: &str) -> PathBuf {
        self.0.join("lib").join(name)
    }

    fn container(&self) -> Running {
        Running::new(ContainerOptions {
            index: ComponentIndex::new([], [self.0.to_path_buf()]),
            ..ContainerOptions::default()
        })
    }
}

/// A copy of a library with some bytes replaced.
fn altered(from: &Path, to: &Path, old: &str, new: &str) {
    assert_eq!(old.len(), new.len());
    let mut file = fs::read(from).unwrap();
    let places: Vec<usize> = (0..file.len() - old.len())
        .filter(|at| file[*at..].starts_with(old.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{old:?} is not in {}", from.display());
    for at in places {
        file[at..at + new.len()].copy_from_slice(new.as_bytes());
    }
    fs::write(to, file).unwrap();
}

#[test]
fn unknown_packages_and_classes_are_reported_with_the_known_ones() {
    let container = Running::plain();
    let error = container.load_error(&request("no_such_package", "Talker"));
    assert!(
        error.starts_with("package \"no_such_package\" has no components in "),
        "{error}"
    );
    assert!(error.contains("PTEROS_COMPONENT_PATH"), "{error}");
    let (_, known) = error.split_once("known are: ").unwrap();
    let known: Vec<_> = known.split(", ").collect();
    assert!(
        known.contains(&MISBEHAVING_PACKAGE) && known.contains(&DEMO_PACKAGE),
        "{error}"
    );
    let error = container.load_error(&request(DEMO_PACKAGE, "Walker"));
    assert!(
        error.starts_with(
            "package \"pteros_demo_components\" has no component \"pteros_demo_components::Walker\"; it has: \
             pteros_demo_components::Talker"
        ),
        "{error}"
    );
}

#[test]
fn cpp_components_of_an_installation_are_listed_and_refused_with_a_hint() {
    let prefix = Prefix::new("cpp");
    let lines = "composition::Talker;lib/libtalker_component.so\n";
    prefix.list("rclcpp_components", "composition", lines);
    let container = prefix.container();
    let error = container.load_error(&request("composition", "Talker"));
    assert!(error.contains("is C++ (rclcpp_components, "), "{error}");
    assert!(
        error.ends_with("ros2 run rclcpp_components component_container"),
        "{error}"
    );
}

#[test]
fn a_library_from_the_ament_index_is_loaded_and_other_files_are_refused() {
    let prefix = Prefix::new("ament");
    symlink(library(DEMO_PACKAGE), prefix.library("libbox.so")).unwrap();
    fs::write(prefix.library("libtext.so"), "no library").unwrap();
    symlink(library("pteros_dylib"), prefix.library("libother.so")).unwrap();
    let lines = "pteros_demo_components::Talker;lib/libbox.so\n\
                 pteros_demo_components::Gone;lib/libgone.so\n\
                 pteros_demo_components::Text;lib/libtext.so\n\
                 pteros_demo_components::Other;lib/libother.so\n\
                 pteros_demo_components::NotInIt;lib/libbox.so\n\
                 this line is none\n";
    prefix.list("pteros_components", DEMO_PACKAGE, lines);
    let container = prefix.container();
    assert!(container.load(DEMO_PACKAGE, "Talker").success);
    let refusals = [
        ("Gone", "No such file or directory (os error 2); build it"),
        ("Text", "is not a shared library (ELF); give a crate"),
        (
            "Other",
            "registers no components; write pteros::register_components!",
        ),
        (
            "NotInIt",
            "has no component \"pteros_demo_components::NotInIt\"",
        ),
    ];
    for (class, reason) in refusals {
        let error = container.load_error(&request(DEMO_PACKAGE, class));
        assert!(error.contains(reason), "{class}: {error}");
    }
}

#[test]
fn a_library_of_another_compiler_or_another_pteros_is_refused_before_it_is_loaded() {
    let prefix = Prefix::new("builds");
    let other = FINGERPRINT.replace("rustc 1", "rustc 0");
    altered(
        &library(MISBEHAVING_PACKAGE),
        &prefix.library("compiler.so"),
        FINGERPRINT,
        &other,
    );
    let (sources, hash) = FINGERPRINT.split_at(FINGERPRINT.len() - 16);
    let changed = format!(
        "{sources}{}",
        if hash.starts_with('0') {
            hash.replace('0', "1")
        } else {
            hash.replace(&hash[..1], "0")
        }
    );
    altered(
        &library(MISBEHAVING_PACKAGE),
        &prefix.library("sources.so"),
        FINGERPRINT,
        &changed,
    );
    for (file, built_with) in [("compiler.so", &other), ("sources.so", &changed)] {
        let error = Loader::default().load(&prefix.library(file)).unwrap_err();
        assert!(
            matches!(error, LibraryError::BuildMismatch { .. }),
            "{error}"
        );
        let error = error.to_string();
        let names_both = error.contains(built_with.as_str()) && error.contains(FINGERPRINT);
        assert!(
            names_both && error.ends_with("with one cargo command in one workspace"),
            "{error}"
        );
    }
}

#[test]
fn a_library_with_static_pteros_or_without_symbols_is_refused() {
    let prefix = Prefix::new("own");
    let own = prefix.library("own.so");
    altered(
        &library(MISBEHAVING_PACKAGE),
        &own,
        "libpteros_dylib.so",
        "libpteros_other.so",
    );
    let error = Loader::default().load(&own).unwrap_err();
    assert!(matches!(error, LibraryError::StaticPteros(_)), "{error}");
    let hollow = prefix.library("hollow.so");
    altered(
        &library(MISBEHAVING_PACKAGE),
        &hollow,
        "pteros_components_misbehaving",
        "pteros_components_misbehavior",
    );
    let loader = Loader::default();
    // The record's symbol and the exported symbol are renamed alike. Its hash is
    // not.
    let error = loader.load(&hollow).unwrap_err();
    assert!(matches!(error, LibraryError::Open { .. }), "{error}");
    assert!(error.to_string().contains("undefined symbol"), "{error}");
}

#[test]
fn invalid_arguments_are_reported_by_name() {
    let container = Running::plain();
    let parameter = |name: &str, value: ParameterValue| Parameter {
        name: name.into(),
        value: value.into_message(),
    };
    let mut slow = request(DEMO_PACKAGE, "Talker");
    slow.parameters = vec![parameter("rate", 0.0.into())];
    let error = container.load_error(&slow);
    assert_contains(&error, "its constructor failed: parameter 'rate' = 0");
    let mut wrong = request(DEMO_PACKAGE, "Talker");
    wrong.parameters = vec![parameter("rate", "fast".into())];
    let error = container.load_error(&wrong);
    assert!(
        error.contains("its constructor failed") && error.contains("rate"),
        "{error}"
    );
    let error = container.load_error(&request(DEMO_PACKAGE, "Throttle"));
    assert!(
        error.contains("its constructor failed") && error.contains("type"),
        "{error}"
    );
    let mut rule = request(DEMO_PACKAGE, "Talker");
    rule.remap_rules = vec!["chatter".into()];
    let error = container.load_error(&rule);
    assert!(
        error.starts_with("load component \"pteros_demo_components::Talker\": "),
        "{error}"
    );
    for (name, value, reason) in [
        (
            "use_intra_process_comms",
            1_i64.into(),
            "must be a boolean; write true or false",
        ),
        ("thread.priority", 0_i64.into(), "from 1 to 99"),
        ("thread.cpus", "x".into(), "x"),
        (
            "fast",
            true.into(),
            "is unknown; known are use_intra_process_comms",
        ),
    ] {
        let mut extra = request(DEMO_PACKAGE, "Talker");
        extra.extra_arguments = vec![parameter(name, value)];
        let error = container.load_error(&extra);
        assert!(error.contains(name) && error.contains(reason), "{error}");
    }
}
