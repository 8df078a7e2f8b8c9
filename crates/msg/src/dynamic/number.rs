//! Floats as Python writes them, which is how ROS 2's tools print them.
//!
//! Python has doubles only, so a `float32` is printed as the double that it is: 0.1
//! is `0.10000000149011612`. Read back, it is the same `float32`. Exponents below -4
//! and from 16 on.

use alloc::format;
use alloc::string::String;
/// `1.0`, `1e+16`, `1e-05`, `nan`, `inf`, `-inf`.
pub(super) fn python_float(value: impl Into<f64>) -> String {
    let wide: f64 = value.into();
    if wide.is_nan() {
        return "nan".into();
    }
    if wide.is_infinite() {
        return if wide > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{wide:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        let zeros = "0".repeat((exponent.unsigned_abs() as usize).saturating_sub(1));
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = (exponent as usize).saturating_add(1);
    match digits.split_at_checked(whole) {
        Some((before, "")) => format!("{sign}{before}.0"),
        Some((before, after)) => format!("{sign}{before}.{after}"),
        None => format!(
            "{sign}{digits}{}.0",
            "0".repeat(whole.saturating_sub(digits.len()))
        ),
    }
}

/// As PyYAML writes a float: `.nan`, `.inf`, and a point before an exponent, without which
/// YAML 1.1 takes it for a text.
pub fn yaml_float(value: impl Into<f64>) -> String {
    let text = python_float(value);
    match text.as_str() {
        "nan" => ".nan".into(),
        "inf" => ".inf".into(),
        "-inf" => "-.inf".into(),
        _ if !text.contains('.') => text.replacen('e', ".0e", 1),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-12.5, "-12.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1.0e-05"),
            (1.5e-7, "1.5e-07"),
            (123456789012345.0, "123456789012345.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1.0e+16"),
            (1.25e300, "1.25e+300"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::NAN, ".nan"),
            (f64::NEG_INFINITY, "-.inf"),
        ] {
            assert_eq!(yaml_float(value), text);
        }
        assert_eq!(yaml_float(0.1f32), "0.10000000149011612");
        assert_eq!(yaml_float(0.5f32), "0.5");
        assert_eq!(python_float(1e-7f32), "1.0000000116860974e-07");
        assert_eq!(python_float(1e16f64), "1e+16");
    }
}
