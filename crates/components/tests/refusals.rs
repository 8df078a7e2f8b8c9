//! What cannot be loaded is refused with the reason and the way out, and the
//! container goes on.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pteros::component::FINGERPRINT;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::parameter::ParameterValue;
use pteros_component::{ContainerOptions, Index, LibraryError, Loader};
use support::{BAD, BOX, Running, library, request};

/// An installation of its own, gone with the test.
struct Prefix(PathBuf);

impl Prefix {
    fn new(name: &str) -> Self {
        let own = format!("pteros_{name}_{}", std::process::id());
        let prefix = Self(std::env::temp_dir().join(own));
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
            index: Index::new([], [self.0.clone()]),
            ..ContainerOptions::default()
        })
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A copy of a library in which some bytes are others.
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
fn unknown_packages_and_classes_are_told_with_those_there_are() {
    let container = Running::plain();
    let said = container.refusal(&request("no_such_package", "Talker"));
    assert!(
        said.starts_with("package \"no_such_package\" has no components in "),
        "{said}"
    );
    assert!(said.contains("PTEROS_COMPONENT_PATH"), "{said}");
    let (_, known) = said.split_once("known are: ").unwrap();
    let known: Vec<_> = known.split(", ").collect();
    assert!(known.contains(&BAD) && known.contains(&BOX), "{said}");
    let said = container.refusal(&request(BOX, "Walker"));
    assert!(
        said.starts_with(
            "package \"pteros_components\" has no component \"pteros_components::Walker\"; it has: \
             pteros_components::Talker"
        ),
        "{said}"
    );
}

#[test]
fn cpp_components_of_an_installation_are_listed_and_refused_with_the_way_out() {
    let prefix = Prefix::new("cpp");
    let lines = "composition::Talker;lib/libtalker_component.so\n";
    prefix.list("rclcpp_components", "composition", lines);
    let container = prefix.container();
    let said = container.refusal(&request("composition", "Talker"));
    assert!(said.contains("is C++ (rclcpp_components, "), "{said}");
    assert!(
        said.ends_with("ros2 run rclcpp_components component_container"),
        "{said}"
    );
}

#[test]
fn a_library_from_the_ament_index_is_loaded_and_what_is_no_library_refused() {
    let prefix = Prefix::new("ament");
    symlink(library(BOX), prefix.library("libbox.so")).unwrap();
    fs::write(prefix.library("libtext.so"), "no library").unwrap();
    symlink(library("pteros_dylib"), prefix.library("libother.so")).unwrap();
    let lines = "pteros_components::Talker;lib/libbox.so\n\
                 pteros_components::Gone;lib/libgone.so\n\
                 pteros_components::Text;lib/libtext.so\n\
                 pteros_components::Other;lib/libother.so\n\
                 pteros_components::NotInIt;lib/libbox.so\n\
                 this line is none\n";
    prefix.list("pteros_components", BOX, lines);
    let container = prefix.container();
    assert!(container.load(BOX, "Talker").success);
    let refusals = [
        ("Gone", "No such file or directory (os error 2); build it"),
        ("Text", "is no shared library (ELF, 64 bits, little-endian)"),
        (
            "Other",
            "registers no components; write pteros::register_components!",
        ),
        ("NotInIt", "has no component \"pteros_components::NotInIt\""),
    ];
    for (class, reason) in refusals {
        let said = container.refusal(&request(BOX, class));
        assert!(said.contains(reason), "{class}: {said}");
    }
}

#[test]
fn a_library_of_another_compiler_or_another_pteros_is_refused_before_it_is_loaded() {
    let prefix = Prefix::new("builds");
    let other = FINGERPRINT.replace("rustc 1", "rustc 0");
    altered(
        &library(BAD),
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
        &library(BAD),
        &prefix.library("sources.so"),
        FINGERPRINT,
        &changed,
    );
    for (file, built_with) in [("compiler.so", &other), ("sources.so", &changed)] {
        let error = Loader::default().load(&prefix.library(file)).unwrap_err();
        assert!(matches!(error, LibraryError::OtherBuild { .. }), "{error}");
        let said = error.to_string();
        let names_both = said.contains(built_with.as_str()) && said.contains(FINGERPRINT);
        assert!(
            names_both && said.ends_with("with one cargo command in one workspace"),
            "{said}"
        );
    }
}

#[test]
fn a_library_with_a_pteros_of_its_own_or_without_symbols_is_refused() {
    let prefix = Prefix::new("own");
    let own = prefix.library("own.so");
    altered(
        &library(BAD),
        &own,
        "libpteros_dylib.so",
        "libpteros_other.so",
    );
    let error = Loader::default().load(&own).unwrap_err();
    assert!(matches!(error, LibraryError::OwnCopy(_)), "{error}");
    let hollow = prefix.library("hollow.so");
    altered(
        &library(BAD),
        &hollow,
        "pteros_components_misbehaving",
        "pteros_components_misbehavior",
    );
    let loader = Loader::default();
    // The record's symbol and the exported one are renamed alike; its hash is not.
    let error = loader.load(&hollow).unwrap_err();
    assert!(matches!(error, LibraryError::Open { .. }), "{error}");
    assert!(error.to_string().contains("undefined symbol"), "{error}");
}

#[test]
fn arguments_that_mean_nothing_are_told_by_name() {
    let container = Running::plain();
    let parameter = |name: &str, value: ParameterValue| Parameter {
        name: name.into(),
        value: value.into_message(),
    };
    let mut slow = request(BOX, "Talker");
    slow.parameters = vec![parameter("rate", 0.0.into())];
    let said = container.refusal(&slow);
    assert!(
        said.contains("its constructor failed: parameter 'rate' = 0"),
        "{said}"
    );
    let mut wrong = request(BOX, "Talker");
    wrong.parameters = vec![parameter("rate", "fast".into())];
    let said = container.refusal(&wrong);
    assert!(
        said.contains("its constructor failed") && said.contains("rate"),
        "{said}"
    );
    let said = container.refusal(&request(BOX, "Throttle"));
    assert!(
        said.contains("its constructor failed") && said.contains("type"),
        "{said}"
    );
    let mut rule = request(BOX, "Talker");
    rule.remap_rules = vec!["chatter".into()];
    let said = container.refusal(&rule);
    assert!(
        said.starts_with("load component \"pteros_components::Talker\": "),
        "{said}"
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
            "is not known; known are use_intra_process_comms",
        ),
    ] {
        let mut extra = request(BOX, "Talker");
        extra.extra_arguments = vec![parameter(name, value)];
        let said = container.refusal(&extra);
        assert!(said.contains(name) && said.contains(reason), "{said}");
    }
}
