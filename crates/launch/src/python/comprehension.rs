//! Comprehensions and generators: loops within an expression.

use std::sync::Arc;

use super::evaluate::evaluate as node_value;
use super::fault::{Fault, Outcome};
use super::iterate;
use super::machine::Machine;
use super::printed::short;
use super::tree::{ComprehensionKind, ComprehensionNode, Loop, Target};
use super::value::{Scope, Value, ValueIterator};

/// The value of a comprehension. A generator runs later, when it is read.
pub(super) fn evaluate(
    machine: &mut Machine,
    kind: ComprehensionKind,
    node: &Arc<ComprehensionNode>,
    scope: &Scope,
) -> Outcome<Value> {
    let mut generator = Generator {
        node: node.clone(),
        open: Vec::new(),
        outer: scope.clone(),
    };
    // The first values are computed at once, as in Python.
    let depth = generator.start(machine)?;
    match kind {
        ComprehensionKind::Generator => {
            machine.iterator("generator", depth.max(scope.depth()), Box::new(generator))
        }
        ComprehensionKind::List => {
            let items = iterate::drain(machine, &mut generator)?;
            machine.list(items)
        }
        ComprehensionKind::Set => {
            let items = iterate::drain(machine, &mut generator)?;
            machine.set(items, false)
        }
        ComprehensionKind::Dictionary => {
            let mut entries = Vec::new();
            while let Some(inner) = generator.next_scope(machine)? {
                machine.allocate(2 * size_of::<Value>())?;
                let name = node_value(machine, &node.element, &inner)?;
                let value = match &node.value {
                    Some(value) => node_value(machine, value, &inner)?,
                    None => Value::NONE,
                };
                entries.push((name, value));
            }
            machine.dictionary(entries)
        }
    }
}

/// Loops that are suspended between two elements.
struct Generator {
    node: Arc<ComprehensionNode>,
    /// The iterators of the loops that run, outermost first, each with its scope.
    open: Vec<(Box<dyn ValueIterator>, Scope)>,
    outer: Scope,
}

impl Generator {
    fn start(&mut self, machine: &mut Machine) -> Outcome<u32> {
        match self.node.clone().loops.first() {
            Some(first) => {
                let scope = self.outer.clone();
                self.enter(machine, first, scope)
            }
            None => Ok(0),
        }
    }

    /// Starts a loop. Returns the depth of its values.
    fn enter(&mut self, machine: &mut Machine, inner: &Loop, scope: Scope) -> Outcome<u32> {
        let values = node_value(machine, &inner.values, &scope)?;
        let source = iterate::iterator(machine, &values);
        let source = source.map_err(|fault| fault.or_at(inner.values.at))?;
        self.open.push((source, scope));
        Ok(values.depth())
    }

    /// The scope of the next element.
    fn next_scope(&mut self, machine: &mut Machine) -> Outcome<Option<Scope>> {
        let node = self.node.clone();
        'values: while let Some((source, scope)) = self.open.last_mut() {
            machine.steps(1)?;
            let Some(value) = source.next(machine)? else {
                self.open.pop();
                continue;
            };
            let scope = scope.clone();
            let level = self.open.len();
            let Some(current) = node.loops.get(level - 1) else {
                return Ok(None);
            };
            let bound = bind(machine, &scope, &current.target, value);
            let scope = bound.map_err(|fault| fault.or_at(current.values.at))?;
            for condition in &current.conditions {
                if !node_value(machine, condition, &scope)?.truth() {
                    continue 'values;
                }
            }
            match node.loops.get(level) {
                Some(inner) => {
                    self.enter(machine, inner, scope)?;
                }
                None => return Ok(Some(scope)),
            }
        }
        Ok(None)
    }
}

impl ValueIterator for Generator {
    fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Value>> {
        match self.next_scope(machine)? {
            Some(scope) => node_value(machine, &self.node.element, &scope).map(Some),
            None => Ok(None),
        }
    }
}

/// The scope with the variables of a loop.
fn bind(machine: &mut Machine, scope: &Scope, target: &Target, value: Value) -> Outcome<Scope> {
    match target {
        Target::Name(name) => scope.with(name, value),
        Target::Several(targets) => {
            let items = iterate::collect(machine, &value)?;
            if items.len() != targets.len() {
                return Err(Fault::from(format!(
                    "{} has {} elements for {} loop variables",
                    short(&value),
                    items.len(),
                    targets.len()
                )));
            }
            let mut scope = scope.clone();
            for (target, item) in targets.iter().zip(items) {
                scope = bind(machine, &scope, target, item)?;
            }
            Ok(scope)
        }
    }
}
