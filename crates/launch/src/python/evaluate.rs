//! Evaluator: computes the value of an expression.

use std::rc::Rc;
use std::sync::Arc;

use super::arithmetic::{binary, unary};
use super::builtin;
use super::call;
use super::compare::compare;
use super::comprehension;
use super::error::ExpressionError;
use super::fault::{Fault, Outcome};
use super::format_spec;
use super::item;
use super::iterate;
use super::limits::CHARACTERS_MAX;
use super::machine::{Arguments, Machine};
use super::names::Names;
use super::parser;
use super::printed::{ascii, representation, short, text};
use super::tree::{Argument, Constant, Element, Entry, FormattedPart, LambdaNode, Node, NodeKind};
use super::value::{Kind, Lambda, Scope, Value, checked};
use crate::close_names::did_you_mean;

/// A parsed expression. It may be evaluated by several threads at once.
///
/// ```
/// use pteros_launch::python::{Expression, Names, Value};
///
/// let expression = Expression::parse("m['speed'] > limit and 'base' in frame")?;
/// let speed = Expression::parse("{'speed': 2.5}")?.evaluate(&Names::new())?;
/// let names = Names::new()
///     .with("m", speed)
///     .with("limit", Value::from(1.0))
///     .with("frame", "base_link".into());
/// assert!(expression.evaluate(&names)?.truth());
/// # Ok::<(), pteros_launch::python::ExpressionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Node>,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// Invalid grammar, with the position; an expression beyond a limit.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let text: Arc<str> = source.into();
        let wrong = |fault| ExpressionError::new(&text, fault);
        let letters: Vec<char> = source.chars().collect();
        if letters.len() > CHARACTERS_MAX {
            let message = format!("it is longer than {CHARACTERS_MAX} characters");
            return Err(wrong(message.into()));
        }
        let root = parser::parse(&letters, 0, 0).map_err(wrong)?;
        Ok(Self {
            source: text,
            root: root.into(),
        })
    }

    /// The expression as given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Computes the value. Blocks for a tenth of a second at most, and reads
    /// nothing but the names.
    ///
    /// # Errors
    /// An operation that is not possible, with its position and the values; a
    /// limit that is exceeded.
    pub fn evaluate(&self, names: &Names) -> Result<Value, ExpressionError> {
        let scope = Scope::of(names.values());
        let mut machine = Machine::new(call::call);
        evaluate(&mut machine, &self.root, &scope)
            .map_err(|fault| ExpressionError::new(&self.source, fault))
    }
}

/// The value of a node. A fault without a position gets this node's.
pub(super) fn evaluate(machine: &mut Machine, node: &Node, scope: &Scope) -> Outcome<Value> {
    let outcome = match &node.kind {
        NodeKind::Constant(constant) => Ok(constant_value(constant)),
        NodeKind::Name(name) => name_value(name, scope),
        _ => machine.deeper(|machine| {
            machine.steps(1)?;
            compound(machine, node, scope)
        }),
    };
    outcome.map_err(|fault| fault.or_at(node.at))
}

fn constant_value(constant: &Constant) -> Value {
    Value(match constant {
        Constant::None => Kind::None,
        Constant::Ellipsis => Kind::Ellipsis,
        Constant::Bool(value) => Kind::Bool(*value),
        Constant::Integer(value) => Kind::Integer(*value),
        Constant::Double(value) => Kind::Double(*value),
        Constant::Text(text) => Kind::Text(text.clone()),
        Constant::Bytes(bytes) => Kind::Bytes(bytes.clone()),
    })
}

fn name_value(name: &Arc<str>, scope: &Scope) -> Outcome<Value> {
    if let Some(value) = scope.value(name) {
        return Ok(value.clone());
    }
    if let Some(value) = builtin::named(name) {
        return Ok(value);
    }
    if let Some(reason) = builtin::refused(name) {
        return Err(format!("{name} is not available: {reason}").into());
    }
    let mut known: Vec<&str> = scope.given().collect();
    for name in builtin::names() {
        known.push(name);
    }
    let similar = did_you_mean(name, known, &format!("a text needs quotes: '{name}'"));
    Err(Fault {
        unknown_name: Some(name.clone()),
        ..format!("the name {name} is not known{similar}").into()
    })
}

fn compound(machine: &mut Machine, node: &Node, scope: &Scope) -> Outcome<Value> {
    match &node.kind {
        NodeKind::Constant(constant) => Ok(constant_value(constant)),
        NodeKind::Name(name) => name_value(name, scope),
        NodeKind::Formatted(parts) => {
            let text = formatted(machine, parts, scope)?;
            machine.text(text)
        }
        NodeKind::Tuple(elements) => {
            let items = elements_of(machine, elements, scope)?;
            machine.tuple(items)
        }
        NodeKind::List(elements) => {
            let items = elements_of(machine, elements, scope)?;
            machine.list(items)
        }
        NodeKind::Set(elements) => {
            let items = elements_of(machine, elements, scope)?;
            machine.set(items, false)
        }
        NodeKind::Dictionary(entries) => dictionary(machine, entries, scope),
        NodeKind::Unary(operator, operand) => {
            let operand = evaluate(machine, operand, scope)?;
            unary(*operator, &operand)
        }
        NodeKind::Binary(operator, left, right) => {
            let left = evaluate(machine, left, scope)?;
            let right = evaluate(machine, right, scope)?;
            binary(machine, &left, *operator, &right)
        }
        NodeKind::And(nodes) => first_with(machine, nodes, scope, false),
        NodeKind::Or(nodes) => first_with(machine, nodes, scope, true),
        NodeKind::Comparison(first, others) => {
            let mut left = evaluate(machine, first, scope)?;
            for (comparator, node) in others {
                let right = evaluate(machine, node, scope)?;
                if !compare(machine, &left, *comparator, &right)? {
                    return Ok(false.into());
                }
                left = right;
            }
            Ok(true.into())
        }
        NodeKind::Conditional(all) => {
            let holds = evaluate(machine, &all.condition, scope)?.truth();
            let branch = if holds { &all.then } else { &all.otherwise };
            evaluate(machine, branch, scope)
        }
        NodeKind::Attribute(of, name) => {
            let of = evaluate(machine, of, scope)?;
            item::attribute(machine, &of, name)
        }
        NodeKind::Item(of, index) => {
            let of = evaluate(machine, of, scope)?;
            let index = evaluate(machine, index, scope)?;
            item::item(machine, &of, &index)
        }
        NodeKind::Slice(parts) => slice(machine, parts, scope),
        NodeKind::Call(function, arguments) => {
            let function = evaluate(machine, function, scope)?;
            let arguments = arguments_of(machine, arguments, scope)?;
            machine.call(function, arguments)
        }
        NodeKind::Lambda(lambda) => lambda_value(machine, lambda, scope),
        NodeKind::Comprehension(kind, comprehension) => {
            comprehension::evaluate(machine, *kind, comprehension, scope)
        }
    }
}

/// The first value with this truth, else the last value. Those behind it are not
/// evaluated.
fn first_with(machine: &mut Machine, nodes: &[Node], scope: &Scope, truth: bool) -> Outcome<Value> {
    let mut value = Value::NONE;
    for node in nodes {
        value = evaluate(machine, node, scope)?;
        if value.truth() == truth {
            break;
        }
    }
    Ok(value)
}

fn elements_of(machine: &mut Machine, elements: &[Element], scope: &Scope) -> Outcome<Vec<Value>> {
    let mut items = Vec::with_capacity(elements.len());
    for element in elements {
        match element {
            Element::One(node) => items.push(evaluate(machine, node, scope)?),
            Element::Spread(node) => {
                let values = evaluate(machine, node, scope)?;
                let values = iterate::collect(machine, &values);
                items.extend(values.map_err(|fault| fault.or_at(node.at))?);
            }
        }
    }
    Ok(items)
}

fn dictionary(machine: &mut Machine, entries: &[Entry], scope: &Scope) -> Outcome<Value> {
    let mut pairs = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            Entry::Pair(name, value) => {
                let name = evaluate(machine, name, scope)?;
                pairs.push((name, evaluate(machine, value, scope)?));
            }
            Entry::Spread(node) => match evaluate(machine, node, scope)?.0 {
                Kind::Dictionary(other) => pairs.extend(other.entries.iter().cloned()),
                kind => {
                    let message = format!("** needs a dictionary, not {}", short(&Value(kind)));
                    return Err(Fault::at(node.at, message));
                }
            },
        }
    }
    machine.dictionary(pairs)
}

fn slice(machine: &mut Machine, parts: &[Option<Node>; 3], scope: &Scope) -> Outcome<Value> {
    let mut values = [Value::NONE, Value::NONE, Value::NONE];
    for (value, part) in values.iter_mut().zip(parts) {
        if let Some(node) = part {
            *value = evaluate(machine, node, scope)?;
            if !matches!(value.0, Kind::None) && value.as_integer().is_none() {
                let message = format!("the slice index {} is not an integer", short(value));
                return Err(Fault::at(node.at, message));
            }
        }
    }
    Ok(Value(Kind::Slice(Rc::new(values))))
}

fn arguments_of(machine: &mut Machine, nodes: &[Argument], scope: &Scope) -> Outcome<Arguments> {
    let mut arguments = Arguments::default();
    for node in nodes {
        match node {
            Argument::Positional(node) => {
                arguments.positional.push(evaluate(machine, node, scope)?);
            }
            Argument::Named(name, node) => {
                arguments
                    .named
                    .push((name.clone(), evaluate(machine, node, scope)?));
            }
            Argument::Spread(node) => {
                let values = evaluate(machine, node, scope)?;
                let values = iterate::collect(machine, &values);
                arguments
                    .positional
                    .extend(values.map_err(|fault| fault.or_at(node.at))?);
            }
            Argument::NamedSpread(node) => {
                let values = evaluate(machine, node, scope)?;
                let Kind::Dictionary(values) = &values.0 else {
                    let message = format!("** needs a dictionary, not {}", short(&values));
                    return Err(Fault::at(node.at, message));
                };
                for (name, value) in &values.entries {
                    let Kind::Text(name) = &name.0 else {
                        let message = format!("** needs texts as keys, not {}", short(name));
                        return Err(Fault::at(node.at, message));
                    };
                    arguments.named.push((name.clone(), value.clone()));
                }
            }
        }
    }
    Ok(arguments)
}

fn lambda_value(machine: &mut Machine, node: &Arc<LambdaNode>, scope: &Scope) -> Outcome<Value> {
    let mut defaults = Vec::with_capacity(node.parameters.len());
    for parameter in &node.parameters {
        defaults.push(match &parameter.default {
            Some(default) => Some(evaluate(machine, default, scope)?),
            None => None,
        });
    }
    machine.allocate(size_of::<Lambda>())?;
    let deepest = defaults.iter().flatten().map(Value::depth).max();
    let depth = checked(deepest.unwrap_or(0).max(scope.depth()) + 1)?;
    Ok(Value(Kind::Lambda(Rc::new(Lambda {
        node: node.clone(),
        scope: scope.clone(),
        defaults,
        depth,
    }))))
}

/// The text of an f-string.
fn formatted(machine: &mut Machine, parts: &[FormattedPart], scope: &Scope) -> Outcome<String> {
    let mut out = String::new();
    for part in parts {
        match part {
            FormattedPart::Text(text) => out += text,
            FormattedPart::Field {
                value,
                conversion,
                specification,
            } => {
                let at = value.at;
                let value = evaluate(machine, value, scope)?;
                let value = match conversion {
                    None => value,
                    Some('r') => machine.text(representation(&value))?,
                    Some('a') => machine.text(ascii(&value))?,
                    Some(_) => machine.text(text(&value))?,
                };
                let specification = formatted(machine, specification, scope)?;
                let field = format_spec::format(machine, &value, &specification);
                out += &field.map_err(|fault| fault.or_at(at))?;
            }
        }
        if out.len() > super::limits::TEXT_BYTES_MAX {
            machine.check_text(out.len())?;
        }
    }
    Ok(out)
}
