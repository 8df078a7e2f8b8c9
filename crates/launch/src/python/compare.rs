//! Comparisons: equality, order, membership.

use std::cmp::Ordering;

use super::cost::Cost;
use super::fault::{Fault, Outcome};
use super::printed::short;
use super::tree::Comparator;
use super::value::{Kind, Value};

/// Compares two values.
pub(super) fn compare(
    cost: &mut Cost,
    left: &Value,
    comparator: Comparator,
    right: &Value,
) -> Outcome<bool> {
    // None: a number that is no number is in no order.
    let mut ordered = |sign: &str, holds: fn(Ordering) -> bool| {
        Ok(order(cost, left, right, sign)?.is_some_and(holds))
    };
    match comparator {
        Comparator::Less => ordered("<", Ordering::is_lt),
        Comparator::LessEqual => ordered("<=", Ordering::is_le),
        Comparator::Greater => ordered(">", Ordering::is_gt),
        Comparator::GreaterEqual => ordered(">=", Ordering::is_ge),
        Comparator::Equal => equal(cost, left, right),
        Comparator::NotEqual => Ok(!equal(cost, left, right)?),
        Comparator::In => contains(cost, right, left),
        Comparator::NotIn => Ok(!contains(cost, right, left)?),
        Comparator::Is => is_same(left, right),
        Comparator::IsNot => Ok(!is_same(left, right)?),
    }
}

/// Whether Python's `==` holds.
fn equal(cost: &mut Cost, left: &Value, right: &Value) -> Outcome<bool> {
    cost.add(1)?;
    if let Some(order) = numbers_order(left, right) {
        return Ok(order.is_some_and(Ordering::is_eq));
    }
    Ok(match (&left.0, &right.0) {
        (Kind::None, Kind::None) => true,
        (Kind::Text(left), Kind::Text(right)) => {
            cost.add(left.len() / 16)?;
            left == right
        }
        (Kind::Bytes(left), Kind::Bytes(right)) => {
            cost.add(left.len() / 16)?;
            left == right
        }
        (Kind::List(left), Kind::List(right)) | (Kind::Tuple(left), Kind::Tuple(right)) => {
            all_equal(cost, left, right)?
        }
        // An array of a message compares to a list by its elements.
        (Kind::Object(array), Kind::List(_) | Kind::Tuple(_) | Kind::Object(_))
        | (Kind::List(_) | Kind::Tuple(_), Kind::Object(array))
            if array.length().is_some() =>
        {
            let (Some(one), Some(other)) = (left.length(), right.length()) else {
                return Ok(false);
            };
            cost.add_items(one.saturating_add(other))?;
            all_equal(cost, &left.elements(0..one), &right.elements(0..other))?
        }
        (Kind::Object(_), Kind::Object(_)) => {
            return Err(Fault::needs_python("the comparison of two messages"));
        }
        _ => false,
    })
}

fn all_equal(cost: &mut Cost, left: &[Value], right: &[Value]) -> Outcome<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right) {
        if !equal_elements(cost, left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Python takes an element for equal to itself, even `nan`.
fn equal_elements(cost: &mut Cost, left: &Value, right: &Value) -> Outcome<bool> {
    let is_nan = |value: &Value| matches!(value.0, Kind::Double(value) if value.is_nan());
    match is_nan(left) && is_nan(right) {
        true => Err(Fault::needs_python("the comparison of nan with an element")),
        false => equal(cost, left, right),
    }
}

/// `is`, where it does not depend on how Python stores values.
fn is_same(left: &Value, right: &Value) -> Outcome<bool> {
    match (&left.0, &right.0) {
        (Kind::None, Kind::None) => Ok(true),
        (Kind::Bool(left), Kind::Bool(right)) => Ok(left == right),
        (Kind::None | Kind::Bool(_), _) | (_, Kind::None | Kind::Bool(_)) => Ok(false),
        _ => Err(Fault::needs_python("the operator is of such values")),
    }
}

/// Whether a value is an element, or a part of a text.
fn contains(cost: &mut Cost, holder: &Value, value: &Value) -> Outcome<bool> {
    if let Kind::Text(text) = &holder.0 {
        cost.add(text.len())?;
        return value
            .as_text()
            .map(|part| text.contains(part))
            .ok_or_else(|| {
                let (value, holder) = (short(value), short(holder));
                format!("{value} in {holder}: a text holds texts only; str(…) makes one").into()
            });
    }
    if let (Kind::Bytes(bytes), Kind::Bytes(part)) = (&holder.0, &value.0) {
        cost.add(bytes.len().saturating_mul(part.len().max(1)))?;
        return Ok(part.is_empty() || bytes.windows(part.len()).any(|window| *window == **part));
    }
    if let (Kind::Bytes(_), None | Some(..0 | 256..)) = (&holder.0, value.as_integer()) {
        return Err(Fault::needs_python("the search for no byte in bytes"));
    }
    let Some(length) = holder.length() else {
        let of = holder.type_name();
        let (value, holder) = (short(value), short(holder));
        return Err(format!("{value} in {holder}: a {of} has no elements").into());
    };
    cost.add_items(length)?;
    for item in holder.elements(0..length) {
        if equal_elements(cost, &item, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether Python's `<` holds, for `min` and `max`.
pub(super) fn is_less(cost: &mut Cost, left: &Value, right: &Value) -> Outcome<bool> {
    compare(cost, left, Comparator::Less, right)
}

fn order(cost: &mut Cost, left: &Value, right: &Value, sign: &str) -> Outcome<Option<Ordering>> {
    cost.add(1)?;
    if let Some(order) = numbers_order(left, right) {
        return Ok(order);
    }
    match (&left.0, &right.0) {
        (Kind::Text(left), Kind::Text(right)) => Ok(Some(left.cmp(right))),
        (Kind::Bytes(left), Kind::Bytes(right)) => Ok(Some(left.cmp(right))),
        (Kind::List(left), Kind::List(right)) | (Kind::Tuple(left), Kind::Tuple(right)) => {
            for (one, other) in left.iter().zip(&**right) {
                if !equal_elements(cost, one, other)? {
                    return order(cost, one, other, sign);
                }
            }
            Ok(Some(left.len().cmp(&right.len())))
        }
        (Kind::Object(_), _) | (_, Kind::Object(_)) => {
            Err(Fault::needs_python("the order of arrays and messages"))
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

/// The integer that a number is exactly, if it is one.
pub(super) fn exact_integer(value: f64) -> Option<i128> {
    // 2^126: safely below the largest integer.
    let is_whole = value.trunc() == value && value.abs() < 8.507_059_173_023_462e37;
    is_whole.then_some(value as i128)
}
