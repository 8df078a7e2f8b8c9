//! Zero-copy reading: subscriptions whose callbacks get in-place views of messages.
//!
//! [`MessageView`] borrows a received payload where it lies: in the publisher's
//! value (intra-process), in a shared-memory chunk or in the received datagram.

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, from_payload};
use pteros_msg::key::from_key_payload;
use pteros_msg::view::{Viewable, view_payload};
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::SampleBody;

use crate::message_type_info::MessageTypeInfo;
use crate::node::{CallbackOutput, UserFuture};
use crate::sample::{Sample, SampleInfo, UndecodableSample};
use crate::subscription::{
    BodyDecoder, Decoded, SubscriptionDecoders, SubscriptionMessage, SubscriptionSupport, downcast,
};

/// A received message that was not copied.
///
/// It is the publisher's own value within a process, a shared-memory chunk, or the
/// bytes that a datagram carried. While it is held, that memory is not reused. A
/// publisher's chunk pool is limited
/// ([`SharedMemoryOptions`](crate::shared_memory::SharedMemoryOptions)), so copy a message that
/// you keep for long ([`InPlaceMessage::to_message`]).
#[derive(Clone)]
pub struct InPlaceMessage<T>(InPlaceBody<T>);

#[derive(Clone)]
enum InPlaceBody<T> {
    Shared(Arc<T>),
    Serialized(Bytes),
}

impl<T: Viewable> InPlaceMessage<T> {
    /// The in-place view of the message.
    ///
    /// Reads small fields now. Allocates only for sequences of messages or strings,
    /// and for fields that cannot be borrowed (see
    /// [`msg::view`](crate::msg::view)).
    ///
    /// # Errors
    /// The bytes are not of the type. Messages of
    /// an [`in_place`] callback were validated before the callback. They fail only if a
    /// faulty process modifies its shared memory meanwhile.
    pub fn view(&self) -> Result<T::View<'_>, DecodeError> {
        match &self.0 {
            InPlaceBody::Shared(value) => Ok(value.as_view()),
            InPlaceBody::Serialized(bytes) => view_payload::<T>(bytes),
        }
    }

    /// A copy of the message, independent of the received memory.
    ///
    /// # Errors
    /// As [`InPlaceMessage::view`].
    pub fn to_message(&self) -> Result<T, DecodeError> {
        match &self.0 {
            InPlaceBody::Shared(value) => Ok(T::clone(value)),
            InPlaceBody::Serialized(bytes) => from_payload(bytes),
        }
    }
}

impl<T: Viewable> fmt::Debug for InPlaceMessage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view() {
            Ok(view) => view.fmt(f),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// In-place view of a message, for callbacks made by [`in_place`].
///
/// Dereferences to the type's view, `view::Image<'_>` in the module of `Image`, or
/// to the message itself if it has no strings and sequences.
pub struct MessageView<'a, T: Viewable> {
    view: T::View<'a>,
    sample: &'a Sample<InPlaceMessage<T>>,
}

impl<'a, T: Viewable> MessageView<'a, T> {
    fn of(sample: &'a Sample<InPlaceMessage<T>>) -> Result<Self, DecodeError> {
        let view = sample.view()?;
        Ok(Self { view, sample })
    }

    /// Source, timestamps and instance of the message.
    pub fn info(&self) -> &'a SampleInfo {
        self.sample.info()
    }

    /// The message for longer than the callback, still in place. Copies and
    /// allocates nothing.
    pub fn keep(&self) -> InPlaceMessage<T> {
        InPlaceMessage::clone(self.sample)
    }
}

impl<'a, T: Viewable> Deref for MessageView<'a, T> {
    type Target = T::View<'a>;

    fn deref(&self) -> &T::View<'a> {
        &self.view
    }
}

impl<T: Viewable> fmt::Debug for MessageView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

/// A subscription callback that reads messages in place: zero-copy.
///
/// Wrap a callback that takes a [`MessageView`], and pass the result to
/// [`Node::create_subscription`](crate::Node::create_subscription). This works for every
/// delivery path. An image, a point cloud or a scan received through shared memory is
/// not copied at all; only small fields are read out. A message that cannot be read
/// does not reach the callback and is counted
/// ([`Subscription::undecodable_count`](crate::Subscription::undecodable_count)).
///
/// ```no_run
/// use pteros::subscription::{MessageView, in_place};
/// use pteros::interfaces::sensor_msgs::msg::Image;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("viewer")?;
/// let brightness = in_place(|image: MessageView<'_, Image>| {
///     if image.encoding == "mono8" {
///         let sum: u64 = image.data.iter().map(|&pixel| u64::from(pixel)).sum();
///         let pixels = u64::from(image.width) * u64::from(image.height);
///         println!("mean {} by {:?}", sum / pixels.max(1), image.info().delivery_path);
///     }
/// });
/// let _images = node.create_subscription("camera", brightness)?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
pub fn in_place<T: Viewable>(
    mut callback: impl FnMut(MessageView<'_, T>) + Send + 'static,
) -> impl FnMut(Sample<InPlaceMessage<T>>) -> InPlaceResult + Send + 'static {
    move |sample| {
        InPlaceResult(match MessageView::of(&sample) {
            Ok(view) => {
                callback(view);
                Ok(())
            }
            Err(error) => Err(Box::new((*sample.info(), error))),
        })
    }
}

/// Whether a callback made by [`in_place`] could read its message.
#[derive(Debug)]
pub struct InPlaceResult(Result<(), UndecodableSample>);

impl CallbackOutput for InPlaceResult {
    const IS_FUTURE: bool = false;

    fn into_future(self) -> Option<UserFuture> {
        None
    }

    fn into_result(self) -> Result<(), UndecodableSample> {
        self.0
    }
}

impl<T: Viewable> SubscriptionMessage for InPlaceMessage<T> {
    type Support = ();

    fn subscription_support(_: &()) -> SubscriptionSupport<'_, Self> {
        SubscriptionSupport {
            type_info: MessageTypeInfo::of::<T>(&()),
            form: DeliveryForm::Type(TypeId::of::<T>()),
            decoders: SubscriptionDecoders {
                message: decoder(),
                key: Box::new(|key| {
                    let key = from_key_payload(key)?;
                    Ok(InPlaceMessage(InPlaceBody::Shared(Arc::new(key))))
                }),
            },
        }
    }
}

/// Decodes nothing: the bytes are read when a view is requested.
fn decoder<T: Viewable>() -> BodyDecoder<InPlaceMessage<T>> {
    Box::new(|body| {
        let held = match body {
            SampleBody::Serialized(bytes) => InPlaceBody::Serialized(bytes),
            SampleBody::Shared(value) => match downcast::<T>(value) {
                Ok(value) => InPlaceBody::Shared(value),
                // Routes are created by type, so this is a bug here, not in user
                // code.
                Err(_) => unreachable!("a shared sample of another type reached a view"),
            },
        };
        Ok(Decoded::Owned(InPlaceMessage(held)))
    })
}
