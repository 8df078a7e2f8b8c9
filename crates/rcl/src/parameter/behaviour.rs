//! Runs the rows of `tests/behaviour/parameters.txt` by both rule sets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg;

use super::*;
use crate::args::Arguments;

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, word: impl Into<String>) {
        self.0.lock().push(word.into());
    }

    /// The calls since the last time.
    fn take(&self) -> String {
        self.0.lock().drain(..).collect::<Vec<_>>().join(" ")
    }
}

impl ParameterEventSink for Log {
    fn publish_event(&self, event: msg::ParameterEvent) {
        self.add("event");
        for (sign, parameters) in [
            ('+', event.new_parameters),
            ('~', event.changed_parameters),
            ('-', event.deleted_parameters),
        ] {
            for parameter in parameters {
                self.add(format!("{sign}{}", parameter.name));
            }
        }
    }
}

fn value(text: &str) -> ParameterValue {
    match text {
        "none" => ParameterValue::NotSet,
        text => ParameterValue::from_yaml(text).unwrap(),
    }
}

fn shown(value: &ParameterValue) -> String {
    match value {
        ParameterValue::NotSet => "none".into(),
        value => value.to_string(),
    }
}

fn pair(text: &str) -> Parameter {
    let (name, text) = text.split_once('=').unwrap();
    Parameter::new(name, value(text))
}

fn error_kind(error: &ParameterError) -> String {
    let source = match error {
        ParameterError::AlreadyDeclared { .. } => return "already declared".into(),
        ParameterError::NotDeclared { .. } => return "not declared".into(),
        ParameterError::NoValue { .. } => return "no value".into(),
        ParameterError::InvalidInitialValue { source, .. } => source,
        ParameterError::Set { source, .. } => source,
    };
    match source {
        SetParameterError::WrongType { .. } => "wrong type".into(),
        SetParameterError::OutOfRange { .. } => "out of range".into(),
        SetParameterError::ReadOnly { .. } => "read-only".into(),
        SetParameterError::StaticType { .. } => "static type".into(),
        other => other.to_string(),
    }
}

struct Script {
    rule_set: RuleSet,
    store: Arc<ParameterStore>,
    log: Arc<Log>,
    handles: Vec<ParameterCallbackHandle>,
}

impl Script {
    fn new(rule_set: RuleSet, steps: &[&str]) -> Self {
        let words = steps
            .iter()
            .filter_map(|step| step.strip_prefix("override "));
        let words: Vec<_> = words.flat_map(|text| ["-p", text]).collect();
        let words = ["--ros-args"].into_iter().chain(words);
        let (arguments, _) = Arguments::parse(words).unwrap();
        let files = ParameterFile::from_arguments(&arguments).unwrap();
        let options = NodeParameterOptions {
            rules: StoreRules {
                allow_undeclared: steps.contains(&"undeclared"),
                declare_from_overrides: steps.contains(&"automatic"),
                rule_set,
            },
            ..NodeParameterOptions::default()
        };
        let store = options.store("/node".into(), &[&files]);
        let log = Arc::new(Log::default());
        let sink: Weak<Log> = Arc::downgrade(&log);
        store.set_event_sink(sink);
        store.declare_overrides().unwrap();
        let handles = Vec::new();
        Self {
            rule_set,
            store,
            log,
            handles,
        }
    }

    fn declare(&self, words: &[&str]) -> Result<String, ParameterError> {
        let [name, default, options @ ..] = words else {
            panic!("{words:?}")
        };
        let mut descriptor = ParameterDescriptor::new();
        let mut ignore_override = false;
        for option in options {
            match option.split_once('=') {
                None if *option == "dynamic" => descriptor = descriptor.dynamic_typing(),
                None if *option == "read_only" => descriptor = descriptor.read_only(),
                None if *option == "ignore" => ignore_override = true,
                Some(("range", range)) => {
                    let bounds: Vec<_> = range.split(':').collect();
                    let [from, to, step] = bounds[..] else {
                        panic!("{range}")
                    };
                    descriptor = match (value(from), value(to), step) {
                        (ParameterValue::Integer(from), ParameterValue::Integer(to), step) => {
                            descriptor.integer_range(from, to, step.parse().unwrap())
                        }
                        (ParameterValue::Double(from), ParameterValue::Double(to), step) => {
                            descriptor.float_range(from, to, step.parse().unwrap())
                        }
                        _ => panic!("{range}"),
                    };
                }
                _ => panic!("{option}"),
            }
        }
        let (type_of, default) = match default.strip_prefix(':') {
            Some(name) => {
                let all = (0..=9).filter_map(ParameterType::from_number);
                let found = all.into_iter().find(|one| one.to_string() == name);
                (found.unwrap(), ParameterValue::NotSet)
            }
            None if descriptor.dynamic_typing => (ParameterType::NotSet, value(default)),
            None => (value(default).parameter_type(), value(default)),
        };
        let declaration = ParameterDeclaration {
            name: (*name).into(),
            type_of,
            default,
            descriptor,
            ignore_override,
        };
        let declared = self.store.declare(declaration, |_| None);
        declared.map(|value| shown(&value))
    }

    fn set(&self, words: &[&str]) -> String {
        let parameters = words.iter().map(|word| pair(word)).collect();
        match self.store.set_atomically(parameters) {
            Ok(()) => "ok".into(),
            Err(SetParameterError::NotDeclared { .. }) => "not declared".into(),
            Err(error) => self.rule_set.reason(&error),
        }
    }

    fn logging(&self, word: &'static str) -> impl Fn() + Send + Sync + 'static {
        let log = self.log.clone();
        move || log.add(word)
    }

    fn callbacks(&mut self) {
        for (on, post) in [("on1", "post1"), ("on2", "post2")] {
            let (on, post) = (self.logging(on), self.logging(post));
            let callbacks = &self.store.callbacks;
            self.handles.push(callbacks.add_on_set(Box::new(move |_| {
                on();
                Ok(())
            })));
            let handle = callbacks.add_post_set(Box::new(move |_| post()));
            self.handles.push(handle);
        }
    }

    fn follow(&mut self, parameter: Parameter) {
        let store = Arc::downgrade(&self.store);
        let is_done = AtomicBool::new(false);
        let callback = move |_: &[Parameter]| {
            if !is_done.swap(true, Ordering::Relaxed)
                && let Some(store) = store.upgrade()
            {
                // By the rules of rclcpp it is an error.
                let _ = store.set_atomically(vec![parameter.clone()]);
            }
        };
        let callbacks = &self.store.callbacks;
        self.handles
            .push(callbacks.add_post_set(Box::new(callback)));
    }

    /// Runs a step and returns its outcome.
    fn run(&mut self, step: &str) -> Result<String, ParameterError> {
        let words: Vec<_> = step.split_whitespace().collect();
        let store = self.store.clone();
        let ok = || Ok(String::from("ok"));
        match words.as_slice() {
            ["override", ..] | ["undeclared" | "automatic"] => ok(),
            ["declare", words @ ..] => self.declare(words),
            ["set", words @ ..] => Ok(self.set(words)),
            ["undeclare", name] => store.undeclare(name).and_then(|()| ok()),
            ["get", name] => store.get(name).map(|value| shown(&value)),
            ["type", name] => store.type_of(name).map(|found| found.number().to_string()),
            ["describe", name] => store.describe(name).map(|found| {
                let type_of = ParameterType::from_number(found.r#type).unwrap();
                let mut text = match found.name.as_str() {
                    "" => format!("- {type_of}"),
                    name => format!("{name} {type_of}"),
                };
                if found.read_only {
                    text += " read_only";
                }
                if found.dynamic_typing {
                    text += " dynamic";
                }
                text
            }),
            ["list", prefix, depth] => {
                let prefixes: Vec<_> = (*prefix != "-")
                    .then(|| (*prefix).into())
                    .into_iter()
                    .collect();
                let found = store.list(&prefixes, depth.parse().unwrap());
                let words = found
                    .names
                    .into_iter()
                    .chain(["/".into()])
                    .chain(found.prefixes);
                Ok(words.collect::<Vec<_>>().join(" "))
            }
            ["callbacks"] => {
                self.callbacks();
                ok()
            }
            ["append", text] => {
                let parameter = pair(text);
                let callback = move |list: &mut Vec<Parameter>| list.push(parameter.clone());
                let handle = store.callbacks.add_pre_set(Box::new(callback));
                self.handles.push(handle);
                ok()
            }
            ["clear"] => {
                let handle = store.callbacks.add_pre_set(Box::new(Vec::clear));
                self.handles.push(handle);
                ok()
            }
            ["refuse", text] => {
                let unlucky = value(text);
                let callback = move |list: &[Parameter]| {
                    let is_found = list.iter().any(|one| one.value == unlucky);
                    if is_found {
                        Err("refused".into())
                    } else {
                        Ok(())
                    }
                };
                let handle = store.callbacks.add_on_set(Box::new(callback));
                self.handles.push(handle);
                ok()
            }
            ["follow", text] => {
                self.follow(pair(text));
                ok()
            }
            _ => panic!("unknown step: {step}"),
        }
    }
}

/// The outcome of the last step.
fn outcome(rule_set: RuleSet, steps: &[&str]) -> String {
    let mut script = Script::new(rule_set, steps);
    let mut found = String::new();
    for step in steps {
        script.log.take();
        found = match script.run(step) {
            Ok(found) => found,
            Err(error) => error_kind(&error),
        };
    }
    let calls = script.log.take();
    if !calls.is_empty() {
        found = format!("{found} | {calls}");
    }
    found
}

#[test]
fn the_rows_of_the_behaviour_table_hold() {
    let rows = include_str!("../../tests/behaviour/parameters.txt").lines();
    let mut count = 0;
    let mut failed = Vec::new();
    for row in rows.filter(|row| !row.starts_with('#')) {
        let (question, expected) = row.split_once(" -> ").expect(row);
        let (who, question) = question.split_once(' ').expect(row);
        let steps: Vec<_> = question.split(';').map(str::trim).collect();
        let found = match who {
            "rcl" => vec![TypingRule::Rcl.value_of(question).to_string()],
            "yaml" => vec![TypingRule::Yaml11.value_of(question).to_string()],
            "rclcpp" => vec![outcome(RuleSet::Rclcpp, &steps)],
            "rclpy" => vec![outcome(RuleSet::Rclpy, &steps)],
            "both" => [RuleSet::Rclcpp, RuleSet::Rclpy]
                .map(|rule_set| outcome(rule_set, &steps))
                .to_vec(),
            _ => panic!("unknown row: {row}"),
        };
        if found.iter().any(|found| found.trim() != expected.trim()) {
            failed.push(format!("{row}: {found:?}"));
        }
        count += 1;
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(count > 100, "{count} rows");
}
