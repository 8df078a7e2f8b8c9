//! Arguments of a built-in function, checked by number and type.

use super::fault::Outcome;
use super::machine::Arguments;
use super::printed::short;
use super::value::Value;

/// Arguments of a built-in function.
pub(super) struct Given {
    pub name: &'static str,
    pub arguments: Arguments,
}

impl Given {
    pub fn count(&self) -> usize {
        self.arguments.positional.len()
    }

    /// Refuses another number of positional arguments.
    pub fn between(&self, least: usize, most: usize) -> Outcome<()> {
        let (name, count) = (self.name, self.count());
        if let Some((named, _)) = self.arguments.named.first() {
            return Err(format!("{name} has no argument {named:?}").into());
        }
        if (least..=most).contains(&count) {
            return Ok(());
        }
        let wanted = match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        Err(format!("{name} takes {wanted} arguments, not {count}").into())
    }

    /// Takes an argument that is given by name.
    pub fn named(&mut self, name: &str) -> Option<Value> {
        let named = &mut self.arguments.named;
        let place = named.iter().position(|(known, _)| **known == *name)?;
        Some(named.remove(place).1)
    }

    pub fn value(&self, index: usize) -> Outcome<&Value> {
        let value = self.arguments.positional.get(index);
        value.ok_or_else(|| format!("{} needs {} arguments", self.name, index + 1).into())
    }

    pub fn integer(&self, index: usize) -> Outcome<i128> {
        let value = self.value(index)?;
        value.as_integer().ok_or_else(|| {
            format!(
                "{} needs an integer, not {}, a {}",
                self.name,
                short(value),
                value.type_name()
            )
            .into()
        })
    }
}
