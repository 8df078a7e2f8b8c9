//! Attribute values with evaluated substitutions: texts, numbers and booleans.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::document::{Attribute, Element, Value};
use crate::error::LaunchFileError;
use crate::scope::Scope;
use crate::substitution::evaluate::{self, EvaluationContext, truth};
use crate::substitution::{Template, TemplatePart};

/// Largest duration in a launch file, one year. A larger one is likely a mistake.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// The text of an attribute that takes no substitutions.
pub fn literal(attribute: &Attribute) -> String {
    match &attribute.value {
        Value::Scalar(scalar) => match Template::parse(&scalar.text) {
            // Backslashes are resolved.
            Ok(template) if !template.has_calls() => {
                template.as_text().unwrap_or_default().to_owned()
            }
            _ => scalar.text.clone(),
        },
        Value::List(list) => {
            let texts: Vec<&str> = list.iter().map(|one| one.text.as_str()).collect();
            texts.join(" ")
        }
    }
}

/// The single text of an attribute, with unevaluated substitutions.
pub fn single(attribute: &Attribute) -> Result<&str, LaunchFileError> {
    match &attribute.value {
        Value::Scalar(scalar) => Ok(&scalar.text),
        Value::List(_) => Err(LaunchFileError::at(
            &attribute.location,
            format!("{} is a list; write one value", attribute.name),
        )),
    }
}

/// Reads attributes of launch actions, and evaluates their substitutions in the current
/// scope.
pub(crate) struct AttributeReader {
    pub scope: Scope,
    pub context: EvaluationContext,
    /// Names of the launch configurations that were referred to.
    pub requested_arguments: BTreeSet<String>,
}

impl AttributeReader {
    /// A text of this attribute with evaluated substitutions.
    pub fn evaluated_attribute(
        &mut self,
        attribute: &Attribute,
        text: &str,
    ) -> Result<String, LaunchFileError> {
        let error = |message: String| {
            LaunchFileError::at(
                &attribute.location,
                format!("{}: {message}", attribute.name),
            )
        };
        let template = Template::parse(text).map_err(error)?;
        self.substituted(&template)
            .map_err(|message| self.with_cause(error(message)))
    }

    /// An error of the last evaluation, with its cause if that is known.
    pub fn with_cause(&mut self, mut error: LaunchFileError) -> LaunchFileError {
        error.cause = self.context.known_cause.take();
        error
    }

    /// A template, evaluated in the current scope.
    pub fn substituted(&mut self, template: &Template) -> Result<String, String> {
        self.record_requested_arguments(template);
        self.context.known_cause = None;
        evaluate::text(template, &mut self.scope, &mut self.context)
    }

    /// Records which arguments a template refers to.
    fn record_requested_arguments(&mut self, template: &Template) {
        for part in &template.parts {
            let TemplatePart::Call(call) = part else {
                continue;
            };
            if call.name == "var"
                && let Some(name) = call.arguments.first().and_then(Template::as_text)
            {
                self.requested_arguments.insert(name.to_owned());
            }
            for argument in &call.arguments {
                self.record_requested_arguments(argument);
            }
        }
    }

    /// The evaluated text of an attribute; none if the attribute is missing.
    pub fn text(
        &mut self,
        element: &Element,
        name: &str,
    ) -> Result<Option<String>, LaunchFileError> {
        match element.attribute(name) {
            None => Ok(None),
            Some(attribute) => self
                .evaluated_attribute(attribute, single(attribute)?)
                .map(Some),
        }
    }

    /// The evaluated text of a required attribute. The schema check has reported a
    /// missing attribute already, and the error here only skips the element.
    pub fn required(&mut self, element: &Element, name: &str) -> Result<String, LaunchFileError> {
        let text = self.text(element, name)?;
        text.ok_or_else(|| {
            LaunchFileError::at(
                &element.location,
                format!(
                    "{} lacks the attribute {name:?}; write {name}=\"…\"",
                    element.name
                ),
            )
        })
    }

    /// An attribute as a boolean.
    pub fn truth(
        &mut self,
        element: &Element,
        name: &str,
    ) -> Result<Option<bool>, LaunchFileError> {
        self.parsed(element, name, truth)
    }

    /// An attribute as a non-negative duration in seconds.
    pub fn seconds(
        &mut self,
        element: &Element,
        name: &str,
    ) -> Result<Option<Duration>, LaunchFileError> {
        self.parsed(element, name, seconds)
    }

    /// An attribute, evaluated and parsed.
    pub fn parsed<T>(
        &mut self,
        element: &Element,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, LaunchFileError> {
        let Some(attribute) = element.attribute(name) else {
            return Ok(None);
        };
        let text = self.evaluated_attribute(attribute, single(attribute)?)?;
        parse(&text).map(Some).map_err(|message| {
            LaunchFileError::at(&attribute.location, format!("{name}: {message}"))
        })
    }

    /// An attribute as the words of a command line.
    pub fn words(&mut self, element: &Element, name: &str) -> Result<Vec<String>, LaunchFileError> {
        let Some(attribute) = element.attribute(name) else {
            return Ok(Vec::new());
        };
        let error = |message: String| {
            LaunchFileError::at(&attribute.location, format!("{name}: {message}"))
        };
        let template = Template::parse(single(attribute)?).map_err(error)?;
        let words = template.words().map_err(error)?;
        let words = words.iter().map(|word| self.substituted(word));
        let words: Result<Vec<String>, String> = words.collect();
        words.map_err(|message| self.with_cause(error(message)))
    }
}

/// Parses seconds as Python's `float()` does.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.trim().parse().ok();
    match seconds {
        Some(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "{text:?} is not a duration; write seconds from 0 to {SECONDS_MAX}, as 2.5"
        )),
    }
}
