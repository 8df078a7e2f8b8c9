//! Calls: functions, classes, methods and lambdas.

use std::rc::Rc;

use super::evaluate::evaluate;
use super::fault::Outcome;
use super::machine::{Arguments, Machine};
use super::printed::short;
use super::value::{Kind, Lambda, Value};
use super::{builtin, item, math_module, os_module};

/// Calls a value.
pub(super) fn call(machine: &mut Machine, function: Value, arguments: Arguments) -> Outcome<Value> {
    machine.steps(1)?;
    match function.0 {
        Kind::Function(name) => {
            if let Some(name) = name.strip_prefix("math.") {
                math_module::call(machine, name, &arguments)
            } else if let Some(name) = name.strip_prefix("os.path.") {
                os_module::call(machine, name, &arguments)
            } else {
                builtin::call(machine, name, arguments)
            }
        }
        Kind::Type(name) => builtin::call(machine, name, arguments),
        Kind::Method(method) => {
            let name = method.name;
            // The last holder of a method gives its receiver away. So the receiver
            // of `'a b'.split().pop()` has no other name.
            let receiver = match Rc::try_unwrap(method) {
                Ok(method) => method.receiver,
                Err(shared) => shared.receiver.clone(),
            };
            item::call_method(machine, receiver, name, arguments)
        }
        Kind::TypeMethod(of, name) => {
            let mut positional = arguments.positional.into_iter();
            let receiver = positional
                .next()
                .ok_or_else(|| format!("{of}.{name} needs a {of} as its first argument"))?;
            if receiver.type_name() != of {
                return Err(format!(
                    "{of}.{name} needs a {of}, not {}, a {}",
                    short(&receiver),
                    receiver.type_name()
                )
                .into());
            }
            let arguments = Arguments {
                positional: positional.collect(),
                named: arguments.named,
            };
            item::call_method(machine, receiver, name, arguments)
        }
        Kind::Lambda(lambda) => call_lambda(machine, &lambda, arguments),
        kind => {
            let value = Value(kind);
            Err(format!(
                "{} is a {}, not a function",
                short(&value),
                value.type_name()
            )
            .into())
        }
    }
}

fn call_lambda(machine: &mut Machine, lambda: &Lambda, arguments: Arguments) -> Outcome<Value> {
    let parameters = &lambda.node.parameters;
    let count = arguments.positional.len();
    if count > parameters.len() && lambda.node.rest.is_none() {
        return Err(format!(
            "the lambda takes {} arguments, not {count}",
            parameters.len()
        )
        .into());
    }
    let mut positional = arguments.positional.into_iter();
    let mut named = arguments.named;
    let mut scope = lambda.scope.clone();
    for (index, parameter) in parameters.iter().enumerate() {
        let by_name = named.iter().position(|(name, _)| *name == parameter.name);
        let by_name = by_name.map(|place| named.remove(place).1);
        let default = || lambda.defaults.get(index).cloned().flatten();
        let value = match (positional.next(), by_name) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "the argument {} of the lambda is given twice",
                    parameter.name
                )
                .into());
            }
            (Some(value), None) | (None, Some(value)) => Some(value),
            (None, None) => default(),
        };
        let value =
            value.ok_or_else(|| format!("the lambda lacks the argument {}", parameter.name))?;
        scope = scope.with(&parameter.name, value)?;
    }
    if let Some((name, _)) = named.first() {
        return Err(format!("the lambda has no argument {name:?}").into());
    }
    if let Some(rest) = &lambda.node.rest {
        let rest_values = machine.tuple(positional.collect())?;
        scope = scope.with(rest, rest_values)?;
    }
    evaluate(machine, &lambda.node.body, &scope)
}
