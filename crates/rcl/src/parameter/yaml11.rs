//! Numbers of YAML 1.1, as PyYAML's resolver has them: digits with underscores, octal,
//! hexadecimal, binary and sexagesimal numbers.

/// An integer that fits into 64 bits.
pub(super) fn integer_of(text: &str) -> Option<i64> {
    let (negative, digits) = signed(text);
    let is_first = |first: char| first.is_ascii_digit();
    if !digits.starts_with(is_first) {
        return None;
    }
    let plain = digits.replace('_', "");
    let magnitude = if digits.contains(':') {
        sexagesimal(digits).filter(|_| !digits.starts_with('0'))?
    } else if let Some(bits) = plain.strip_prefix("0b") {
        unsigned(bits, 2)?
    } else if let Some(hexadecimal) = plain.strip_prefix("0x") {
        unsigned(hexadecimal, 16)?
    } else if plain.len() > 1 && plain.starts_with('0') {
        unsigned(&plain, 8)?
    } else {
        unsigned(&plain, 10)?
    };
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// A number with a point, or one of the words `.inf` and `.nan`.
pub(super) fn double_of(text: &str) -> Option<f64> {
    let (negative, magnitude) = signed(text);
    let value = match magnitude {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" if magnitude.len() == text.len() => f64::NAN,
        _ if magnitude.contains(':') => sexagesimal_double(magnitude)?,
        _ => {
            let is_first = |first: char| first.is_ascii_digit() || first == '.';
            let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
                Some((mantissa, exponent)) => (mantissa, Some(exponent)),
                None => (magnitude, None),
            };
            // An exponent has a sign in YAML 1.1.
            let is_exponent = |text: &str| {
                text.strip_prefix(['+', '-'])
                    .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(is_digit))
            };
            // An integer of more than 64 bits is a double, as for rcl.
            let is_long = mantissa.len() > 18 && !mantissa.starts_with('0') && exponent.is_none();
            let is_mantissa = (mantissa.contains('.') || is_long)
                && mantissa.bytes().any(is_digit)
                && mantissa
                    .bytes()
                    .all(|byte| is_digit(byte) || matches!(byte, b'.' | b'_'));
            if !magnitude.starts_with(is_first) || !is_mantissa || !exponent.is_none_or(is_exponent)
            {
                return None;
            }
            magnitude.replace('_', "").parse().ok()?
        }
    };
    Some(if negative { -value } else { value })
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn unsigned(digits: &str, radix: u32) -> Option<i128> {
    // from_str_radix would accept a sign.
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    i128::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_number)
}

/// `1:30.5` is 90.5: as an integer, with a point behind the last part. A zero may stand in front.
fn sexagesimal_double(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.')?;
    let fraction = format!("0.{}", fraction.replace('_', ""));
    let is_number = fraction.bytes().skip(2).all(is_digit);
    let fraction: f64 = fraction.parse().ok().filter(|_| is_number)?;
    Some(sexagesimal(whole)? as f64 + fraction)
}

/// `1:30` is 90: parts of base 60. Only the first has underscores.
fn sexagesimal(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let first = parts
        .next()
        .filter(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    let mut value = unsigned(&first?.replace('_', ""), 10)?;
    for part in parts {
        let part = unsigned(part, 10).filter(|number| *number < 60 && part.len() <= 2)?;
        value = value.checked_mul(60)?.checked_add(part)?;
    }
    Some(value)
}
