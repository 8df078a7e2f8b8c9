//! Statuses of functions, and the error text of each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pteros::action::ActionError;
use pteros::error::EndpointError;
use pteros::error::{ContextError, CreateError, PublishError};
use pteros::executors::ExecutorError;
use pteros::lifecycle::TransitionError;
use pteros::parameter::ParameterError;
use pteros::service::CallError;
use pteros::tf::LookupError;
use pteros_typesupport::FailureKind;

use crate::argument::c_text;

/// `pteros_status_t`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The call did what it says.
    Ok = 0,
    /// It failed; see the text.
    Error = 1,
    /// An argument is null or of no use.
    InvalidArgument = 2,
    /// The time has passed.
    Timeout = 3,
    /// The context is shut down.
    ShutDown = 4,
    /// There is no memory.
    NoMemory = 5,
    /// The type or the library cannot do it.
    Unsupported = 6,
    /// The other side refused.
    Rejected = 7,
}

/// A failure of a function: status and text.
pub(crate) struct Error {
    status: Status,
    text: String,
    /// Whether a null pointer is the reason, so an earlier failure may have made it.
    is_null: bool,
}

pub(crate) type Outcome<T = ()> = Result<T, Error>;

impl Error {
    pub(crate) fn new(status: Status, text: impl Display) -> Self {
        Self {
            status,
            text: text.to_string(),
            is_null: false,
        }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self {
            is_null: true,
            ..Self::argument(format!("argument {what} is null"))
        }
    }

    pub(crate) fn argument(text: impl Display) -> Self {
        Self::new(Status::InvalidArgument, text)
    }

    pub(crate) fn failed(text: impl Display) -> Self {
        Self::new(Status::Error, text)
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl From<pteros_typesupport::Failure> for Error {
    fn from(failure: pteros_typesupport::Failure) -> Self {
        let status = match failure.kind {
            FailureKind::Struct => Status::InvalidArgument,
            FailureKind::Payload => Status::Error,
            FailureKind::Unsupported => Status::Unsupported,
            FailureKind::Memory => Status::NoMemory,
        };
        Self::new(status, failure.text)
    }
}

impl From<ContextError> for Error {
    fn from(error: ContextError) -> Self {
        Self::failed(error)
    }
}

impl From<CreateError> for Error {
    fn from(error: CreateError) -> Self {
        Self::new(of_creation(&error), error)
    }
}

fn of_creation(error: &CreateError) -> Status {
    let of_endpoint = |source: &EndpointError| match source {
        EndpointError::ShutDown => Status::ShutDown,
        EndpointError::Filter(_) => Status::InvalidArgument,
        _ => Status::Error,
    };
    match error {
        CreateError::ShutDown(_) => Status::ShutDown,
        CreateError::Endpoint { source, .. } => of_endpoint(source),
        CreateError::Service { source, .. } => of_endpoint(source),
        CreateError::Part { source, .. } => of_creation(source),
        _ => Status::Error,
    }
}

fn of_publishing(error: &PublishError) -> Status {
    match error {
        PublishError::ShutDown => Status::ShutDown,
        PublishError::Invalid { .. } => Status::InvalidArgument,
        _ => Status::Error,
    }
}

impl From<ParameterError> for Error {
    fn from(error: ParameterError) -> Self {
        Self::failed(error)
    }
}

impl From<ExecutorError> for Error {
    fn from(error: ExecutorError) -> Self {
        Self::failed(error)
    }
}

impl From<PublishError> for Error {
    fn from(error: PublishError) -> Self {
        Self::new(of_publishing(&error), error)
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let status = match &error {
            CallError::ShutDown { .. } => Status::ShutDown,
            CallError::Publish { source, .. } => of_publishing(source),
            CallError::Create(source) => of_creation(source),
            CallError::NoServer { .. } => Status::Timeout,
            CallError::Refused { .. } => Status::Rejected,
            error if error.is_timeout() => Status::Timeout,
            _ => Status::Error,
        };
        Self::new(status, error)
    }
}

impl From<ActionError> for Error {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Call(error) => error.into(),
            error @ (ActionError::Rejected { .. } | ActionError::CancelRejected { .. }) => {
                Self::new(Status::Rejected, error)
            }
            error => Self::failed(error),
        }
    }
}

impl From<TransitionError> for Error {
    fn from(error: TransitionError) -> Self {
        let status = match &error {
            TransitionError::Illegal { .. } | TransitionError::Busy { .. } => Status::Rejected,
            _ => Status::Error,
        };
        Self::new(status, error)
    }
}

impl From<LookupError> for Error {
    fn from(error: LookupError) -> Self {
        let status = match &error {
            LookupError::EmptyFrameId(_) => Status::InvalidArgument,
            LookupError::TimedOut { .. } => Status::Timeout,
            _ => Status::Error,
        };
        Self::new(status, error)
    }
}

/// The last failure of a thread.
struct Last {
    status: Status,
    text: CString,
    /// The last failure that was not a null argument.
    cause: String,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last {
        status: Status::Ok,
        text: CString::default(),
        cause: String::new(),
    });
}

/// Notes a failure as the last one of this thread. That of a null argument also names the
/// failure before it, which often has made the pointer null.
pub(crate) fn note(function: &str, error: &Error) {
    let own = format!("{function}: {}", error.text);
    // At the end of a thread the text has no reader any more.
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        last.status = error.status;
        if !error.is_null {
            last.cause.clone_from(&own);
            last.text = c_text(&own);
        } else if last.cause.is_empty() {
            last.text = c_text(&own);
        } else {
            last.text = c_text(&format!("{own}; the failure before: {}", last.cause));
        }
    });
}

fn guarded<T>(function: &str, body: impl FnOnce() -> Outcome<T>) -> Result<T, Status> {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Error::failed(format!("internal error: {}", text.unwrap_or("unknown")))
        }
    };
    note(function, &error);
    Err(error.status)
}

/// Runs the body of a function that returns a status.
pub(crate) fn run(function: &str, body: impl FnOnce() -> Outcome) -> Status {
    match guarded(function, body) {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// Runs the body of a function that returns a new handle, null after a failure.
pub(crate) fn create<T>(function: &str, body: impl FnOnce() -> Outcome<T>) -> Option<Box<T>> {
    guarded(function, body).ok().map(Box::new)
}

/// Runs the body of a function that returns a value, `default` after a failure.
pub(crate) fn value<T>(function: &str, default: T, body: impl FnOnce() -> Outcome<T>) -> T {
    guarded(function, body).unwrap_or(default)
}

/// Frees a handle. A panic of its end is logged by the panic hook and ends here.
pub(crate) fn free<T>(function: &str, handle: Option<Box<T>>) {
    value(function, (), || {
        drop(handle);
        Ok(())
    });
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_error_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().text.as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_error_status() -> Status {
    LAST.try_with(|last| last.borrow().status)
        .unwrap_or(Status::Error)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
