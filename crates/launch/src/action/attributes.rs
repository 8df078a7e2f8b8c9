//! Attributes with their substitutions done, as texts, numbers and truth values.

use std::time::Duration;

use super::Builder;
use crate::document::{Attribute, Element, Value};
use crate::fault::Fault;
use crate::substitution::evaluate::{self, truth};
use crate::substitution::{Part, Template};

/// The longest time that a launch file may name, a year: beyond it a slip is
/// likelier.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// The text of an attribute in which substitutions mean nothing.
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

/// The only text of an attribute, substitutions still in it.
pub fn single(attribute: &Attribute) -> Result<&str, Fault> {
    match &attribute.value {
        Value::Scalar(scalar) => Ok(&scalar.text),
        Value::List(_) => Err(Fault::at(
            &attribute.place,
            format!("{} is a list; write one value", attribute.name),
        )),
    }
}

impl Builder {
    /// A text with its substitutions done.
    pub fn evaluated(&mut self, attribute: &Attribute, text: &str) -> Result<String, Fault> {
        let fault =
            |message: String| Fault::at(&attribute.place, format!("{}: {message}", attribute.name));
        let template = Template::parse(text).map_err(fault)?;
        self.filled(&template).map_err(fault)
    }

    /// What a template gives in the present scope.
    pub fn filled(&mut self, template: &Template) -> Result<String, String> {
        self.note_asked(template);
        evaluate::text(template, &mut self.scope, &mut self.around)
    }

    /// Remembers which arguments something asks for.
    fn note_asked(&mut self, template: &Template) {
        for part in &template.parts {
            let Part::Call(call) = part else { continue };
            if call.name == "var"
                && let Some(name) = call.arguments.first().and_then(Template::as_text)
            {
                self.asked.insert(name.to_owned());
            }
            for argument in &call.arguments {
                self.note_asked(argument);
            }
        }
    }

    /// An attribute's text; none where there is no such attribute.
    pub fn text(&mut self, element: &Element, name: &str) -> Result<Option<String>, Fault> {
        match element.attribute(name) {
            None => Ok(None),
            Some(attribute) => self.evaluated(attribute, single(attribute)?).map(Some),
        }
    }

    /// The text of an attribute that must be there. The schema has said so where it
    /// is not; then the element is left out.
    pub fn required(&mut self, element: &Element, name: &str) -> Result<String, Fault> {
        let text = self.text(element, name)?;
        text.ok_or_else(|| {
            Fault::at(
                &element.place,
                format!(
                    "{} lacks the attribute {name:?}; write {name}=\"…\"",
                    element.name
                ),
            )
        })
    }

    /// An attribute that says true or false.
    pub fn truth(&mut self, element: &Element, name: &str) -> Result<Option<bool>, Fault> {
        self.parsed(element, name, truth)
    }

    /// An attribute in seconds, not negative.
    pub fn seconds(&mut self, element: &Element, name: &str) -> Result<Option<Duration>, Fault> {
        self.parsed(element, name, seconds)
    }

    /// An attribute, made into something else.
    pub fn parsed<T>(
        &mut self,
        element: &Element,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        let Some(attribute) = element.attribute(name) else {
            return Ok(None);
        };
        let text = self.evaluated(attribute, single(attribute)?)?;
        parse(&text)
            .map(Some)
            .map_err(|message| Fault::at(&attribute.place, format!("{name}: {message}")))
    }

    /// The words of a command line.
    pub fn words(&mut self, element: &Element, name: &str) -> Result<Vec<String>, Fault> {
        let Some(attribute) = element.attribute(name) else {
            return Ok(Vec::new());
        };
        let fault = |message: String| Fault::at(&attribute.place, format!("{name}: {message}"));
        let template = Template::parse(single(attribute)?).map_err(fault)?;
        let words = template.words().map_err(fault)?;
        let words = words.iter().map(|word| self.filled(word));
        words.collect::<Result<_, _>>().map_err(fault)
    }
}

/// Seconds, as Python's `float()` reads them.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.trim().parse().ok();
    match seconds {
        Some(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "{text:?} is no time; write seconds from 0 to {SECONDS_MAX}, as 2.5"
        )),
    }
}
