//! Timer periods from rates.

use std::time::Duration;

use pteros::component::ComponentError;

/// The period of a rate in Hz.
pub fn period(rate: f64) -> Result<Duration, ComponentError> {
    let period = Duration::try_from_secs_f64(1.0 / rate).ok();
    match period.filter(|period| !period.is_zero()) {
        Some(period) => Ok(period),
        None => Err(format!(
            "parameter 'rate' = {rate}: no timer ticks so often; give a number above zero, such as 30.0"
        )
        .into()),
    }
}
