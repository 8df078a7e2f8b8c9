//! Readers of flag values. Each error says which values would do.

use std::time::Duration;

/// A number of seconds above zero, `0.5`.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    let seconds = positive_float(text)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("'{text}' seconds is more than a clock can hold"))
}

/// A number of seconds, 0 or more.
pub fn not_negative_seconds(text: &str) -> Result<Duration, String> {
    let is_zero = text.parse() == Ok(0.0_f64);
    if is_zero {
        Ok(Duration::ZERO)
    } else {
        positive_seconds(text)
    }
}

/// A finite number above zero.
pub fn positive_float(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!(
            "'{text}' is not a number above zero, such as 0.5 or 10"
        )),
    }
}

/// A whole number above zero.
pub fn positive_count(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "'{text}' is not a whole number above zero, such as 1 or 100"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_negative_and_endless_values_are_refused() {
        for text in ["0", "-1", "inf", "nan", "ten", ""] {
            assert!(positive_float(text).is_err(), "{text}");
            assert!(positive_seconds(text).is_err(), "{text}");
        }
        assert!(positive_seconds("1e300").is_err());
        assert_eq!(positive_seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(positive_count("0").is_err());
        assert_eq!(positive_count("7"), Ok(7));
    }
}
