//! Machine of an evaluation: what it may still spend, and how a function calls back.

use std::rc::Rc;
use std::sync::Arc;

use super::dictionary::{Dictionary, Set};
use super::fault::Outcome;
use super::limits::{EVALUATION_DEPTH_MAX, MEMORY_BYTES_MAX, STEPS_MAX, TEXT_BYTES_MAX};
use super::value::{Kind, Sequence, SharedIterator, Value, ValueIterator, checked, depth_of};

/// Arguments of a call.
#[derive(Default)]
pub(super) struct Arguments {
    pub positional: Vec<Value>,
    pub named: Vec<(Arc<str>, Value)>,
}

/// Calls a value; `call.rs` has the implementation. It is a pointer, so that
/// functions that call back, as `sorted`, lie below it.
pub(super) type CallFunction = fn(&mut Machine, Value, Arguments) -> Outcome<Value>;

pub(super) struct Machine {
    steps_left: u64,
    bytes_left: usize,
    depth: u32,
    call: CallFunction,
}

impl Machine {
    pub fn new(call: CallFunction) -> Self {
        Self {
            steps_left: STEPS_MAX,
            bytes_left: MEMORY_BYTES_MAX,
            depth: 0,
            call,
        }
    }

    /// Counts steps.
    pub fn steps(&mut self, count: usize) -> Outcome<()> {
        let left = self.steps_left.checked_sub(count as u64);
        self.steps_left = left.ok_or_else(|| {
            format!("the evaluation takes more than {STEPS_MAX} steps; shorten its loops")
        })?;
        Ok(())
    }

    /// Counts memory.
    pub fn allocate(&mut self, bytes: usize) -> Outcome<()> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or_else(|| {
            let mebibytes = MEMORY_BYTES_MAX >> 20;
            format!("the evaluation takes more than {mebibytes} MiB of memory; use smaller values")
        })?;
        Ok(())
    }

    /// Evaluates something one level deeper.
    pub fn deeper<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= EVALUATION_DEPTH_MAX {
            return Err(format!(
                "the evaluation is nested more than {EVALUATION_DEPTH_MAX} deep; check for a function that calls itself"
            )
            .into());
        }
        self.depth += 1;
        let outcome = evaluate(self);
        self.depth -= 1;
        outcome
    }

    pub fn call(&mut self, function: Value, arguments: Arguments) -> Outcome<Value> {
        let call = self.call;
        self.deeper(|machine| call(machine, function, arguments))
    }

    /// Calls a function with one argument.
    pub fn call_with(&mut self, function: &Value, argument: Value) -> Outcome<Value> {
        self.call(
            function.clone(),
            Arguments {
                positional: vec![argument],
                named: Vec::new(),
            },
        )
    }

    /// A text, within the limits.
    pub fn text(&mut self, text: impl Into<String>) -> Outcome<Value> {
        let text = text.into();
        self.check_text(text.len())?;
        Ok(text.into())
    }

    /// Counts a text before it is made.
    pub fn check_text(&mut self, bytes: usize) -> Outcome<()> {
        if bytes > TEXT_BYTES_MAX {
            let mebibytes = TEXT_BYTES_MAX >> 20;
            return Err(format!("a text is longer than {mebibytes} MiB").into());
        }
        self.allocate(bytes + 16)
    }

    pub fn bytes(&mut self, bytes: Vec<u8>) -> Outcome<Value> {
        self.check_text(bytes.len())?;
        Ok(Value::bytes(&bytes))
    }

    pub fn list(&mut self, items: Vec<Value>) -> Outcome<Value> {
        Ok(Value(Kind::List(self.sequence(items)?)))
    }

    pub fn tuple(&mut self, items: Vec<Value>) -> Outcome<Value> {
        Ok(Value(Kind::Tuple(self.sequence(items)?)))
    }

    fn sequence(&mut self, items: Vec<Value>) -> Outcome<Rc<Sequence>> {
        self.allocate((items.len() + 2) * size_of::<Value>())?;
        let depth = checked(depth_of(&items))?;
        Ok(Rc::new(Sequence { items, depth }))
    }

    pub fn set(&mut self, items: Vec<Value>, is_frozen: bool) -> Outcome<Value> {
        self.allocate((items.len() + 2) * 4 * size_of::<Value>())?;
        let set = Set::of(items, is_frozen)?;
        checked(set.depth)?;
        Ok(Value(Kind::Set(Rc::new(set))))
    }

    pub fn dictionary(&mut self, entries: Vec<(Value, Value)>) -> Outcome<Value> {
        self.allocate((entries.len() + 2) * 6 * size_of::<Value>())?;
        let dictionary = Dictionary::of(entries)?;
        checked(dictionary.depth)?;
        Ok(Value(Kind::Dictionary(Rc::new(dictionary))))
    }

    /// An iterator as a value; `depth` is that of the values that it reads from.
    pub fn iterator(
        &mut self,
        name: &'static str,
        depth: u32,
        inner: Box<dyn ValueIterator>,
    ) -> Outcome<Value> {
        self.allocate(16 * size_of::<Value>())?;
        let depth = checked(depth + 1)?;
        let inner = inner.into();
        Ok(Value(Kind::Iterator(Rc::new(SharedIterator {
            name,
            depth,
            inner,
        }))))
    }
}
