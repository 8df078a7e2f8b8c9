//! Arithmetic: operators on numbers, and those that texts, lists and sets share.

use super::fault::Outcome;
use super::iterate;
use super::machine::Machine;
use super::printed::short;
use super::set_methods::combine;
use super::tree::{BinaryOperator, UnaryOperator};
use super::value::{Kind, Value, ViewKind};

pub(super) fn unary(operator: UnaryOperator, value: &Value) -> Outcome<Value> {
    if operator == UnaryOperator::Not {
        return Ok((!value.truth()).into());
    }
    if let (UnaryOperator::Plus | UnaryOperator::Minus, Kind::Double(double)) = (operator, &value.0)
    {
        let is_minus = operator == UnaryOperator::Minus;
        return Ok(if is_minus { -double } else { *double }.into());
    }
    let sign = match operator {
        UnaryOperator::Plus => "+",
        UnaryOperator::Minus => "-",
        UnaryOperator::Invert | UnaryOperator::Not => "~",
    };
    let integer = value.as_integer().ok_or_else(|| {
        format!(
            "{sign}{}: a {} is not a number",
            short(value),
            value.type_name()
        )
    })?;
    let result = match operator {
        UnaryOperator::Minus => integer.checked_neg(),
        UnaryOperator::Invert => Some(!integer),
        _ => Some(integer),
    };
    result
        .map(Value::from)
        .ok_or_else(|| format!("{sign}{integer} does not fit into 127 bits").into())
}

/// `left operator right`.
pub(super) fn binary(
    machine: &mut Machine,
    left: &Value,
    operator: BinaryOperator,
    right: &Value,
) -> Outcome<Value> {
    if let (Some(one), Some(other)) = (left.as_integer(), right.as_integer()) {
        let both_bool = matches!((&left.0, &right.0), (Kind::Bool(_), Kind::Bool(_)));
        let value = integers(one, operator, other)?;
        let is_bitwise = matches!(
            operator,
            BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor
        );
        return Ok(match value.0 {
            Kind::Integer(value) if both_bool && is_bitwise => (value != 0).into(),
            kind => Value(kind),
        });
    }
    if let (Some(one), Some(other)) = (left.as_double(), right.as_double()) {
        return doubles(one, operator, other);
    }
    match (operator, &left.0, &right.0) {
        (BinaryOperator::Add, ..) => {
            if let Some(sum) = concatenated(machine, left, right)? {
                return Ok(sum);
            }
        }
        (BinaryOperator::Multiply, ..) => {
            if let Some(count) = right.as_integer()
                && let Some(value) = repeated(machine, left, count)?
            {
                return Ok(value);
            }
            if let Some(count) = left.as_integer()
                && let Some(value) = repeated(machine, right, count)?
            {
                return Ok(value);
            }
        }
        (BinaryOperator::Modulo, Kind::Text(format), _) => {
            let text = super::percent_format::format(machine, format, right)?;
            return machine.text(text);
        }
        (BinaryOperator::BitOr, Kind::Dictionary(one), Kind::Dictionary(other)) => {
            let entries = one.entries.iter().chain(&other.entries);
            return machine.dictionary(entries.cloned().collect());
        }
        (
            BinaryOperator::BitOr
            | BinaryOperator::BitAnd
            | BinaryOperator::BitXor
            | BinaryOperator::Subtract,
            Kind::Set(_) | Kind::View(ViewKind::Keys | ViewKind::Items, _),
            Kind::Set(_) | Kind::View(ViewKind::Keys | ViewKind::Items, _),
        ) => {
            let is_frozen = matches!(&left.0, Kind::Set(set) if set.is_frozen);
            let one = iterate::collect(machine, left)?;
            let other = iterate::collect(machine, right)?;
            return combine(machine, one, operator, other, is_frozen);
        }
        _ => {}
    }
    let hint = match (operator, &left.0, &right.0) {
        (BinaryOperator::Add, Kind::Text(_), _) | (BinaryOperator::Add, _, Kind::Text(_)) => {
            "; str(…) makes a text, int(…) or float(…) a number"
        }
        _ => "",
    };
    Err(format!(
        "{} {} {}: not possible with a {} and a {}{hint}",
        short(left),
        operator.sign(),
        short(right),
        left.type_name(),
        right.type_name()
    )
    .into())
}

fn concatenated(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Option<Value>> {
    Ok(Some(match (&left.0, &right.0) {
        (Kind::Text(one), Kind::Text(other)) => {
            machine.check_text(one.len() + other.len())?;
            format!("{one}{other}").into()
        }
        (Kind::Bytes(one), Kind::Bytes(other)) => machine.bytes([&**one, &**other].concat())?,
        (Kind::List(one), Kind::List(other)) => {
            machine.steps(one.items.len() + other.items.len())?;
            machine.list([&*one.items, &*other.items].concat())?
        }
        (Kind::Tuple(one), Kind::Tuple(other)) => {
            machine.steps(one.items.len() + other.items.len())?;
            machine.tuple([&*one.items, &*other.items].concat())?
        }
        _ => return Ok(None),
    }))
}

fn repeated(machine: &mut Machine, value: &Value, count: i128) -> Outcome<Option<Value>> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    let mut size = |length: usize, bytes: usize| -> Outcome<()> {
        let total = length.saturating_mul(count);
        machine.steps(total / 64)?;
        machine.allocate(total.saturating_mul(bytes))
    };
    Ok(Some(match &value.0 {
        Kind::Text(text) => {
            machine.check_text(text.len().saturating_mul(count))?;
            text.repeat(count).into()
        }
        Kind::Bytes(bytes) => {
            machine.check_text(bytes.len().saturating_mul(count))?;
            Value::bytes(&bytes.repeat(count))
        }
        Kind::List(sequence) => {
            size(sequence.items.len(), size_of::<Value>())?;
            machine.list(repeated_items(&sequence.items, count))?
        }
        Kind::Tuple(sequence) => {
            size(sequence.items.len(), size_of::<Value>())?;
            machine.tuple(repeated_items(&sequence.items, count))?
        }
        _ => return Ok(None),
    }))
}

fn repeated_items(items: &[Value], count: usize) -> Vec<Value> {
    let total = items.len().saturating_mul(count);
    items.iter().cycle().take(total).cloned().collect()
}

fn integers(left: i128, operator: BinaryOperator, right: i128) -> Outcome<Value> {
    let divides = matches!(
        operator,
        BinaryOperator::Divide | BinaryOperator::FloorDivide | BinaryOperator::Modulo
    );
    let sign = operator.sign();
    if divides && right == 0 {
        return Err(format!("{left} {sign} 0: division by zero").into());
    }
    let result = match operator {
        BinaryOperator::Add => left.checked_add(right),
        BinaryOperator::Subtract => left.checked_sub(right),
        BinaryOperator::Multiply => left.checked_mul(right),
        BinaryOperator::Divide => return Ok((left as f64 / right as f64).into()),
        BinaryOperator::FloorDivide => floor_divided(left, right),
        BinaryOperator::Modulo => floor_modulo(left, right),
        BinaryOperator::Power if right < 0 => {
            return doubles(left as f64, operator, right as f64);
        }
        BinaryOperator::Power => match left {
            0 | 1 => Some(if right == 0 { 1 } else { left }),
            -1 => Some(if right % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(right)
                .ok()
                .and_then(|exponent| left.checked_pow(exponent)),
        },
        BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight if right < 0 => {
            return Err(format!("{left} {sign} {right}: the number of bits is negative").into());
        }
        BinaryOperator::ShiftLeft => match u32::try_from(right) {
            _ if left == 0 => Some(0),
            Ok(bits) if bits < 127 => left.checked_mul(1i128 << bits),
            _ => None,
        },
        BinaryOperator::ShiftRight => Some(left >> right.min(127)),
        BinaryOperator::BitAnd => Some(left & right),
        BinaryOperator::BitOr => Some(left | right),
        BinaryOperator::BitXor => Some(left ^ right),
    };
    result
        .map(Value::from)
        .ok_or_else(|| format!("{left} {sign} {right} does not fit into 127 bits").into())
}

/// Division that rounds down, as Python's `//`.
pub(super) fn floor_divided(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    let rest = left.checked_rem(right)?;
    Some(quotient - i128::from(rest != 0 && (rest < 0) != (right < 0)))
}

/// The rest of [`floor_divided`], with the sign of the divisor.
pub(super) fn floor_modulo(left: i128, right: i128) -> Option<i128> {
    let rest = left.checked_rem(right)?;
    let is_other_sign = rest != 0 && (rest < 0) != (right < 0);
    Some(if is_other_sign { rest + right } else { rest })
}

fn doubles(left: f64, operator: BinaryOperator, right: f64) -> Outcome<Value> {
    use super::number_text::double;
    let sign = operator.sign();
    let shown = || format!("{} {sign} {}", double(left), double(right));
    let divides = matches!(
        operator,
        BinaryOperator::Divide | BinaryOperator::FloorDivide | BinaryOperator::Modulo
    );
    if divides && right == 0.0 {
        return Err(format!("{}: division by zero", shown()).into());
    }
    let modulo = || {
        let rest = left % right;
        let is_other_sign = rest != 0.0 && (rest < 0.0) != (right < 0.0);
        if is_other_sign { rest + right } else { rest }
    };
    let value = match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide => left / right,
        BinaryOperator::FloorDivide => ((left - modulo()) / right).round(),
        BinaryOperator::Modulo => modulo(),
        BinaryOperator::Power => {
            if left == 0.0 && right < 0.0 {
                return Err(format!("{}: division by zero", shown()).into());
            }
            if left < 0.0 && right.fract() != 0.0 && right.is_finite() {
                return Err(format!("{}: the result is a complex number", shown()).into());
            }
            let power = left.powf(right);
            if power.is_infinite() && left.is_finite() && right.is_finite() {
                return Err(format!("{}: the result is too large", shown()).into());
            }
            power
        }
        _ => return Err(format!("{}: {sign} is for integers", shown()).into()),
    };
    Ok(value.into())
}
