//! Errors whose Debug form is their text.
//!
//! A program prints the Debug form of an error in two places: `main` that returns
//! `Result<(), Box<dyn Error>>`, and `unwrap`. A user reads both, so public errors show
//! there what Display shows: the thing, the value and the way out. `cargo xtask tidy`
//! refuses a public error that derives Debug.

/// Implements [`Debug`](core::fmt::Debug) of error types by their
/// [`Display`](core::fmt::Display).
///
/// ```
/// struct Refused;
///
/// impl core::fmt::Display for Refused {
///     fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
///         formatter.write_str("rate -1: negative; choose a rate above 0")
///     }
/// }
///
/// impl core::error::Error for Refused {}
/// pteros_msg::debug_as_display!(Refused);
///
/// let error: Box<dyn core::error::Error> = Box::new(Refused);
/// assert_eq!(format!("{error:?}"), "rate -1: negative; choose a rate above 0");
/// ```
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),+ $(,)?) => {
        $(impl ::core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, formatter)
            }
        })+
    };
}
