//! Parameter overrides of one node from several command lines.

use super::{Parameter, ParameterFile, ParameterType, ParameterValue};
use crate::args::{Arguments, ArgumentsError};

/// The parameter overrides for a node, those of later arguments last.
///
/// # Errors
/// See [`ArgumentsError`]; it names the file and the line.
pub fn parameter_overrides(
    arguments: &[&Arguments],
    node: &str,
) -> Result<Vec<Parameter>, ArgumentsError> {
    let mut found: Vec<Parameter> = Vec::new();
    for arguments in arguments {
        for parameter in ParameterFile::from_arguments(arguments)?.parameters_of(node, true) {
            match found.iter_mut().find(|known| known.name == parameter.name) {
                Some(known) => known.value = parameter.value,
                None => found.push(parameter),
            }
        }
    }
    Ok(found)
}

/// The parameter override for one parameter of a node, as its declared type takes the
/// text.
///
/// # Errors
/// See [`parameter_overrides`].
pub fn parameter_override_as(
    arguments: &[&Arguments],
    node: &str,
    name: &str,
    declared: ParameterType,
) -> Result<Option<ParameterValue>, ArgumentsError> {
    let mut found = None;
    for arguments in arguments {
        let texts = ParameterFile::from_arguments(arguments)?.texts_of(node, true);
        let text = texts.into_iter().find(|(known, _)| known == name);
        found = text.map(|(_, text)| text.value_as(declared)).or(found);
    }
    Ok(found)
}
