//! Failures of rmw functions: a return code and a text for rcutils' error state.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pteros_typesupport::FailureKind;

use crate::abi::{EventCallback, Ret, ret};
use crate::host;

/// Identifier of this middleware, equal to RMW_IMPLEMENTATION.
pub(crate) static IDENTIFIER: &CStr = c"rmw_pteros_cpp";

/// Failure of a function: return code and text.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Ret,
    /// A constant text allocates nothing: waits end by a timeout all the time.
    pub(crate) text: Cow<'static, str>,
    cause: Cause,
}

/// Origin of a failure, if it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Caller,
    /// The entity belongs to the process that forked this one.
    Parent,
    /// A payload is not of its type.
    Payload,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: Ret, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            text: text.into(),
            cause: Cause::Caller,
        }
    }

    pub(crate) fn argument(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ret::INVALID_ARGUMENT, text)
    }

    pub(crate) fn error(text: impl Display) -> Self {
        Self::new(ret::ERROR, text.to_string())
    }

    pub(crate) fn unsupported(what: &str) -> Self {
        Self::new(ret::UNSUPPORTED, format!("{what} is not supported"))
    }

    pub(crate) fn of_parent() -> Self {
        Self {
            cause: Cause::Parent,
            ..Self::error(
                "the context belongs to the process that forked this one; initialize another \
                 one here (rclcpp::init, rclpy.init)",
            )
        }
    }

    pub(crate) fn bad_alloc() -> Self {
        Self::new(ret::BAD_ALLOC, "the allocator returned no memory")
    }
}

/// Splits the outcome of decoding a received sample. A sample that is not of its type is
/// an error of its sender and is dropped ([`pteros_runtime::Core::take_decoded`]).
/// Another failure is returned to the caller.
pub(crate) fn received<T>(decoded: Result<T, impl Into<Failure>>) -> Result<Outcome<T>, String> {
    match decoded.map_err(Into::into) {
        Err(failure) if failure.cause == Cause::Payload => Err(failure.text.into_owned()),
        outcome => Ok(outcome),
    }
}

impl From<pteros_typesupport::Failure> for Failure {
    fn from(failure: pteros_typesupport::Failure) -> Self {
        let (code, cause) = match failure.kind {
            FailureKind::Struct => (ret::ERROR, Cause::Caller),
            FailureKind::Unsupported => (ret::UNSUPPORTED, Cause::Caller),
            FailureKind::Memory => (ret::BAD_ALLOC, Cause::Caller),
            FailureKind::Payload => (ret::ERROR, Cause::Payload),
        };
        Self {
            code,
            text: failure.text.into(),
            cause,
        }
    }
}

/// Runs an rmw function. A failure or panic becomes an error state and a return code,
/// because unwinding must not cross the C boundary.
pub(crate) fn run(name: &str, body: impl FnOnce() -> Outcome) -> Ret {
    match guarded(name, body) {
        Some(()) => ret::OK,
        None => LAST_CODE.with(std::cell::Cell::get),
    }
}

/// As [`run`], for functions that end an entity. In a forked child they succeed and
/// change nothing, so that a child can exit normally.
pub(crate) fn run_end(name: &str, body: impl FnOnce() -> Outcome) -> Ret {
    run(name, || match body() {
        Err(failure) if failure.cause == Cause::Parent => Ok(()),
        outcome => outcome,
    })
}

/// As [`run`], for functions that set a callback or, with `None`, remove it. Destructors
/// of rclcpp remove callbacks, and a failure there ends the program.
pub(crate) fn run_set_callback(
    name: &str,
    callback: EventCallback,
    body: impl FnOnce() -> Outcome,
) -> Ret {
    match callback {
        Some(_) => run(name, body),
        None => run_end(name, body),
    }
}

thread_local! {
    /// Return code of this thread's last failure. Has no destructor, so that a static
    /// destructor may shut down a context.
    static LAST_CODE: std::cell::Cell<Ret> = const { std::cell::Cell::new(ret::ERROR) };
}

/// As [`run`], for functions that return a pointer.
pub(crate) fn create<T>(name: &str, body: impl FnOnce() -> Outcome<*mut T>) -> *mut T {
    guarded(name, body).unwrap_or(std::ptr::null_mut())
}

fn guarded<T>(name: &str, body: impl FnOnce() -> Outcome<T>) -> Option<T> {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Failure::error(format!("internal error: {}", text.unwrap_or("unknown")))
        }
    };
    LAST_CODE.with(|code| code.set(failure.code));
    if failure.code == ret::TIMEOUT {
        // A timeout is no error: rcl does not read its text, and the next error would be
        // reported as overwriting it.
        return None;
    }
    host::set_error(&format!("{name}: {}", failure.text));
    None
}

/// The reference behind a pointer argument.
///
/// # Safety
/// A pointer that is not null points to a `T` that lives for `'a`.
pub(crate) unsafe fn non_null<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    // SAFETY: as for this function.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format!("argument {what} is null")))
}

/// As [`non_null`], for a mutable reference.
///
/// # Safety
/// As for [`non_null`], and nothing else uses the `T` meanwhile.
pub(crate) unsafe fn non_null_mut<'a, T>(pointer: *mut T, what: &str) -> Outcome<&'a mut T> {
    // SAFETY: as for this function.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::argument(format!("argument {what} is null")))
}

/// Checks that a handle belongs to this middleware.
///
/// # Safety
/// `identifier` is null or a C string.
pub(crate) unsafe fn check_identifier(identifier: *const c_char, what: &str) -> Outcome {
    if identifier == IDENTIFIER.as_ptr() {
        return Ok(());
    }
    // SAFETY: as for this function.
    let other = (!identifier.is_null()).then(|| unsafe { CStr::from_ptr(identifier) });
    if other == Some(IDENTIFIER) {
        return Ok(());
    }
    Err(Failure::new(
        ret::INCORRECT_RMW_IMPLEMENTATION,
        format!(
            "the {what} is of middleware {}, not of rmw_pteros_cpp",
            other.map_or("(none)".into(), CStr::to_string_lossy)
        ),
    ))
}

/// The text of a C string argument.
///
/// # Safety
/// A pointer that is not null is a C string that lives for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("argument {what} is null")));
    }
    // SAFETY: as for this function.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument(format!("argument {what} {text:?} is not UTF-8")))
}
