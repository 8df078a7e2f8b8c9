//! Built-in functions of numbers: `round`, `divmod`, `int(text)`.

use super::arithmetic::{binary, floor_divided, floor_modulo};
use super::fault::Outcome;
use super::given_arguments::Given;
use super::machine::Machine;
use super::number_text::{exact_integer, in_base};
use super::printed::short;
use super::tree::BinaryOperator;
use super::value::{Kind, Value};

/// An integer as `int(text, base)` reads it.
pub(super) fn integer_of(text: &str, base: i128) -> Option<i128> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let is_grouped = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    let digits = digits.replace('_', "");
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let of_prefix = match prefix.as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let base = if base == 0 {
        of_prefix
    } else {
        u32::try_from(base).ok()?
    };
    let has_prefix = of_prefix != 10 && of_prefix == base;
    let digits = if has_prefix {
        &digits[2..]
    } else {
        digits.as_str()
    };
    let is_digits = digits.chars().all(|letter| letter.is_ascii_alphanumeric());
    if !is_grouped || !is_digits || !(2..=36).contains(&base) {
        return None;
    }
    i128::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// A number as `float(text)` reads it.
pub(super) fn double_of(text: &str) -> Option<f64> {
    let text = text.trim().replace('_', "");
    text.parse().ok()
}

pub(super) fn number(machine: &mut Machine, given: &mut Given) -> Outcome<Value> {
    if let Some(digits) = given.named("ndigits") {
        given.arguments.positional.push(digits);
    }
    let most = match given.name {
        "pow" => 3,
        "round" | "divmod" => 2,
        _ => 1,
    };
    given.between(1, most)?;
    let value = given.value(0)?;
    let wrong = || {
        format!(
            "{} needs a number, not {}, a {}",
            given.name,
            short(value),
            value.type_name()
        )
    };
    let large = || format!("{}: the result does not fit into 127 bits", given.name);
    match given.name {
        "abs" => match value.as_integer() {
            Some(integer) => Ok(integer.checked_abs().ok_or_else(large)?.into()),
            None => Ok(value.as_double().ok_or_else(wrong)?.abs().into()),
        },
        "bin" | "hex" | "oct" => {
            let integer = given.integer(0)?;
            let (code, prefix) = match given.name {
                "bin" => ('b', "0b"),
                "hex" => ('x', "0x"),
                _ => ('o', "0o"),
            };
            let sign = if integer < 0 { "-" } else { "" };
            machine.text(format!(
                "{sign}{prefix}{}",
                in_base(integer.unsigned_abs(), code)
            ))
        }
        "divmod" => {
            let other = given.value(1)?;
            if let (Some(one), Some(two)) = (value.as_integer(), other.as_integer()) {
                let both = floor_divided(one, two).zip(floor_modulo(one, two));
                let (quotient, rest) = both.ok_or("divmod: division by zero")?;
                return machine.tuple(vec![quotient.into(), rest.into()]);
            }
            let quotient = binary(machine, value, BinaryOperator::FloorDivide, other)?;
            let rest = binary(machine, value, BinaryOperator::Modulo, other)?;
            machine.tuple(vec![quotient, rest])
        }
        "pow" => {
            let exponent = given.value(1)?;
            if given.count() == 3 {
                return modular_power(given);
            }
            binary(machine, value, BinaryOperator::Power, exponent)
        }
        _ => round(given),
    }
}

fn modular_power(given: &Given) -> Outcome<Value> {
    let (base, mut exponent, modulus) = (given.integer(0)?, given.integer(1)?, given.integer(2)?);
    // The squares of 63 bits fit.
    if exponent < 0 || modulus <= 0 || modulus >= 1 << 63 {
        return Err("pow with three arguments needs an exponent of at least 0 and a modulus from 1 to 2**63".into());
    }
    let mut result = 1 % modulus;
    let mut square = base.rem_euclid(modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        exponent >>= 1;
    }
    Ok(result.into())
}

/// Halves round to even, as in Python.
fn round(given: &Given) -> Outcome<Value> {
    let value = given.value(0)?;
    let digits = match given.arguments.positional.get(1).map(|digits| &digits.0) {
        None | Some(Kind::None) => None,
        Some(_) => Some(given.integer(1)?),
    };
    if let Some(integer) = value.as_integer() {
        let Some(places) = digits.filter(|digits| *digits < 0) else {
            return Ok(integer.into());
        };
        let unit = u32::try_from(-places)
            .ok()
            .and_then(|places| 10i128.checked_pow(places));
        let Some(unit) = unit else {
            return Ok(0i128.into());
        };
        let rest = integer.rem_euclid(unit);
        let down = integer - rest;
        let is_up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
        return Ok((if is_up { down + unit } else { down }).into());
    }
    let double = value.as_double().ok_or_else(|| {
        format!(
            "round needs a number, not {}, a {}",
            short(value),
            value.type_name()
        )
    })?;
    match digits {
        None => {
            let integer = exact_integer(double.round_ties_even());
            let integer =
                integer.ok_or_else(|| format!("round({}): this is no integer", short(value)))?;
            Ok(integer.into())
        }
        // More digits than a double has.
        Some(digits) if !double.is_finite() || digits > 323 => Ok(double.into()),
        Some(digits) if digits < -308 => Ok(0.0.into()),
        Some(digits) if digits >= 0 => {
            let text = format!("{double:.*}", digits as usize);
            Ok(text.parse().unwrap_or(double).into())
        }
        Some(digits) => {
            let unit = 10f64.powi(-digits as i32);
            Ok(((double / unit).round_ties_even() * unit).into())
        }
    }
}
