//! Arithmetic: operators on numbers, and those that texts and lists share.

use super::cost::Cost;
use super::fault::{Fault, Outcome};
use super::printed::{double, short};
use super::token::LARGE_INTEGER;
use super::tree::BinaryOperator::{self, *};
use super::value::{Kind, Value};

/// Integers up to here are exact as doubles.
const EXACT_MAX: u128 = 1 << 53;

/// `+value`, `-value`, `~value`
pub(super) fn unary(sign: char, value: &Value) -> Outcome<Value> {
    match (sign, &value.0) {
        ('-', Kind::Double(double)) => return Ok((-double).into()),
        ('+', Kind::Double(double)) => return Ok((*double).into()),
        _ => {}
    }
    let Some(integer) = value.as_integer() else {
        let of = value.type_name();
        return Err(format!("{sign}{}: a {of} is not a number", short(value)).into());
    };
    let result = match sign {
        '-' => integer.checked_neg(),
        '~' => Some(!integer),
        _ => Some(integer),
    };
    whole(result)
}

/// An integer that may be too large.
pub(super) fn whole(value: Option<i128>) -> Outcome<Value> {
    let value = value.map(Value::from);
    value.ok_or_else(|| Fault::needs_python(LARGE_INTEGER))
}

/// `left operator right`.
pub(super) fn binary(
    cost: &mut Cost,
    left: &Value,
    operator: BinaryOperator,
    right: &Value,
) -> Outcome<Value> {
    if let (Some(one), Some(other)) = (left.as_integer(), right.as_integer()) {
        return Ok(match (&left.0, operator, &right.0) {
            (Kind::Bool(one), BitAnd, Kind::Bool(other)) => (one & other).into(),
            (Kind::Bool(one), BitOr, Kind::Bool(other)) => (one | other).into(),
            (Kind::Bool(one), BitXor, Kind::Bool(other)) => (one ^ other).into(),
            _ => integers(one, operator, other)?,
        });
    }
    if let (Some(one), Some(other)) = (left.as_double(), right.as_double()) {
        return doubles(one, operator, other);
    }
    match (operator, &left.0, &right.0) {
        (Add, Kind::Text(one), Kind::Text(other)) => {
            cost.add_text(one.len() + other.len())?;
            return Ok(format!("{one}{other}").into());
        }
        (Add, Kind::Bytes(one), Kind::Bytes(other)) => {
            cost.add_text(one.len() + other.len())?;
            return Ok(Value::bytes(&[&**one, &**other].concat()));
        }
        (Add, Kind::List(one), Kind::List(other)) => {
            return cost.list([&**one, &**other].concat());
        }
        (Add, Kind::Tuple(one), Kind::Tuple(other)) => {
            cost.add_items(one.len() + other.len())?;
            return Ok(Value(Kind::Tuple([&**one, &**other].concat().into())));
        }
        (Multiply, ..) => {
            let counted = right.as_integer().map(|count| (left, count));
            let counted = counted.or_else(|| Some((right, left.as_integer()?)));
            let repeated = counted.map(|(value, count)| repeated(cost, value, count));
            if let Some(value) = repeated.transpose()?.flatten() {
                return Ok(value);
            }
        }
        (Modulo, Kind::Text(_) | Kind::Bytes(_), _) => {
            return Err(Fault::needs_python("the format operator % of texts"));
        }
        _ => {}
    }
    if matches!(
        (&left.0, &right.0),
        (Kind::Object(_), _) | (_, Kind::Object(_))
    ) {
        return Err(Fault::needs_python(format!(
            "the operator {} of an array or a message",
            operator.sign()
        )));
    }
    let hint = match (operator, &left.0, &right.0) {
        (Add, Kind::Text(_), _) | (Add, _, Kind::Text(_)) => {
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

fn repeated(cost: &mut Cost, value: &Value, count: i128) -> Outcome<Option<Value>> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    let mut items = |items: &[Value]| -> Outcome<Vec<Value>> {
        let total = items.len().saturating_mul(count);
        cost.add_items(total)?;
        Ok(items.iter().cycle().take(total).cloned().collect())
    };
    Ok(Some(match &value.0 {
        Kind::List(list) => Value(Kind::List(items(list)?.into())),
        Kind::Tuple(tuple) => Value(Kind::Tuple(items(tuple)?.into())),
        Kind::Text(text) => {
            cost.add_text(text.len().saturating_mul(count))?;
            text.repeat(count).into()
        }
        Kind::Bytes(bytes) => {
            cost.add_text(bytes.len().saturating_mul(count))?;
            Value::bytes(&bytes.repeat(count))
        }
        _ => return Ok(None),
    }))
}

fn integers(left: i128, operator: BinaryOperator, right: i128) -> Outcome<Value> {
    let sign = operator.sign();
    if matches!(operator, Divide | FloorDivide | Modulo) && right == 0 {
        return Err(format!("{left} {sign} 0: division by zero").into());
    }
    if matches!(operator, ShiftLeft | ShiftRight) && right < 0 {
        return Err(format!("{left} {sign} {right}: the number of bits is negative").into());
    }
    whole(match operator {
        Add => left.checked_add(right),
        Subtract => left.checked_sub(right),
        Multiply => left.checked_mul(right),
        Divide => {
            if left.unsigned_abs().max(right.unsigned_abs()) > EXACT_MAX {
                return Err(Fault::needs_python("the quotient of large integers"));
            }
            return Ok((left as f64 / right as f64).into());
        }
        FloorDivide => left.checked_div(right).map(|quotient| {
            let rest = left % right;
            quotient - i128::from(rest != 0 && (rest < 0) != (right < 0))
        }),
        Modulo => left.checked_rem(right).map(|rest| {
            let is_other_sign = rest != 0 && (rest < 0) != (right < 0);
            if is_other_sign { rest + right } else { rest }
        }),
        Power if right < 0 => return doubles(left as f64, operator, right as f64),
        Power => match left {
            0 | 1 => Some(if right == 0 { 1 } else { left }),
            -1 => Some(if right % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(right)
                .ok()
                .and_then(|exponent| left.checked_pow(exponent)),
        },
        ShiftLeft if left == 0 => Some(0),
        ShiftLeft if right > 126 => None,
        ShiftLeft => left.checked_mul(1 << right),
        ShiftRight => Some(left >> right.min(127)),
        BitAnd => Some(left & right),
        BitOr => Some(left | right),
        BitXor => Some(left ^ right),
    })
}

fn doubles(left: f64, operator: BinaryOperator, right: f64) -> Outcome<Value> {
    let sign = operator.sign();
    let wrong = |reason: &str| {
        let shown = format!("{} {sign} {}", double(left), double(right));
        Err(format!("{shown}: {reason}").into())
    };
    if matches!(operator, Divide | FloorDivide | Modulo) && right == 0.0 {
        return wrong("division by zero");
    }
    let value = match operator {
        Add => left + right,
        Subtract => left - right,
        Multiply => left * right,
        Divide => left / right,
        FloorDivide => floor_divided(left, right).0,
        Modulo => floor_divided(left, right).1,
        Power => {
            if left == 0.0 && right < 0.0 {
                return wrong("division by zero");
            }
            if left < 0.0 && left.is_finite() && right.is_finite() && right.fract() != 0.0 {
                return Err(Fault::needs_python("a complex number"));
            }
            let power = left.powf(right);
            if power.is_infinite() && left.is_finite() && right.is_finite() {
                return wrong("the result is too large");
            }
            power
        }
        _ => return wrong(&format!("{sign} is for integers")),
    };
    Ok(value.into())
}

/// Quotient that is rounded down, and the rest with the divisor's sign.
fn floor_divided(left: f64, right: f64) -> (f64, f64) {
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest == 0.0 {
        rest = 0f64.copysign(right);
    } else if (rest < 0.0) != (right < 0.0) {
        rest += right;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(left / right), rest);
    }
    let down = quotient.floor();
    let is_off = quotient - down > 0.5;
    (if is_off { down + 1.0 } else { down }, rest)
}
