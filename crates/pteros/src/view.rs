//! Messages read where they lie: subscriptions whose callbacks get views.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, from_payload};
use pteros_msg::key::from_key_payload;
use pteros_msg::view::{Viewable, view_payload};
use pteros_rmw::sample::Body;

use crate::error::CreateError;
use crate::instance::Change;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{
    Decoded, Decoder, KeyDecoder, Subscription, SubscriptionOptions, downcast,
};

/// A received message that nobody has copied: the publisher's own value within
/// a process, a chunk of shared memory, or the bytes that a datagram brought.
///
/// While it is held, that memory is not used again. A publisher has a limited
/// pool ([`SharedMemoryOptions`](crate::SharedMemoryOptions)): who needs a
/// message for long copies it ([`InPlace::to_message`]).
#[derive(Clone)]
pub struct InPlace<T>(Held<T>);

#[derive(Clone)]
enum Held<T> {
    Shared(Arc<T>),
    Serialized(Bytes),
}

impl<T: Viewable> InPlace<T> {
    /// The message where it lies. Reads its small fields now; allocates only for
    /// sequences of messages or strings, and for what cannot be lent (see
    /// [`msg::view`](crate::msg::view)).
    ///
    /// # Errors
    /// The bytes are not of the type. Of a message that came by
    /// [`Node::create_view_subscription`] that was looked at already, so only a
    /// broken process that writes its shared memory meanwhile brings it about.
    pub fn view(&self) -> Result<T::View<'_>, DecodeError> {
        match &self.0 {
            Held::Shared(value) => Ok(value.as_view()),
            Held::Serialized(bytes) => view_payload::<T>(bytes),
        }
    }

    /// A copy, which needs the memory no longer.
    ///
    /// # Errors
    /// As [`InPlace::view`].
    pub fn to_message(&self) -> Result<T, DecodeError> {
        match &self.0 {
            Held::Shared(value) => Ok(T::clone(value)),
            Held::Serialized(bytes) => from_payload(bytes),
        }
    }
}

impl<T: Viewable> fmt::Debug for InPlace<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            Ok(view) => view.fmt(f),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// What a callback of [`Node::create_view_subscription`] is handed: the message
/// where it lies. Dereferences to the type's view: `view::Image<'_>` of the
/// module of `Image`, or the message itself where it has no strings and
/// sequences.
pub struct View<'a, T: Viewable> {
    view: T::View<'a>,
    sample: &'a Sample<InPlace<T>>,
}

impl<'a, T: Viewable> View<'a, T> {
    fn of(sample: &'a Sample<InPlace<T>>) -> Result<Self, DecodeError> {
        let view = sample.view()?;
        Ok(Self { view, sample })
    }

    /// What is known about the message.
    pub fn info(&self) -> &'a SampleInfo {
        self.sample.info()
    }

    /// The message for longer than the callback, still where it lies. Copies
    /// and allocates nothing.
    pub fn keep(&self) -> InPlace<T> {
        InPlace::clone(self.sample)
    }
}

impl<'a, T: Viewable> Deref for View<'a, T> {
    type Target = T::View<'a>;

    fn deref(&self) -> &T::View<'a> {
        &self.view
    }
}

impl<T: Viewable> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl Node {
    /// A subscription whose callback reads messages where they lie, whatever
    /// path they took. An image, a point cloud or a scan that comes through
    /// shared memory is not copied at all; small fields are read out.
    ///
    /// ```no_run
    /// use pteros::View;
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.node("viewer")?;
    /// let _images = node.create_view_subscription("camera", 10, |image: View<'_, Image>| {
    ///     if image.encoding == "mono8" {
    ///         let sum: u64 = image.data.iter().map(|&pixel| u64::from(pixel)).sum();
    ///         let pixels = u64::from(image.width) * u64::from(image.height);
    ///         println!("mean {} by {:?}", sum / pixels.max(1), image.info().path);
    ///     }
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_view_subscription<T: Viewable>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
        callback: impl FnMut(View<'_, T>) + Send + 'static,
    ) -> Result<Subscription<InPlace<T>>, CreateError> {
        let options = SubscriptionOptions::new(qos).view_callback(callback);
        self.create_view_subscription_with(topic, options)
    }

    /// A subscription to messages where they lie, with options: with a
    /// [`SubscriptionOptions::view_callback`], or without any to be polled with
    /// [`Subscription::take`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_view_subscription_with<T: Viewable>(
        &self,
        topic: &str,
        options: SubscriptionOptions<InPlace<T>>,
    ) -> Result<Subscription<InPlace<T>>, CreateError> {
        let decode: KeyDecoder<InPlace<T>> =
            Box::new(|key| from_key_payload(key).map(|key| InPlace(Held::Shared(Arc::new(key)))));
        self.typed_subscription::<T, _>(topic, (decoder(), decode), options)
    }
}

impl<T: Viewable> SubscriptionOptions<InPlace<T>> {
    /// Calls `callback` from the node's executor with a view of each message,
    /// never two at a time.
    pub fn view_callback(mut self, mut callback: impl FnMut(View<'_, T>) + Send + 'static) -> Self {
        self.callback = Some(Box::new(move |change| {
            let Change::Sample(sample) = change else {
                return Ok(());
            };
            match View::of(&sample) {
                Ok(view) => callback(view),
                Err(error) => return Err(Box::new((*sample.info(), error))),
            }
            Ok(())
        }));
        self
    }
}

/// Looks into nothing: whoever wants the view reads it.
fn decoder<T: Viewable>() -> Decoder<InPlace<T>> {
    Box::new(|body| {
        let held = match body {
            Body::Serialized(bytes) => Held::Serialized(bytes),
            Body::Shared(value) => match downcast::<T>(value) {
                Ok(value) => Held::Shared(value),
                // Routes are made by type, so this is our bug; not the user's.
                Err(_) => unreachable!("a shared sample of another type reached a view"),
            },
        };
        Ok(Decoded::Owned(InPlace(held)))
    })
}
