//! Known types: the types that endpoints of a context have or had, by RIHS01 type
//! hash, each as the function that describes it.
//!
//! The type description service ([`crate::type_description`]) reads them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pteros_msg::describe::TypeDescription;
use pteros_msg::dynamic::DynamicService;
use pteros_msg::hash::TypeHash;
use pteros_msg::library::InterfaceLibrary;
use pteros_runtime::content_filter::MessageType;

/// The most types of a context; further ones are not described. It bounds a process
/// that keeps creating types.
const TYPES_MAX: usize = 10_000;

/// How a type is described.
#[derive(Clone)]
pub enum TypeDescriptionSource {
    /// A message type.
    Message(MessageType, DefinitionsFn),
    /// A service type itself.
    Service(fn() -> TypeDescription, DefinitionsFn),
    /// The same of one that is known at run time only.
    DynamicService(Box<DynamicService>),
}

/// The definitions that a type was generated from, if its package is not a standard
/// one.
pub type DefinitionsFn = fn() -> Option<&'static InterfaceLibrary>;

/// The types that endpoints of a context have or had. Thread-safe.
#[derive(Default)]
pub struct KnownTypes {
    types: Mutex<BTreeMap<TypeHash, TypeDescriptionSource>>,
    /// Type description services of the context's nodes.
    servers: AtomicUsize,
}

impl KnownTypes {
    /// Adds a type unless its hash is known, or the table is full (10 000 types).
    pub fn register(
        &self,
        hash: Option<TypeHash>,
        described: impl FnOnce() -> TypeDescriptionSource,
    ) {
        let mut types = self.types.lock();
        if let Some(hash) = hash
            && types.len() < TYPES_MAX
        {
            types.entry(hash).or_insert_with(described);
        }
    }

    /// Counts a type description service.
    pub fn add_server(&self) {
        self.servers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one, unless the context has one. Returns whether it had none.
    pub fn add_first_server(&self) -> bool {
        let add = self
            .servers
            .compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
        add.is_ok()
    }

    /// Counts one less.
    pub fn remove_server(&self) {
        self.servers.fetch_sub(1, Ordering::Relaxed);
    }

    /// The description of a type and the definitions that it was generated from. `None`
    /// if the type is unknown, or its description is.
    pub fn describe(&self, hash: &TypeHash) -> Option<(TypeDescription, DefinitionsFn)> {
        let described = self.types.lock().get(hash).cloned()?;
        match described {
            TypeDescriptionSource::Message(MessageType::Unknown | MessageType::OnDemand(_), _) => {
                None
            }
            TypeDescriptionSource::Message(MessageType::Described { describe, .. }, texts) => {
                Some((describe().clone(), texts))
            }
            TypeDescriptionSource::Message(MessageType::Dynamic(ty), texts) => {
                Some((ty.description(), texts))
            }
            TypeDescriptionSource::Service(describe, texts) => Some((describe(), texts)),
            TypeDescriptionSource::DynamicService(ty) => Some((ty.description()?, || None)),
        }
    }
}
