//! The Gregorian calendar: dates of days since 1970, and back.

/// Seconds of a day.
pub(super) const DAY_SECONDS: i64 = 86_400;

/// Year, month and day of a number of days since 1970: in the calendar that begins in
/// March, leap days come last.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_lead_back_to_their_days() {
        for day in (-800_000..800_000).step_by(37) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days_of(year, month, of_month), day);
        }
    }
}
