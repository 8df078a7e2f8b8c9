//! Dynamic service type: the message types of a service known at run time only.

use super::types::DynamicType;
use crate::describe::{TypeDescription, describe_service};
use crate::hash::TypeHash;
use crate::library::{InterfaceLibrary, LibraryError};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A service type known at run time: its request and response types.
///
/// `Client<DynamicService>` and `Service<DynamicService>` carry
/// [`DynamicMessage`](super::DynamicMessage)s.
#[derive(Clone, Debug)]
pub struct DynamicService {
    name: String,
    request: DynamicType,
    response: DynamicType,
    /// The introspection event type, if the library defines its parts.
    event: Option<DynamicType>,
    hash: Option<TypeHash>,
}

/// Why the types of a service or an action could not be loaded.
pub enum InterfaceTypeError {
    /// The definition does not exist or cannot be read.
    Library(LibraryError),
    /// A definition uses something that messages do not support.
    Type {
        /// The service or action type.
        name: String,
        /// The problem.
        reason: String,
    },
}

crate::debug_as_display!(InterfaceTypeError);

impl fmt::Display for InterfaceTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Type { name, reason } => write!(f, "type {name}: {reason}"),
        }
    }
}

impl core::error::Error for InterfaceTypeError {}

impl From<LibraryError> for InterfaceTypeError {
    fn from(error: LibraryError) -> Self {
        Self::Library(error)
    }
}

impl DynamicService {
    /// Loads the types of a service, by its full name, from `library`.
    ///
    /// # Errors
    /// See [`InterfaceTypeError`].
    pub fn new(library: &InterfaceLibrary, name: &str) -> Result<Self, InterfaceTypeError> {
        let part = |suffix: &str| {
            let description = library.describe(&format!("{name}{suffix}"))?;
            DynamicType::new(&description).map_err(|error| InterfaceTypeError::Type {
                name: name.into(),
                reason: error.to_string(),
            })
        };
        Ok(Self {
            name: name.into(),
            request: part("_Request")?,
            response: part("_Response")?,
            event: part("_Event").ok(),
            hash: library.type_hash(name).ok(),
        })
    }

    /// The types of a service, by its full name, from its two message types.
    pub fn from_parts(
        name: impl Into<String>,
        request: DynamicType,
        response: DynamicType,
    ) -> Self {
        Self {
            name: name.into(),
            request,
            response,
            event: None,
            hash: None,
        }
    }

    /// The service type's own RIHS01 hash; `None` where the library lacks
    /// `service_msgs`, and for a type made from its two message types.
    pub fn hash(&self) -> Option<TypeHash> {
        self.hash
    }

    /// For example `example_interfaces/srv/AddTwoInts`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The request's type.
    pub fn request(&self) -> &DynamicType {
        &self.request
    }

    /// The response's type.
    pub fn response(&self) -> &DynamicType {
        &self.response
    }

    /// Its description, with those of its request, response and event. `None` where
    /// [`DynamicService::event`] is.
    pub fn description(&self) -> Option<TypeDescription> {
        let [request, response] = [&self.request, &self.response].map(DynamicType::description);
        let event = self.event.as_ref()?.description();
        Some(describe_service(&self.name, &request, &response, &event))
    }

    /// The type of the service's introspection events; `None` where the library
    /// lacks `service_msgs`.
    pub fn event(&self) -> Option<&DynamicType> {
        self.event.as_ref()
    }
}
