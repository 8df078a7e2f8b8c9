//! The module `math`, and methods of numbers.

use super::fault::Outcome;
use super::iterate;
use super::machine::{Arguments, Machine};
use super::number_text::{double, exact_integer};
use super::printed::short;
use super::value::{Kind, Value};

/// Names, without and with the module.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("acos", "math.acos"),
    ("acosh", "math.acosh"),
    ("asin", "math.asin"),
    ("asinh", "math.asinh"),
    ("atan", "math.atan"),
    ("atan2", "math.atan2"),
    ("atanh", "math.atanh"),
    ("cbrt", "math.cbrt"),
    ("ceil", "math.ceil"),
    ("comb", "math.comb"),
    ("copysign", "math.copysign"),
    ("cos", "math.cos"),
    ("cosh", "math.cosh"),
    ("degrees", "math.degrees"),
    ("dist", "math.dist"),
    ("e", "math.e"),
    ("exp", "math.exp"),
    ("exp2", "math.exp2"),
    ("expm1", "math.expm1"),
    ("fabs", "math.fabs"),
    ("factorial", "math.factorial"),
    ("floor", "math.floor"),
    ("fmod", "math.fmod"),
    ("fsum", "math.fsum"),
    ("gcd", "math.gcd"),
    ("hypot", "math.hypot"),
    ("inf", "math.inf"),
    ("isclose", "math.isclose"),
    ("isfinite", "math.isfinite"),
    ("isinf", "math.isinf"),
    ("isnan", "math.isnan"),
    ("isqrt", "math.isqrt"),
    ("lcm", "math.lcm"),
    ("log", "math.log"),
    ("log10", "math.log10"),
    ("log1p", "math.log1p"),
    ("log2", "math.log2"),
    ("modf", "math.modf"),
    ("nan", "math.nan"),
    ("perm", "math.perm"),
    ("pi", "math.pi"),
    ("pow", "math.pow"),
    ("prod", "math.prod"),
    ("radians", "math.radians"),
    ("remainder", "math.remainder"),
    ("sin", "math.sin"),
    ("sinh", "math.sinh"),
    ("sqrt", "math.sqrt"),
    ("tan", "math.tan"),
    ("tanh", "math.tanh"),
    ("tau", "math.tau"),
    ("trunc", "math.trunc"),
];

/// The value of `math.NAME`.
pub(super) fn value(long: &'static str) -> Value {
    match long {
        "math.pi" => std::f64::consts::PI.into(),
        "math.tau" => std::f64::consts::TAU.into(),
        "math.e" => std::f64::consts::E.into(),
        "math.inf" => f64::INFINITY.into(),
        "math.nan" => f64::NAN.into(),
        _ => Value(Kind::Function(long)),
    }
}

pub(super) fn attribute(name: &str) -> Option<Value> {
    let found = NAMES.iter().find(|(short, _)| *short == name);
    found.map(|(_, long)| value(long))
}

pub(super) fn names() -> Vec<String> {
    NAMES.iter().map(|(short, _)| (*short).to_owned()).collect()
}

/// Calls `math.NAME`.
pub(super) fn call(machine: &mut Machine, name: &str, arguments: &Arguments) -> Outcome<Value> {
    let given = Numbers { name, arguments };
    match name {
        "floor" | "ceil" | "trunc" | "factorial" | "gcd" | "lcm" | "isqrt" | "comb" | "perm" => {
            whole(machine, &given)
        }
        "fsum" | "prod" | "dist" => folded(machine, &given),
        "isfinite" => Ok(given.one()?.is_finite().into()),
        "isinf" => Ok(given.one()?.is_infinite().into()),
        "isnan" => Ok(given.one()?.is_nan().into()),
        "isclose" => is_close(&given),
        "modf" => {
            let number = given.one()?;
            machine.tuple(vec![number.fract().into(), number.trunc().into()])
        }
        _ => real(&given),
    }
}

struct Numbers<'a> {
    name: &'a str,
    arguments: &'a Arguments,
}

impl Numbers<'_> {
    fn count(&self) -> usize {
        self.arguments.positional.len()
    }

    fn value(&self, index: usize) -> Outcome<&Value> {
        let value = self.arguments.positional.get(index);
        value.ok_or_else(|| format!("math.{} needs {} numbers", self.name, index + 1).into())
    }

    fn double(&self, index: usize) -> Outcome<f64> {
        let value = self.value(index)?;
        value.as_double().ok_or_else(|| {
            format!(
                "math.{} needs a number, not {}, a {}",
                self.name,
                short(value),
                value.type_name()
            )
            .into()
        })
    }

    fn integer(&self, index: usize) -> Outcome<i128> {
        let value = self.value(index)?;
        value.as_integer().ok_or_else(|| {
            format!("math.{} needs an integer, not {}", self.name, short(value)).into()
        })
    }

    fn one(&self) -> Outcome<f64> {
        if self.count() != 1 {
            return Err(
                format!("math.{} takes one number, not {}", self.name, self.count()).into(),
            );
        }
        self.double(0)
    }
}

fn real(given: &Numbers<'_>) -> Outcome<Value> {
    let two = given.count() == 2;
    let one = given.double(0)?;
    let outside = || format!("math.{}({}) has no real value", given.name, double(one));
    let is_inside = match given.name {
        "sqrt" => one >= 0.0 || one.is_nan(),
        "log" | "log2" | "log10" => one > 0.0 || one.is_nan(),
        "log1p" => one > -1.0 || one.is_nan(),
        "asin" | "acos" => one.is_nan() || one.abs() <= 1.0,
        "acosh" => one.is_nan() || one >= 1.0,
        "atanh" => one.is_nan() || one.abs() < 1.0,
        "sin" | "cos" | "tan" => !one.is_infinite(),
        _ => true,
    };
    if !is_inside {
        return Err(outside().into());
    }
    let result = match (given.name, two) {
        ("atan2", true) => one.atan2(given.double(1)?),
        ("copysign", true) => one.copysign(given.double(1)?),
        ("fmod" | "remainder", true) => {
            let other = given.double(1)?;
            if other == 0.0 {
                return Err(format!(
                    "math.{}({}, 0.0): division by zero",
                    given.name,
                    double(one)
                )
                .into());
            }
            match given.name {
                "fmod" => one % other,
                _ => one - (one / other).round_ties_even() * other,
            }
        }
        ("pow", true) => {
            let exponent = given.double(1)?;
            let power = one.powf(exponent);
            let is_real = one.is_finite() && exponent.is_finite();
            if is_real && !power.is_finite() {
                return Err(format!(
                    "math.pow({}, {}) has no real value",
                    double(one),
                    double(exponent)
                )
                .into());
            }
            power
        }
        ("log", true) => {
            let base = given.double(1)?;
            if base <= 0.0 || base == 1.0 {
                return Err(format!("math.log: the base {} is not possible", double(base)).into());
            }
            one.ln() / base.ln()
        }
        ("hypot", _) => {
            let mut sum: f64 = 0.0;
            for index in 0..given.count() {
                sum = sum.hypot(given.double(index)?);
            }
            sum
        }
        (_, true) => return Err(format!("math.{} takes one number, not 2", given.name).into()),
        (name, false) => of_one(name, given.one()?)
            .ok_or_else(|| format!("math.{name} takes another number of arguments"))?,
    };
    if result.is_infinite() && one.is_finite() && !matches!(given.name, "copysign") {
        return Err(format!(
            "math.{}({}): the result is too large",
            given.name,
            double(one)
        )
        .into());
    }
    Ok(result.into())
}

fn of_one(name: &str, one: f64) -> Option<f64> {
    Some(match name {
        "sin" => one.sin(),
        "cos" => one.cos(),
        "tan" => one.tan(),
        "asin" => one.asin(),
        "acos" => one.acos(),
        "atan" => one.atan(),
        "sinh" => one.sinh(),
        "cosh" => one.cosh(),
        "tanh" => one.tanh(),
        "asinh" => one.asinh(),
        "acosh" => one.acosh(),
        "atanh" => one.atanh(),
        "exp" => one.exp(),
        "exp2" => one.exp2(),
        "expm1" => one.exp_m1(),
        "log" => one.ln(),
        "log2" => one.log2(),
        "log10" => one.log10(),
        "log1p" => one.ln_1p(),
        "sqrt" => one.sqrt(),
        "cbrt" => one.cbrt(),
        "fabs" => one.abs(),
        "radians" => one.to_radians(),
        "degrees" => one.to_degrees(),
        _ => return None,
    })
}

fn whole(machine: &mut Machine, given: &Numbers<'_>) -> Outcome<Value> {
    let large = || format!("math.{}: the result does not fit into 127 bits", given.name);
    match given.name {
        "floor" | "ceil" | "trunc" => {
            if let Some(integer) = given.value(0)?.as_integer() {
                return Ok(integer.into());
            }
            let one = given.one()?;
            let rounded = match given.name {
                "floor" => one.floor(),
                "ceil" => one.ceil(),
                _ => one.trunc(),
            };
            let integer = exact_integer(rounded);
            Ok(integer
                .ok_or_else(|| format!("math.{}({}) is no integer", given.name, double(one)))?
                .into())
        }
        "gcd" | "lcm" => {
            let mut result: i128 = i128::from(given.name == "lcm");
            for index in 0..given.count() {
                let next = given.integer(index)?;
                machine.steps(8)?;
                let divisor = greatest_common_divisor(result, next);
                result = match given.name {
                    "gcd" => divisor,
                    _ if divisor == 0 => 0,
                    _ => (result / divisor)
                        .checked_mul(next)
                        .ok_or_else(large)?
                        .abs(),
                };
            }
            Ok(result.into())
        }
        "isqrt" => {
            let of = given.integer(0)?;
            if of < 0 {
                return Err(format!("math.isqrt({of}) has no real value").into());
            }
            Ok(of.isqrt().into())
        }
        name => {
            let of = given.integer(0)?;
            let taken = match (name, given.count()) {
                ("factorial", 1) | ("perm", 1) => of,
                _ => given.integer(1)?,
            };
            if of < 0 || taken < 0 {
                return Err(format!("math.{name} needs numbers that are not negative").into());
            }
            if taken > of {
                return Ok(0i128.into());
            }
            let taken = if name == "comb" {
                taken.min(of - taken)
            } else {
                taken
            };
            let mut result: i128 = 1;
            // More factors than 200 do not fit anyway, unless they are 1.
            for index in 0..taken.min(200) {
                result = result.checked_mul(of - index).ok_or_else(large)?;
                if name == "comb" {
                    result /= index + 1;
                }
            }
            if taken > 200 {
                return Err(large().into());
            }
            Ok(result.into())
        }
    }
}

fn greatest_common_divisor(left: i128, right: i128) -> i128 {
    let (mut left, mut right) = (left.unsigned_abs(), right.unsigned_abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    i128::try_from(left).unwrap_or(i128::MAX)
}

fn folded(machine: &mut Machine, given: &Numbers<'_>) -> Outcome<Value> {
    let items = iterate::collect(machine, given.value(0)?)?;
    let number = |value: &Value| -> Outcome<f64> {
        value.as_double().ok_or_else(|| {
            format!("math.{} needs numbers, not {}", given.name, short(value)).into()
        })
    };
    match given.name {
        "fsum" => {
            // Neumaier's compensated sum.
            let (mut sum, mut rest) = (0.0f64, 0.0f64);
            for item in &items {
                let next = number(item)?;
                let total = sum + next;
                rest += if sum.abs() >= next.abs() {
                    (sum - total) + next
                } else {
                    (next - total) + sum
                };
                sum = total;
            }
            Ok((sum + rest).into())
        }
        "dist" => {
            let others = iterate::collect(machine, given.value(1)?)?;
            if items.len() != others.len() {
                return Err("math.dist needs two points with as many coordinates".into());
            }
            let mut sum: f64 = 0.0;
            for (one, other) in items.iter().zip(&others) {
                sum = sum.hypot(number(one)? - number(other)?);
            }
            Ok(sum.into())
        }
        _ => {
            let mut product = Value::from(1i128);
            for item in &items {
                product = super::arithmetic::binary(
                    machine,
                    &product,
                    super::tree::BinaryOperator::Multiply,
                    item,
                )?;
            }
            Ok(product)
        }
    }
}

fn is_close(given: &Numbers<'_>) -> Outcome<Value> {
    let (left, right) = (given.double(0)?, given.double(1)?);
    let named = |name: &str, default: f64| -> f64 {
        let mut named = given.arguments.named.iter();
        let found = named.find(|(known, _)| **known == *name);
        found
            .and_then(|(_, value)| value.as_double())
            .unwrap_or(default)
    };
    let relative = named("rel_tol", 1e-9) * left.abs().max(right.abs());
    let distance = (left - right).abs();
    let is_close =
        left == right || (distance.is_finite() && distance <= relative.max(named("abs_tol", 0.0)));
    Ok(is_close.into())
}

/// A method of a number.
pub(super) fn number_method(receiver: &Value, name: &str) -> Outcome<Value> {
    let integer = receiver.as_integer();
    Ok(match (name, integer, receiver.as_double()) {
        ("bit_length", Some(integer), _) => {
            i128::from(128 - integer.unsigned_abs().leading_zeros()).into()
        }
        ("bit_count", Some(integer), _) => i128::from(integer.unsigned_abs().count_ones()).into(),
        ("is_integer", Some(_), _) => true.into(),
        ("is_integer", None, Some(number)) => (number.is_finite() && number.fract() == 0.0).into(),
        ("conjugate", ..) => receiver.clone(),
        _ => return Err(format!("{name} is not available for {}", short(receiver)).into()),
    })
}
