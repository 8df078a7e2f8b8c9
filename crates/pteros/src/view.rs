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

use crate::error::CreateError;
use crate::message_type_info::MessageTypeInfo;
use crate::node::Node;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{
    AnyCallback, BodyDecoder, Decoded, Subscription, SubscriptionDecoders, SubscriptionMessage,
    SubscriptionOptions, SubscriptionSupport, downcast,
};
use crate::subscription_group::SubscriptionGroup;

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
    /// [`Node::create_view_subscription`] were validated before the callback. They
    /// fail only if a faulty process modifies its shared memory meanwhile.
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

/// In-place view of a message, for callbacks of [`Node::create_view_subscription`].
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

impl Node {
    /// Creates a subscription whose callback reads messages in place: zero-copy.
    ///
    /// This works for every delivery path. An image, a point cloud or a scan
    /// received through shared memory is not copied at all; only small fields are
    /// read out.
    ///
    /// ```no_run
    /// use pteros::subscription::MessageView;
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("viewer")?;
    /// let _images = node.create_view_subscription("camera", |image: MessageView<'_, Image>| {
    ///     if image.encoding == "mono8" {
    ///         let sum: u64 = image.data.iter().map(|&pixel| u64::from(pixel)).sum();
    ///         let pixels = u64::from(image.width) * u64::from(image.height);
    ///         println!("mean {} by {:?}", sum / pixels.max(1), image.info().delivery_path);
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
        options: impl Into<SubscriptionOptions<InPlaceMessage<T>>>,
        callback: impl FnMut(MessageView<'_, T>) + Send + 'static,
    ) -> Result<Subscription<InPlaceMessage<T>>, CreateError> {
        let options = with_view_callback(options.into(), callback);
        self.core().create_subscription(options)
    }
}

impl SubscriptionGroup {
    /// Creates a subscription of the group that reads messages in place.
    ///
    /// See [`Node::create_view_subscription`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_view_subscription<T: Viewable>(
        &self,
        options: impl Into<SubscriptionOptions<InPlaceMessage<T>>>,
        callback: impl FnMut(MessageView<'_, T>) + Send + 'static,
    ) -> Result<Subscription<InPlaceMessage<T>>, CreateError> {
        self.create(with_view_callback(options.into(), callback))
    }
}

/// Calls `callback` with a view of each message.
fn with_view_callback<T: Viewable>(
    mut options: SubscriptionOptions<InPlaceMessage<T>>,
    mut callback: impl FnMut(MessageView<'_, T>) + Send + 'static,
) -> SubscriptionOptions<InPlaceMessage<T>> {
    options.callback = Some(AnyCallback::Plain(Box::new(move |sample| {
        match MessageView::of(&sample) {
            Ok(view) => callback(view),
            Err(error) => return Err(Box::new((*sample.info(), error))),
        }
        Ok(())
    })));
    options
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
