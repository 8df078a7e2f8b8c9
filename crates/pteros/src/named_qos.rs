//! Names with QoS words: `"chatter".keep_last(10).reliable()`.
//!
//! What the `create_*` methods of a [`Node`](crate::Node) take is made from a name. A
//! bare `&str` has the default profile of its entity. The words of [`QosProfile`]
//! follow it directly ([`NamedQosExt`]); the further options of an entity are on its
//! options type, for example [`PublisherOptions`](crate::PublisherOptions).

use std::time::Duration;

use crate::qos::QosProfile;

/// The name of a topic, service or action, with a QoS profile if one was given.
///
/// A `&str`, a `String` and a name with QoS words ([`NamedQosExt`]) convert into it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedQos {
    /// The name, before expansion and remapping.
    pub name: String,
    /// The profile; `None` for the default of the entity.
    pub qos: Option<QosProfile>,
}

impl NamedQos {
    fn change(mut self, change: impl FnOnce(QosProfile) -> QosProfile) -> Self {
        self.qos = Some(change(self.qos.unwrap_or_default()));
        self
    }
}

impl From<&str> for NamedQos {
    fn from(name: &str) -> Self {
        String::from(name).into()
    }
}

impl From<&String> for NamedQos {
    fn from(name: &String) -> Self {
        name.clone().into()
    }
}

impl From<String> for NamedQos {
    fn from(name: String) -> Self {
        Self { name, qos: None }
    }
}

/// QoS words on names. In the prelude.
///
/// ```no_run
/// use pteros::interfaces::std_msgs::msg::String as Text;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("talker")?;
/// let chatter = node.create_publisher::<Text>("chatter".keep_last(10).reliable())?;
/// let map = node.create_publisher::<Text>("map".qos(1).transient_local())?;
/// # Ok(())
/// # }
/// ```
pub trait NamedQosExt: Into<NamedQos> {
    /// Sets the whole profile; a number is the depth of the default profile.
    fn qos(self, qos: impl Into<QosProfile>) -> NamedQos {
        let qos = qos.into();
        self.into().change(|_| qos)
    }

    /// See [`QosProfile::keep_last`].
    fn keep_last(self, depth: usize) -> NamedQos {
        self.into().change(|qos| qos.keep_last(depth))
    }

    /// See [`QosProfile::keep_all`].
    fn keep_all(self) -> NamedQos {
        self.into().change(QosProfile::keep_all)
    }

    /// See [`QosProfile::reliable`].
    fn reliable(self) -> NamedQos {
        self.into().change(QosProfile::reliable)
    }

    /// See [`QosProfile::best_effort`].
    fn best_effort(self) -> NamedQos {
        self.into().change(QosProfile::best_effort)
    }

    /// See [`QosProfile::volatile`].
    fn volatile(self) -> NamedQos {
        self.into().change(QosProfile::volatile)
    }

    /// See [`QosProfile::transient_local`].
    fn transient_local(self) -> NamedQos {
        self.into().change(QosProfile::transient_local)
    }

    /// See [`QosProfile::deadline`].
    fn deadline(self, period: Duration) -> NamedQos {
        self.into().change(|qos| qos.deadline(period))
    }

    /// See [`QosProfile::lifespan`].
    fn lifespan(self, age: Duration) -> NamedQos {
        self.into().change(|qos| qos.lifespan(age))
    }

    /// The profile [`QosProfile::sensor_data`]: best effort, keep last 5.
    fn sensor_data(self) -> NamedQos {
        self.qos(QosProfile::sensor_data())
    }
}

impl<N: Into<NamedQos>> NamedQosExt for N {}

/// Lets names, with or without QoS words, convert into the options of an entity.
macro_rules! options_from_names {
    ($options:ident<$T:ident: $bound:path>) => {
        options_from_names!(@ $options, $T, $bound, &str, &String, String, $crate::named_qos::NamedQos);
    };
    (@ $options:ident, $T:ident, $bound:path, $($name:ty),*) => {
        $(impl<$T: $bound> From<$name> for $options<$T>
        where
            $T::Support: Default,
        {
            fn from(name: $name) -> Self {
                Self::new(name)
            }
        })*
    };
}
pub(crate) use options_from_names;
