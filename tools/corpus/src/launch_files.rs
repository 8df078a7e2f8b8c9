//! Launch files: checked as `pteros launch --check` does, with the packages of all
//! repositories in place.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::Result;
use pteros_launch::{LaunchFileErrors, LaunchPlan, LaunchRequest};

use crate::installation::Installation;
use crate::outcome::{CheckedFile, FileKind, Outcome, Reason};
use crate::repository::{Repository, is_launch_name, text_of};
use crate::upstream;

/// How often a file is read again after programs and components were added.
const ROUNDS_MAX: usize = 40;

/// Reads every launch file of a repository.
///
/// # Errors
/// The temporary installation cannot be written.
pub fn check(
    index: usize,
    repository: &Repository,
    installation: &Installation,
    files: &mut Vec<CheckedFile>,
) -> Result<()> {
    for file in &repository.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_python = name.ends_with(".py");
        let (outcome, faults) = if is_python && is_launch_name(&name) {
            (Outcome::LeftOut(PYTHON), Vec::new())
        } else if is_python {
            continue;
        } else {
            let Some(text) = text_of(file) else { continue };
            if !is_launch_file(&name, &text) {
                continue;
            }
            if is_ros1(&text, repository.is_ros1(file)) {
                (Outcome::Ros1, Vec::new())
            } else {
                read(index, file, installation)?
            }
        };
        files.push(CheckedFile {
            repository: index,
            kind: FileKind::Launch,
            path: repository.relative(file),
            outcome,
            faults,
        });
    }
    Ok(())
}

/// Whether a file is a launch file: by its name, or by its outermost element.
fn is_launch_file(name: &str, text: &str) -> bool {
    match name.rsplit_once('.') {
        Some((_, "yaml" | "yml")) => is_only_key(text, "launch:"),
        Some((_, "xml")) => root_element(text) == Some("launch"),
        Some((_, "launch")) => is_launch_name(name),
        _ => false,
    }
}

/// Whether the lines at the left margin of a YAML text are this one alone.
fn is_only_key(text: &str, key: &str) -> bool {
    let is_inner = |line: &&str| line.is_empty() || line.starts_with([' ', '\t', '#', '-']);
    let mut outer = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !is_inner(line));
    outer.next() == Some(key) && outer.next().is_none()
}

/// The name of the first element of an XML text, well-formed or not.
fn root_element(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find('<')? + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
        } else if !rest.starts_with(['?', '!']) {
            let end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
            return Some(&rest[..rest.find(end).unwrap_or(rest.len())]);
        }
    }
}

/// Whether a launch file is one of ROS 1: its nodes have `type` where ROS 2's have
/// `exec`, or it uses elements and substitutions that ROS 2 dropped.
fn is_ros1(text: &str, in_ros1_package: bool) -> bool {
    let dropped = ["$(find ", "$(arg ", "$(optenv ", "<rosparam", "<machine"];
    let has_dropped = dropped.iter().any(|word| text.contains(word));
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let Ok(document) = roxmltree::Document::parse_with_options(text, options) else {
        return in_ros1_package || has_dropped;
    };
    let nodes = document.descendants();
    let nodes: Vec<_> = nodes.filter(|node| node.has_tag_name("node")).collect();
    let is_of_ros2 = nodes.iter().any(|node| node.has_attribute("exec"));
    let is_of_ros1 = nodes
        .iter()
        .any(|node| node.has_attribute("type") && !node.has_attribute("exec"));
    !is_of_ros2 && (is_of_ros1 || has_dropped || in_ros1_package)
}

/// Reads a file until no program and no component of a known package is missing.
fn read(index: usize, file: &Path, installation: &Installation) -> Result<(Outcome, Vec<String>)> {
    let (packages, components) = installation.seen_by(index);
    let path = installation.empty_folder().display().to_string();
    let request = LaunchRequest {
        file: file.to_owned(),
        arguments: Vec::new(),
        environment: environment(path),
        packages: packages.clone(),
        components,
        log_folder: installation.log_folder(),
        host: "host".into(),
        process: 1,
        ros2_command: Some("pteros".into()),
    };
    for round in 1.. {
        let Ok(read) = catch_unwind(AssertUnwindSafe(|| LaunchPlan::read(&request))) else {
            return Ok((Outcome::Refused(PANIC), vec!["the reader panicked".into()]));
        };
        let errors = match read {
            Ok(plan) if plan.left_out.is_empty() => break,
            Ok(plan) => return Ok((Outcome::NeedsMore(INCLUDED_PYTHON), plan.left_out)),
            Err(errors) => errors,
        };
        let mut has_new = false;
        for error in errors.iter() {
            has_new |= match missing_part(&error.message) {
                Some(MissingPart::Program(package, name)) => {
                    installation.add_program(&packages, package, name)?
                }
                Some(MissingPart::Component(package, class)) => {
                    // Any class makes a package known that has none. The next round's
                    // message names the one that is wanted.
                    let class = class.unwrap_or("Any");
                    installation.add_component(&packages, package, class)?
                }
                None => false,
            };
        }
        if !has_new || round == ROUNDS_MAX {
            let faults = errors.iter().map(ToString::to_string).collect();
            return Ok((outcome(&errors), faults));
        }
    }
    Ok((Outcome::Accepted, Vec::new()))
}

/// The environment of the launch: a home, and no program on PATH, so that no
/// `$(command …)` of a file runs.
fn environment(path: String) -> BTreeMap<String, String> {
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", "/nonexistent"),
        ("USER", "user"),
        ("ROS_DISTRO", "jazzy"),
        ("ROS_VERSION", "2"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    variables.into_iter().collect()
}

/// A part of a package that a message says is missing.
enum MissingPart<'m> {
    Program(&'m str, &'m str),
    Component(&'m str, Option<&'m str>),
}

fn missing_part(message: &str) -> Option<MissingPart<'_>> {
    let (_, rest) = message.split_once("package \"")?;
    let (package, rest) = rest.split_once('"')?;
    if let Some(rest) = rest.strip_prefix(" has no program \"") {
        return Some(MissingPart::Program(package, rest.split_once('"')?.0));
    }
    if let Some(rest) = rest.strip_prefix(" has no component \"") {
        return Some(MissingPart::Component(
            package,
            Some(rest.split_once('"')?.0),
        ));
    }
    rest.starts_with(" has no components in ")
        .then_some(MissingPart::Component(package, None))
}

/// The outcome of a file with these faults. One fault that has no known reason decides.
/// Faults that follow from a missing package do not.
pub fn outcome(errors: &LaunchFileErrors) -> Outcome {
    let class_of = |follows: bool| {
        let errors = errors
            .iter()
            .filter(move |error| follows == follows_from_empty(&error.message));
        errors.map(|error| class(&error.message))
    };
    let mut classes: Vec<Outcome> = class_of(false).collect();
    let is_need = |one: &Outcome| matches!(one, Outcome::NeedsMore(_));
    if !classes.iter().any(is_need) {
        classes.extend(class_of(true));
    }
    let found = |wanted: fn(&Outcome) -> bool| classes.iter().find(|one| wanted(one)).cloned();
    let needs = found(is_need);
    found(|one| matches!(one, Outcome::Refused(_)))
        .or_else(|| found(|one| matches!(one, Outcome::RefusedByRos2(_))))
        .or(needs)
        .unwrap_or(Outcome::Refused(OTHER))
}

const PYTHON: Reason = Reason("Python launch file");
const PANIC: Reason = Reason("the reader panicked");
const OTHER: Reason = Reason("another fault");
const PACKAGE: Reason = Reason("it names a package that is not in the folders");
const PART: Reason =
    Reason("it names a program or component of a package that is not in the folders");
const ARGUMENT: Reason = Reason("it needs an argument that has no default");
const VARIABLE: Reason = Reason("it needs an environment variable");
const PROGRAM: Reason = Reason("it names a program that PATH does not have");
const INCLUDED_PYTHON: Reason = Reason("it includes a Python launch file");
const FILE: Reason = Reason("it names a file that is not there");
const EXTENSION: Reason = Reason("it has an element that a Python package adds");
const MALFORMED: Reason = Reason("it is not well-formed XML or YAML");
const ROOT: Reason = Reason("its outermost element is not launch");
const ELEMENT: Reason = Reason("ROS 2 has no such element");
const ATTRIBUTE: Reason = Reason("ROS 2 has no such attribute");
const SUBSTITUTION: Reason = Reason("ROS 2 has no such substitution");
const REQUIRED: Reason = Reason("a required attribute is missing");

/// Whether a fault can follow from an argument or a package that is missing: its value is
/// the empty text then.
fn follows_from_empty(message: &str) -> bool {
    ["\"\" is not ", "nothing after :=", "has \"//\" at"]
        .iter()
        .any(|part| message.contains(part))
}

/// The class of one fault, by its message.
fn class(message: &str) -> Outcome {
    let has = |part: &str| message.contains(part);
    let needs: &[(&str, Reason)] = &[
        ("Python launch file", INCLUDED_PYTHON),
        ("\" is an element of the package ", EXTENSION),
        ("there is no package ", PACKAGE),
        (" has no program \"", PART),
        (" has no components in ", PART),
        (" has no component \"", PART),
        ("has no value; give one: ", ARGUMENT),
        (": there is no argument \"", ARGUMENT),
        ("the environment variable \"", VARIABLE),
        ("there is no program \"", PROGRAM),
        ("cannot run \"", PROGRAM),
        ("cannot read ", FILE),
        (": No such file or directory", FILE),
        ("there is no folder ", FILE),
        (" is a folder; name the launch file in it", FILE),
    ];
    let refuses: &[(&str, Reason)] = &[
        ("not valid XML: ", MALFORMED),
        ("is not text: byte ", MALFORMED),
        ("the outermost element is ", ROOT),
        (" lacks the attribute \"", REQUIRED),
    ];
    if let Some(name) = quoted_after(message, " has no element \"") {
        return if upstream::EXTENSIONS.iter().any(|(known, _)| *known == name) {
            Outcome::NeedsMore(EXTENSION)
        } else {
            unless_known(upstream::ELEMENTS, name, ELEMENT)
        };
    }
    if let Some(name) = quoted_after(message, " has no attribute \"") {
        return unless_known(upstream::ATTRIBUTES, name, ATTRIBUTE);
    }
    if let Some((_, rest)) = message.split_once("there is no substitution $(") {
        let name = rest.split(')').next().unwrap_or("");
        return unless_known(upstream::SUBSTITUTIONS, name, SUBSTITUTION);
    }
    if let Some((_, reason)) = refuses.iter().find(|(part, _)| has(part)) {
        return Outcome::RefusedByRos2(*reason);
    }
    match needs.iter().find(|(part, _)| has(part)) {
        Some((_, reason)) => Outcome::NeedsMore(*reason),
        None => Outcome::Refused(OTHER),
    }
}

fn quoted_after<'m>(message: &'m str, start: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(start)?;
    Some(rest.split_once('"')?.0)
}

/// A name that ROS 2 has not is refused by both; one that it has, by Pteros alone.
fn unless_known(known: &[&str], name: &str, reason: Reason) -> Outcome {
    if known.contains(&name) {
        Outcome::Refused(OTHER)
    } else {
        Outcome::RefusedByRos2(reason)
    }
}
