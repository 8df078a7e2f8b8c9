//! Numbers as texts: Python's shortest form and its format codes; numbers as
//! integers.

/// The integer that a number is exactly, if it is one.
pub(super) fn exact_integer(value: f64) -> Option<i128> {
    // 2^126: safely below the largest integer.
    let is_whole = value.trunc() == value && value.abs() < 8.507_059_173_023_462e37;
    is_whole.then_some(value as i128)
}

/// A number as `str(…)` prints it: the shortest text that gives it back.
pub(super) fn double(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        format!("{value:?}")
    } else {
        format!("{digits}e{}", exponent_text(exponent))
    }
}

/// An exponent with a sign and at least two digits.
fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{:02}", exponent.unsigned_abs())
}

/// A magnitude with the code e, f, g or % and a precision. `keeps_zeros` is the
/// flag # of the code g.
pub(super) fn with_code(value: f64, code: char, precision: usize, keeps_zeros: bool) -> String {
    let is_upper = code.is_ascii_uppercase();
    let text = if !value.is_finite() {
        let text = double(value);
        if code == '%' { text + "%" } else { text }
    } else {
        match code.to_ascii_lowercase() {
            'e' => scientific(value, precision),
            'f' => format!("{value:.precision$}"),
            '%' => format!("{:.precision$}%", value * 100.0),
            _ => general(value, precision, keeps_zeros),
        }
    };
    if is_upper { text.to_uppercase() } else { text }
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            format!("{digits}e{}", exponent_text(exponent.parse().unwrap_or(0)))
        }
        None => text,
    }
}

/// The code g: fixed or scientific, whichever is shorter.
fn general(value: f64, precision: usize, keeps_zeros: bool) -> String {
    let precision = precision.max(1);
    let text = format!("{value:.*e}", precision - 1);
    let exponent: i32 = text
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let is_fixed = exponent >= -4 && i64::from(exponent) < precision as i64;
    let text = if is_fixed {
        let decimals = (precision as i64 - 1 - i64::from(exponent)).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        scientific(value, precision - 1)
    };
    if keeps_zeros {
        return text;
    }
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", without_zeros(digits)),
        None => without_zeros(&text).to_owned(),
    }
}

fn without_zeros(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

/// A magnitude in base 2, 8, 10 or 16 by its code b, o, d, x or X.
pub(super) fn in_base(value: u128, code: char) -> String {
    match code {
        'b' => format!("{value:b}"),
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        'X' => format!("{value:X}"),
        _ => value.to_string(),
    }
}
