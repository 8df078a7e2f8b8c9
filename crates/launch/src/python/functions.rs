//! Functions of the basics: those of Python itself, and those of its module `math`
//! that give the same digits as the C library.

use super::arithmetic::{binary, whole};
use super::compare::{exact_integer, is_less};
use super::cost::Cost;
use super::fault::{Fault, Outcome};
use super::printed::{double, short, text};
use super::tree::BinaryOperator;
use super::value::Value;

/// Functions that need no module and no Python.
pub(super) const NAMES: &[&str] = &[
    "abs", "bool", "float", "int", "len", "max", "min", "pow", "round", "str",
];

/// Names of `math` that need no Python.
pub(super) const MATH: &[&str] = &[
    "acos", "asin", "atan", "atan2", "ceil", "cos", "degrees", "e", "exp", "fabs", "floor", "fmod",
    "inf", "isnan", "log", "log10", "nan", "pi", "pow", "radians", "sin", "sqrt", "tan", "tau",
    "trunc",
];

/// The other functions of Python, and those of `math`.
const OF_PYTHON: &str = "__import__ aiter all anext any ascii bin breakpoint bytearray bytes callable chr \
    classmethod compile complex delattr dict dir divmod enumerate eval exec exit filter format \
    frozenset getattr globals hasattr hash help hex id input isinstance issubclass iter list \
    locals map memoryview next object oct open ord print property quit range repr reversed set \
    setattr slice sorted staticmethod sum super tuple type vars zip acosh asinh atanh cbrt \
    comb copysign cosh dist erf erfc exp2 expm1 factorial frexp fsum gamma gcd hypot isclose \
    isfinite isinf isqrt lcm ldexp lgamma log1p log2 modf nextafter perm prod remainder sinh \
    sumprod tanh ulp";

/// Whether Python has this function, and the basics have not.
pub(super) fn of_python(name: &str) -> bool {
    OF_PYTHON.split(' ').any(|known| known == name)
}

/// Whether `math` has this function in the basics.
pub(super) fn in_math(name: &str) -> bool {
    MATH.contains(&name) && constant(name).is_none()
}

/// A constant of `math`.
pub(super) fn constant(name: &str) -> Option<Value> {
    Some(match name {
        "pi" => std::f64::consts::PI.into(),
        "tau" => std::f64::consts::TAU.into(),
        "e" => std::f64::consts::E.into(),
        "inf" => f64::INFINITY.into(),
        "nan" => f64::NAN.into(),
        _ => return None,
    })
}

/// Calls a function of [`NAMES`].
pub(super) fn call(cost: &mut Cost, name: &str, arguments: &[Value]) -> Outcome<Value> {
    match (name, arguments) {
        ("bool", [value]) => Ok(value.truth().into()),
        ("str", [value]) => cost.text(text(value)),
        ("int" | "float", [value]) => number(name, value),
        ("len", [value]) => match value.length() {
            Some(length) => Ok((length as i128).into()),
            None => {
                let value = short(value);
                Err(format!("len needs a text or a collection, not {value}").into())
            }
        },
        ("abs", [value]) => match (value.as_integer(), value.as_double()) {
            (Some(integer), _) => whole(integer.checked_abs()),
            (None, Some(double)) => Ok(double.abs().into()),
            _ => Err(needs_number(name, value)),
        },
        ("pow", [base, exponent]) => binary(cost, base, BinaryOperator::Power, exponent),
        ("round", [value]) => round(value, None),
        ("round", [value, digits]) => round(value, digits.as_integer()),
        ("min" | "max", [values]) => match values.length() {
            Some(length) => {
                cost.add_items(length)?;
                extreme(cost, name, &values.elements(0..length))
            }
            None => Err(format!(
                "{name} needs a list or several values, not {}",
                short(values)
            )
            .into()),
        },
        ("min" | "max", [_, _, ..]) => extreme(cost, name, arguments),
        (_, arguments) => Err(unusual(name, arguments.len())),
    }
}

fn needs_number(name: &str, value: &Value) -> Fault {
    format!(
        "{name} needs a number, not {}, a {}",
        short(value),
        value.type_name()
    )
    .into()
}

fn unusual(name: &str, count: usize) -> Fault {
    Fault::needs_python(format!("the function {name} with {count} arguments"))
}

fn extreme(cost: &mut Cost, name: &str, values: &[Value]) -> Outcome<Value> {
    let mut values = values.iter();
    let mut best = values.next().ok_or_else(|| format!("{name} of nothing"))?;
    for value in values {
        let is_better = match name {
            "min" => is_less(cost, value, best)?,
            _ => is_less(cost, best, value)?,
        };
        if is_better {
            best = value;
        }
    }
    Ok(best.clone())
}

/// `int(value)` and `float(value)`.
fn number(name: &str, value: &Value) -> Outcome<Value> {
    let is_integer = name == "int";
    if let Some(text) = value.as_text() {
        // Python also reads the digits of other scripts.
        if !text.is_ascii() || text.contains('_') {
            return Err(Fault::needs_python(format!("{name}({})", short(value))));
        }
        let digits = text.trim();
        if !is_integer && let Ok(double) = digits.parse::<f64>() {
            return Ok(double.into());
        }
        if is_integer {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            match digits.parse::<i128>().map_err(|error| *error.kind()) {
                Ok(integer) => return Ok(integer.into()),
                Err(PosOverflow | NegOverflow) => return whole(None),
                Err(_) => {}
            }
        }
        let kind = if is_integer { "an integer" } else { "a number" };
        return Err(format!("{name}({}): this is not {kind}", short(value)).into());
    }
    let Some(double) = value.as_double() else {
        return Err(needs_number(name, value));
    };
    match value.as_integer() {
        Some(integer) if is_integer => Ok(integer.into()),
        None if is_integer => rounded(name, double, double.trunc()),
        _ => Ok(double.into()),
    }
}

/// An integer that a function makes of a double.
fn rounded(name: &str, of: f64, value: f64) -> Outcome<Value> {
    match exact_integer(value) {
        Some(integer) => Ok(integer.into()),
        None if value.is_finite() => whole(None),
        None => Err(format!("{name}({}): this is no integer", double(of)).into()),
    }
}

/// Halves round to even, as in Python.
fn round(value: &Value, digits: Option<i128>) -> Outcome<Value> {
    match (value.as_integer(), value.as_double(), digits) {
        (Some(integer), _, None | Some(0..)) => Ok(integer.into()),
        (None, Some(double), None) => rounded("round", double, double.round_ties_even()),
        (None, Some(double), Some(digits @ 0..=22)) if double.is_finite() => {
            let text = format!("{double:.*}", digits as usize);
            Ok(text.parse().unwrap_or(double).into())
        }
        (None, None, _) => Err(needs_number("round", value)),
        _ => Err(Fault::needs_python("round to such digits")),
    }
}

/// Calls `math.NAME`.
pub(super) fn call_math(name: &str, arguments: &[Value]) -> Outcome<Value> {
    if !in_math(name) {
        return Err(Fault::needs_python(format!("the name math.{name}")));
    }
    if let ("floor" | "ceil" | "trunc", [value]) = (name, arguments)
        && let Some(integer) = value.as_integer()
    {
        return Ok(integer.into());
    }
    let numbers = arguments.iter().map(|value| {
        value
            .as_double()
            .ok_or_else(|| needs_number(&format!("math.{name}"), value))
    });
    let numbers: Vec<f64> = numbers.collect::<Outcome<_>>()?;
    let shown = || {
        let shown: Vec<String> = numbers.iter().map(|number| double(*number)).collect();
        format!("math.{name}({})", shown.join(", "))
    };
    let result = match (name, &*numbers) {
        ("floor", [one]) => return rounded("math.floor", *one, one.floor()),
        ("ceil", [one]) => return rounded("math.ceil", *one, one.ceil()),
        ("trunc", [one]) => return rounded("math.trunc", *one, one.trunc()),
        ("isnan", [one]) => return Ok(one.is_nan().into()),
        ("acos", [one]) => one.acos(),
        ("asin", [one]) => one.asin(),
        ("atan", [one]) => one.atan(),
        ("atan2", [one, other]) => one.atan2(*other),
        ("cos", [one]) => one.cos(),
        ("degrees", [one]) => one.to_degrees(),
        ("exp", [one]) => one.exp(),
        ("fabs", [one]) => one.abs(),
        ("fmod", [one, other]) => one % other,
        ("log", [one]) => one.ln(),
        ("log", [one, base]) if *base != 1.0 => one.ln() / base.ln(),
        ("log10", [one]) => one.log10(),
        ("pow", [one, other]) => one.powf(*other),
        ("radians", [one]) => one.to_radians(),
        ("sin", [one]) => one.sin(),
        ("sqrt", [one]) => one.sqrt(),
        ("tan", [one]) => one.tan(),
        (_, numbers) => return Err(unusual(name, numbers.len())),
    };
    // A finite argument without a finite result is outside the function's domain.
    let is_defined = numbers.iter().any(|number| number.is_nan()) || !result.is_nan();
    let is_finite = numbers.iter().all(|number| number.is_finite());
    if !is_defined || (is_finite && result.is_infinite()) {
        return Err(format!("{} has no real value", shown()).into());
    }
    Ok(result.into())
}
