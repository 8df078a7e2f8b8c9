//! Parsers of flag values. Each error names the accepted values.

use std::str::FromStr;
use std::time::Duration;

/// Parses seconds above zero, as `0.5`: a nanosecond to a hundred years, so that
/// the sum with any clock time is valid.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    let seconds = positive_float(text)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time.is_zero() => Err(format!("'{text}' seconds is less than a nanosecond")),
        Ok(time) if time <= SECONDS_MAX => Ok(time),
        _ => Err(format!("'{text}' seconds is more than a hundred years")),
    }
}

const SECONDS_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Parses seconds, 0 or more.
pub fn non_negative_seconds(text: &str) -> Result<Duration, String> {
    let is_zero = text.parse() == Ok(0.0_f64);
    if is_zero {
        Ok(Duration::ZERO)
    } else {
        positive_seconds(text)
            .map_err(|error| error.replace("above zero, such as", "from zero on, such as 0,"))
    }
}

/// A limit in seconds; `None` if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSeconds(pub Option<Duration>);

/// Parses a limit in seconds. A negative number is none, as with ros2.
pub fn limit_seconds(text: &str) -> Result<LimitSeconds, String> {
    if text.parse::<f64>().is_ok_and(|number| number < 0.0) {
        return Ok(LimitSeconds(None));
    }
    non_negative_seconds(text).map(|limit| LimitSeconds(Some(limit)))
}

/// Parses a finite number above zero.
pub fn positive_float(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!(
            "'{text}' is not a number above zero, such as 0.5 or 10"
        )),
    }
}

/// Parses a non-negative integer.
pub fn count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a whole number from zero on, such as 0 or 100"))
}

/// Parses a positive integer.
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
    fn zero_negative_and_infinite_values_are_refused() {
        for text in ["0", "-1", "inf", "nan", "ten", ""] {
            assert!(positive_float(text).is_err(), "{text}");
            assert!(positive_seconds(text).is_err(), "{text}");
        }
        for text in ["1e300", "1e19", "1e18", "1e-12"] {
            assert!(positive_seconds(text).is_err(), "{text}");
        }
        assert_eq!(positive_seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(limit_seconds("-1"), Ok(LimitSeconds(None)));
        let limit = LimitSeconds(Some(Duration::from_millis(1500)));
        assert_eq!(limit_seconds("1.5"), Ok(limit));
        assert!(limit_seconds("nan").is_err());
        let error = non_negative_seconds("-1").unwrap_err();
        assert_eq!(
            error,
            "'-1' is not a number from zero on, such as 0, 0.5 or 10"
        );
        assert!(positive_count("0").is_err());
        assert_eq!(positive_count("7"), Ok(7));
    }
}
