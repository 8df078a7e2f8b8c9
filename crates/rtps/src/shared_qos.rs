//! Shared QoS: equal policies of many endpoints, stored once.

use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use crate::qos::EndpointQos;

/// An endpoint's policies, shared with all endpoints that announce the same.
///
/// A clone increments a reference count. A change makes a private copy first.
#[derive(Clone, Default)]
pub struct SharedQos(Arc<EndpointQos>);

impl From<EndpointQos> for SharedQos {
    fn from(qos: EndpointQos) -> Self {
        Self(Arc::new(qos))
    }
}

impl Deref for SharedQos {
    type Target = EndpointQos;

    fn deref(&self) -> &EndpointQos {
        &self.0
    }
}

impl DerefMut for SharedQos {
    fn deref_mut(&mut self) -> &mut EndpointQos {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for SharedQos {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for SharedQos {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for SharedQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::History;

    fn with_depth(depth: u32) -> SharedQos {
        let history = History::KeepLast(depth);
        EndpointQos {
            history,
            ..EndpointQos::default()
        }
        .into()
    }

    #[test]
    fn a_change_of_shared_qos_makes_a_private_copy() {
        let all = [(); 3].map(|()| with_depth(7));
        let mut copy = all[1].clone();
        assert!(Arc::ptr_eq(&copy.0, &all[1].0));
        copy.history = History::KeepAll;
        assert_eq!(all[1], all[2]);
        assert_ne!(copy, all[1]);
    }
}
