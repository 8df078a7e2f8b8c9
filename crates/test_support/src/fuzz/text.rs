//! Text that people and files give: interface definitions and YAML.

use pteros_msg::dynamic::{DynamicMessage, YamlOptions};
use pteros_msg::filter::{Filter, FilterEvaluationError};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::schema::{self, InterfaceKind};

use super::cdr::dynamic_types;

pub fn interface_file(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let kind = InterfaceKind::ALL[usize::from(*choice) % 3];
    let parsed = schema::parse("fuzz", "Fuzz", kind, &text, "Fuzz.txt");
    let mut library = InterfaceLibrary::new();
    library.insert_text("fuzz", kind, "Fuzz", text.into_owned(), "Fuzz.txt");
    let described = library.describe("fuzz/Fuzz");
    if let Err(error) = &parsed {
        assert!(error.line >= 1 && !error.message.is_empty());
        assert!(described.is_err(), "described though it does not parse");
    }
    if let Ok(description) = described {
        let _ = pteros_msg::dynamic::DynamicType::new(&description);
    }
}

pub fn yaml(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let _ = pteros_msg::yaml::YamlNode::read_with_aliases(&text);
    let all = dynamic_types();
    let ty = &all[usize::from(*choice) % all.len()];
    if let Ok(message) = DynamicMessage::from_yaml(ty, &text) {
        message.check_bounds().expect("read within bounds");
        let printed = message.to_yaml(&YamlOptions::default());
        let again = DynamicMessage::from_yaml(ty, &printed)
            .unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again.to_yaml(&YamlOptions::default()), printed);
    }
}

/// A type, an expression up to the first 0, its first parameter up to the
/// second, and a payload.
pub fn filter(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let mut parts = rest.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (expression, parameter) = (text(), text());
    let payload = parts.next().unwrap_or_default();
    let all = dynamic_types();
    let ty = &all[usize::from(*choice) % all.len()];
    match Filter::new(ty, &expression, &[parameter]) {
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
            assert!(error.to_string().lines().count() == 3, "{error}");
        }
        Ok(filter) => {
            // A payload that decodes as a whole also decodes field by field.
            let judged = filter.passes(payload);
            if DynamicMessage::from_payload(ty, payload).is_ok() {
                assert!(
                    !matches!(judged, Err(FilterEvaluationError::Payload(_))),
                    "{judged:?}"
                );
            }
        }
    }
}
