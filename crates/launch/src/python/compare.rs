//! Comparisons: equality, order, membership.

use std::cmp::Ordering;
use std::rc::Rc;

use super::fault::Outcome;
use super::iterate;
use super::machine::Machine;
use super::number_text::exact_integer;
use super::printed::short;
use super::tree::Comparator;
use super::value::{Kind, Object, Value, ViewKind};

/// Compares two values.
pub(super) fn compare(
    machine: &mut Machine,
    left: &Value,
    comparator: Comparator,
    right: &Value,
) -> Outcome<bool> {
    Ok(match comparator {
        Comparator::Equal => equal(machine, left, right)?,
        Comparator::NotEqual => !equal(machine, left, right)?,
        Comparator::Is => is_same(left, right),
        Comparator::IsNot => !is_same(left, right),
        Comparator::In => contains(machine, right, left)?,
        Comparator::NotIn => !contains(machine, right, left)?,
        Comparator::Less => ordered(machine, left, right, "<", Ordering::is_lt)?,
        Comparator::LessEqual => ordered(machine, left, right, "<=", Ordering::is_le)?,
        Comparator::Greater => ordered(machine, left, right, ">", Ordering::is_gt)?,
        Comparator::GreaterEqual => ordered(machine, left, right, ">=", Ordering::is_ge)?,
    })
}

/// Whether Python's `==` holds.
pub(super) fn equal(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<bool> {
    machine.steps(1)?;
    if let Some(order) = numbers_order(left, right) {
        return Ok(order.is_some_and(Ordering::is_eq));
    }
    Ok(match (&left.0, &right.0) {
        (Kind::None, Kind::None) | (Kind::Ellipsis, Kind::Ellipsis) => true,
        (Kind::Text(left), Kind::Text(right)) => left == right,
        (Kind::Bytes(left), Kind::Bytes(right)) => left == right,
        (Kind::List(left), Kind::List(right)) | (Kind::Tuple(left), Kind::Tuple(right)) => {
            all_equal(machine, &left.items, &right.items)?
        }
        (Kind::Set(left), Kind::Set(right)) => {
            left.length() == right.length() && left.is_within(right)
        }
        (Kind::Dictionary(left), Kind::Dictionary(right)) => {
            if left.length() != right.length() {
                return Ok(false);
            }
            for (name, value) in &left.entries {
                let Some(other) = right.value(name)? else {
                    return Ok(false);
                };
                if !equal(machine, value, other)? {
                    return Ok(false);
                }
            }
            true
        }
        (Kind::Range(left), Kind::Range(right)) => {
            let length = left.length();
            length == right.length()
                && (length == 0 || left.start == right.start)
                && (length < 2 || left.step == right.step)
        }
        (Kind::View(ViewKind::Keys, _), Kind::Set(_) | Kind::View(ViewKind::Keys, _))
        | (Kind::Set(_), Kind::View(ViewKind::Keys, _)) => {
            let left = iterate::collect(machine, left)?;
            let right = iterate::collect(machine, right)?;
            let left = super::dictionary::Set::of(left, true)?;
            let right = super::dictionary::Set::of(right, true)?;
            left.length() == right.length() && left.is_within(&right)
        }
        (Kind::Type(left), Kind::Type(right)) | (Kind::Function(left), Kind::Function(right)) => {
            left == right
        }
        (Kind::Object(left), Kind::Object(right)) => objects_equal(machine, left, right)?,
        // An array of a message compares to a list by its elements.
        (Kind::Object(array), Kind::List(_) | Kind::Tuple(_)) if array.length().is_some() => {
            let left = iterate::collect(machine, left)?;
            let right = iterate::collect(machine, right)?;
            all_equal(machine, &left, &right)?
        }
        (Kind::List(_) | Kind::Tuple(_), Kind::Object(array)) if array.length().is_some() => {
            return equal(machine, right, left);
        }
        _ => is_same(left, right),
    })
}

fn all_equal(machine: &mut Machine, left: &[Value], right: &[Value]) -> Outcome<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right) {
        if !equal(machine, left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn objects_equal(
    machine: &mut Machine,
    left: &Rc<dyn Object>,
    right: &Rc<dyn Object>,
) -> Outcome<bool> {
    if left.type_name() != right.type_name() || left.length() != right.length() {
        return Ok(false);
    }
    machine.deeper(|machine| {
        for index in 0..left.length().unwrap_or(0) {
            let (Some(one), Some(other)) = (left.item(index), right.item(index)) else {
                return Ok(false);
            };
            if !equal(machine, &one, &other)? {
                return Ok(false);
            }
        }
        for name in left.attribute_names() {
            let (Some(one), Some(other)) = (left.attribute(&name), right.attribute(&name)) else {
                return Ok(false);
            };
            if !equal(machine, &one, &other)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

fn is_same(left: &Value, right: &Value) -> bool {
    match (&left.0, &right.0) {
        (Kind::None, Kind::None) | (Kind::Ellipsis, Kind::Ellipsis) => true,
        (Kind::Bool(left), Kind::Bool(right)) => left == right,
        (Kind::Integer(left), Kind::Integer(right)) => left == right,
        (Kind::Double(left), Kind::Double(right)) => left == right,
        (Kind::Text(left), Kind::Text(right)) => left == right,
        (Kind::Bytes(left), Kind::Bytes(right)) => left == right,
        (Kind::Tuple(left), Kind::Tuple(right)) => {
            Rc::ptr_eq(left, right) || (left.items.is_empty() && right.items.is_empty())
        }
        (Kind::List(left), Kind::List(right)) => Rc::ptr_eq(left, right),
        (Kind::Set(left), Kind::Set(right)) => Rc::ptr_eq(left, right),
        (Kind::Dictionary(left), Kind::Dictionary(right)) => Rc::ptr_eq(left, right),
        (Kind::Iterator(left), Kind::Iterator(right)) => Rc::ptr_eq(left, right),
        (Kind::Lambda(left), Kind::Lambda(right)) => Rc::ptr_eq(left, right),
        (Kind::Object(left), Kind::Object(right)) => Rc::ptr_eq(left, right),
        (Kind::Type(left), Kind::Type(right))
        | (Kind::Function(left), Kind::Function(right))
        | (Kind::Module(left), Kind::Module(right)) => left == right,
        (Kind::TypeMethod(of, left), Kind::TypeMethod(other, right)) => {
            of == other && left == right
        }
        _ => false,
    }
}

/// Whether a value is an element, a key or a part of a text.
fn contains(machine: &mut Machine, holder: &Value, value: &Value) -> Outcome<bool> {
    match &holder.0 {
        Kind::Text(text) => match value.as_text() {
            Some(part) => {
                machine.steps(text.len() / 16)?;
                Ok(text.contains(part))
            }
            None => Err(format!(
                "{} in {}: a text holds texts only; str(…) makes one",
                short(value),
                short(holder)
            )
            .into()),
        },
        Kind::Bytes(bytes) => match &value.0 {
            Kind::Bytes(part) => {
                machine.steps(bytes.len())?;
                Ok(part.is_empty() || bytes.windows(part.len()).any(|window| *window == **part))
            }
            _ => Ok(value
                .as_integer()
                .is_some_and(|wanted| bytes.iter().any(|byte| i128::from(*byte) == wanted))),
        },
        Kind::Set(set) => set.contains(value),
        Kind::Dictionary(dictionary) | Kind::View(ViewKind::Keys, dictionary) => {
            Ok(dictionary.value(value)?.is_some())
        }
        Kind::Range(range) if value.as_integer().is_some() => {
            let wanted = value.as_integer().unwrap_or(0);
            let distance = wanted.saturating_sub(range.start);
            let is_between = match range.step > 0 {
                true => (range.start..range.stop).contains(&wanted),
                false => wanted <= range.start && wanted > range.stop,
            };
            Ok(is_between && distance % range.step == 0)
        }
        _ if iterate::is_iterable(holder) => {
            let mut source = iterate::iterator(machine, holder)?;
            while let Some(item) = source.next(machine)? {
                if equal(machine, &item, value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Err(format!(
            "{} in {}: a {} has no elements",
            short(value),
            short(holder),
            holder.type_name()
        )
        .into()),
    }
}

fn ordered(
    machine: &mut Machine,
    left: &Value,
    right: &Value,
    sign: &str,
    holds: fn(Ordering) -> bool,
) -> Outcome<bool> {
    if let (Kind::Set(left), Kind::Set(right)) = (&left.0, &right.0) {
        let (fewer, more) = match sign.starts_with('<') {
            true => (left, right),
            false => (right, left),
        };
        let is_strict = sign.len() == 1;
        return Ok(fewer.is_within(more) && !(is_strict && fewer.length() == more.length()));
    }
    // None: a number that is no number is in no order.
    Ok(order(machine, left, right, sign)?.is_some_and(holds))
}

/// The order of two values, for `sorted`, `min` and `max`.
pub(super) fn is_less(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<bool> {
    compare(machine, left, Comparator::Less, right)
}

fn order(
    machine: &mut Machine,
    left: &Value,
    right: &Value,
    sign: &str,
) -> Outcome<Option<Ordering>> {
    machine.steps(1)?;
    if let Some(order) = numbers_order(left, right) {
        return Ok(order);
    }
    match (&left.0, &right.0) {
        (Kind::Text(left), Kind::Text(right)) => Ok(Some(left.cmp(right))),
        (Kind::Bytes(left), Kind::Bytes(right)) => Ok(Some(left.cmp(right))),
        (Kind::List(left), Kind::List(right)) | (Kind::Tuple(left), Kind::Tuple(right)) => {
            for (one, other) in left.items.iter().zip(&right.items) {
                if !equal(machine, one, other)? {
                    return order(machine, one, other, sign);
                }
            }
            Ok(Some(left.items.len().cmp(&right.items.len())))
        }
        _ => Err(format!(
            "{} {sign} {}: a {} and a {} have no order",
            short(left),
            short(right),
            left.type_name(),
            right.type_name()
        )
        .into()),
    }
}

/// The order of two numbers; none if they are no numbers. The inner value is none
/// if one of them is "not a number". Integers compare exactly.
fn numbers_order(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    let whole = |value: &Value| match value.0 {
        Kind::Double(double) => exact_integer(double),
        _ => value.as_integer(),
    };
    let (one, other) = (left.as_double()?, right.as_double()?);
    Some(match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => one.partial_cmp(&other),
    })
}
