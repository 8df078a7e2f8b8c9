//! Parameter files: read as a node reads `--params-file`.

use pteros::parameter::ParameterFile;

use crate::outcome::{CheckedFile, FileKind, Outcome, Reason};
use crate::repository::{Repository, text_of};

/// Reads every parameter file of a repository.
pub fn check(index: usize, repository: &Repository, files: &mut Vec<CheckedFile>) {
    for file in &repository.files {
        let extension = file.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("yaml" | "yml")) {
            continue;
        }
        let Some(text) = text_of(file).filter(|text| is_parameter_file(text)) else {
            continue;
        };
        let path = repository.relative(file);
        let (outcome, faults) = match ParameterFile::parse(&path.display().to_string(), &text) {
            Ok(_) => (Outcome::Accepted, Vec::new()),
            Err(error) => {
                let fault = error.to_string();
                (class(&fault), vec![fault])
            }
        };
        files.push(CheckedFile {
            repository: index,
            kind: FileKind::Parameters,
            path,
            outcome,
            faults,
        });
    }
}

/// Whether a line has the key `ros__parameters`.
fn is_parameter_file(text: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        code.contains("ros__parameters")
    })
}

/// The class of a refusal. rcl's parser has the same rules.
fn class(fault: &str) -> Outcome {
    const RULES: &[(&str, Reason)] = &[
        ("aliases", Reason("it has a YAML alias, which rcl refuses")),
        (
            "check quotes, brackets and indentation",
            Reason("it is not valid YAML"),
        ),
        (
            "no node name before",
            Reason("it has no node name before ros__parameters"),
        ),
        (
            " before ros__parameters",
            Reason("it has a value before ros__parameters"),
        ),
        (
            ": ros__parameters is ",
            Reason("ros__parameters has no mapping"),
        ),
        (
            " ends with a slash",
            Reason("a node name ends with a slash"),
        ),
        (
            " has two slashes in a row",
            Reason("a name has two slashes in a row"),
        ),
        (
            " where node names should be",
            Reason("a document has no node names"),
        ),
        (
            "a key must be a name",
            Reason("a key is a list or a mapping"),
        ),
        ("no name; write", Reason("a parameter has an empty name")),
        (
            "ros__parameters twice",
            Reason("a node has ros__parameters twice"),
        ),
        ("use one type", Reason("a list has values of several types")),
        ("a list in a list", Reason("a list is in a list")),
        ("no value; write ''", Reason("a parameter has no value")),
        (
            " begins with a slash",
            Reason("a name below a namespace begins with a slash"),
        ),
        (
            " node name ",
            Reason("a node name has characters that names cannot have"),
        ),
    ];
    match RULES.iter().find(|(part, _)| fault.contains(part)) {
        Some((_, reason)) => Outcome::RefusedByRos2(*reason),
        None => Outcome::Refused(Reason("another fault")),
    }
}
