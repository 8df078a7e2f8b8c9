//! Numbers and bools as users write them: YAML 1.1's forms and Python's.

/// An integer: decimal, `0x`, `0o`, `0b`, or octal with a leading zero (YAML
/// 1.1); underscores between digits.
pub(super) fn read_integer(text: &str) -> Option<i128> {
    match text.strip_prefix('-') {
        Some(digits) => read_magnitude(digits)?.checked_neg(),
        None => read_magnitude(text.strip_prefix('+').unwrap_or(text)),
    }
}

fn read_magnitude(digits: &str) -> Option<i128> {
    let prefixed = |prefixes: [&str; 2]| {
        let mut prefixes = prefixes.into_iter();
        prefixes.find_map(|prefix| digits.strip_prefix(prefix))
    };
    if let Some(rest) = prefixed(["0x", "0X"]) {
        return read_digits(rest, 16);
    }
    if let Some(rest) = prefixed(["0o", "0O"]) {
        return read_digits(rest, 8);
    }
    if let Some(rest) = prefixed(["0b", "0B"]) {
        return read_digits(rest, 2);
    }
    let octal = digits.len() > 1 && digits.starts_with('0');
    let octal = if octal { read_digits(digits, 8) } else { None };
    octal.or_else(|| read_digits(digits, 10))
}

fn read_digits(digits: &str, radix: u32) -> Option<i128> {
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    digits
        .chars()
        .filter(|c| *c != '_')
        .try_fold(0i128, |sum, c| {
            let digit = c.to_digit(radix)?;
            sum.checked_mul(radix.into())?.checked_add(digit.into())
        })
}

/// A float; `None` also when a finite text exceeds the type's range.
macro_rules! define_read_float {
    ($name:ident, $ty:ident) => {
        pub(super) fn $name(text: &str) -> Option<$ty> {
            let (sign, magnitude) = match text.strip_prefix('-') {
                Some(rest) => (-1.0, rest),
                None => (1.0, text.strip_prefix('+').unwrap_or(text)),
            };
            let magnitude = match magnitude {
                ".inf" | ".Inf" | ".INF" | "inf" | "Inf" | "Infinity" | "infinity" => $ty::INFINITY,
                ".nan" | ".NaN" | ".NAN" | "nan" | "NaN" => $ty::NAN,
                number => read_finite(number)?,
            };
            Some(sign * magnitude)
        }
    };
}
define_read_float!(read_f64, f64);
define_read_float!(read_f32, f32);

fn read_finite<T: core::str::FromStr + PartialEq + Into<f64> + Copy>(text: &str) -> Option<T> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let number: T = if text.contains('_') {
        text.replace('_', "").parse().ok()?
    } else if text.starts_with("0x") {
        // Hexadecimal integers are numbers, too.
        alloc::format!("{}", read_integer(text)?).parse().ok()?
    } else {
        text.parse().ok()?
    };
    let wide: f64 = number.into();
    wide.is_finite().then_some(number)
}

/// `true`, `yes`, `on`, `1` and their opposites, in YAML 1.1's spellings.
pub(super) fn read_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "1" => Some(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "0" => {
            Some(false)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_all_notations() {
        for (text, value) in [
            ("0", Some(0)),
            ("-17", Some(-17)),
            ("+5", Some(5)),
            ("0xFF", Some(255)),
            ("0b101", Some(5)),
            ("0o17", Some(15)),
            ("017", Some(15)),
            ("08", Some(8)),
            ("1_000", Some(1000)),
            ("18446744073709551615", Some(u64::MAX as i128)),
            ("", None),
            ("-", None),
            ("--1", None),
            ("1.0", None),
            ("0x", None),
            ("_1", None),
            ("99999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(read_integer(text), value, "{text}");
        }
    }

    #[test]
    fn floats_know_infinity_but_do_not_overflow_into_it() {
        assert_eq!(read_f64("-.inf"), Some(f64::NEG_INFINITY));
        assert_eq!(read_f32("1e39"), None);
        assert_eq!(read_f64("1e39"), Some(1e39));
        assert_eq!(read_f64("1_0.5"), Some(10.5));
        assert_eq!(read_f64("0x10"), Some(16.0));
        assert!(read_f32("nan").is_some_and(f32::is_nan));
        assert!(read_f64("-0.0").is_some_and(|zero| zero.is_sign_negative()));
        for text in ["", "e5", "--1", "1.0.0", "infinit", "+-1"] {
            assert_eq!(read_f64(text), None, "{text}");
        }
    }
}
