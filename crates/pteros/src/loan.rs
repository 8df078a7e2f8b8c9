//! Loaned messages: zero-copy publishing.
//!
//! A loaned message lies in a chunk of the shared-memory transport (or in this
//! process's memory), is written in place and published without a copy. Layout
//! rules are those of [`FixedLayout`]; the chunk pool is the runtime's.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use bytes::Bytes;
use pteros_msg::cdr::{
    HEADER_BYTES, Representation, ReservedSequence, fixed_header, payload_len,
    payload_len_reserving, to_payload_reserving, to_payload_slice,
};
use pteros_msg::message::Message;
use pteros_msg::plain::{FixedLayout, bytes_of, values_in, values_in_mut};
use pteros_msg::type_support::MessageTypeSupport;
use pteros_msg::view::{Viewable, view_payload};
use pteros_runtime::error::PublishError;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::shm_transport::Chunk;

use crate::payload_memory::PayloadMemory;
use crate::publisher::{Publisher, PublisherCore};

/// A loaned message, or the large sequence of one: zero-copy.
///
/// It is written in place and then [published](Publisher::publish_loaned).
///
/// It dereferences to what is to be written: the message itself
/// ([`Publisher::borrow_loaned_message`]), or the elements of the sequence
/// ([`Publisher::borrow_loaned_sequence`]). Dropping it publishes nothing and
/// returns its memory. It may outlive its publisher. It counts as in use meanwhile,
/// so many loans exhaust the chunk pool.
///
/// The memory is shared with other processes if the publisher has subscriptions
/// there that are connected by shared memory and the message exceeds 512 bytes.
/// Otherwise it belongs to this process. That is decided at creation; if it changes
/// later, a copy at most is needed.
pub struct LoanedMessage<T, V: ?Sized = T> {
    memory: LoanMemory,
    /// Where the value lies in the payload.
    body_range: Range<usize>,
    /// The value, if it cannot lie in the payload itself.
    unaligned: Option<UnalignedValue<V>>,
    representation: Representation,
    message: PhantomData<fn() -> T>,
}

/// A value that is copied into the payload when it is published.
struct UnalignedValue<V: ?Sized> {
    value: Box<V>,
    write: fn(&V, &mut [u8], Range<usize>, Representation),
}

impl<T: Message> Publisher<T> {
    /// Borrows a message to be written in place: zero-copy.
    ///
    /// It has default values. As rclcpp's `borrow_loaned_message`.
    ///
    /// Only for types of numbers without gaps between them ([`FixedLayout`]); the
    /// compiler checks it.
    ///
    /// ```no_run
    /// use pteros::interfaces::geometry_msgs::msg::Pose;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("tracker")?;
    /// let publisher = node.create_publisher::<Pose>("pose".keep_last(10))?;
    /// let mut pose = publisher.borrow_loaned_message()?;
    /// pose.position.x = 1.5;
    /// publisher.publish_loaned(pose)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Waits for memory as [`Publisher::publish`] does.
    ///
    /// # Errors
    /// - [`PublishError::NoSharedMemory`] when a reliable publisher's chunk pool is
    ///   exhausted. A best-effort publisher gets memory of this process instead.
    ///   Such a message is lost to shared-memory subscriptions, and counted, if
    ///   there is still no chunk when it is published.
    /// - [`PublishError::TooLarge`], [`PublishError::ShutDown`].
    pub fn borrow_loaned_message(&self) -> Result<LoanedMessage<T>, PublishError>
    where
        T: FixedLayout,
    {
        let mut loan = self.borrow_loaned_message_uninitialized()?;
        *loan = T::default();
        Ok(loan)
    }

    /// As [`Publisher::borrow_loaned_message`], without writing default values.
    ///
    /// The numbers are those that the memory held, perhaps of an earlier message of
    /// this process. For large types that the caller overwrites completely.
    ///
    /// # Errors
    /// As [`Publisher::borrow_loaned_message`].
    pub fn borrow_loaned_message_uninitialized(&self) -> Result<LoanedMessage<T>, PublishError>
    where
        T: FixedLayout,
    {
        let representation = self.raw.representation;
        let begin = HEADER_BYTES;
        let end = begin + size_of::<T>();
        let in_memory_layout = representation == Representation::Xcdr1;
        let len = if in_memory_layout {
            end.next_multiple_of(4)
        } else {
            payload_len(&T::default(), representation)
        };
        let mut memory = self.raw.loan_memory(len)?;
        let bytes = memory.bytes_mut();
        bytes[..begin].copy_from_slice(&fixed_header::<T>());
        if in_memory_layout {
            bytes[end..].fill(0);
        }
        let is_unaligned =
            !in_memory_layout || values_in_mut::<T>(&mut bytes[begin..end]).is_none();
        let unaligned = || UnalignedValue {
            value: Box::new(T::default()),
            write: |value: &T, bytes, _, representation| {
                let written = to_payload_slice(value, representation, bytes);
                debug_assert_eq!(written, Ok(bytes.len()), "its size is fixed");
            },
        };
        Ok(LoanedMessage {
            unaligned: is_unaligned.then(unaligned),
            memory,
            body_range: begin..end,
            representation,
            message: PhantomData,
        })
    }

    /// Borrows the elements of a message's large sequence, `count` of them, to be
    /// written in place.
    ///
    /// All other fields are copied from `message` now. The contents of its sequence
    /// are ignored and left unchanged. The elements hold what the memory held:
    /// write them all.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Camera;
    /// # impl Camera { fn read(&mut self, pixels: &mut [u8]) { pixels.fill(7) } }
    /// # let mut camera = Camera;
    /// let node = Context::new()?.create_node("camera")?;
    /// let publisher = node.create_publisher::<Image>("image".keep_last(2))?;
    /// let mut image = Image {
    ///     width: 640,
    ///     height: 480,
    ///     encoding: "mono8".into(),
    ///     step: 640,
    ///     ..Image::default()
    /// };
    /// let mut pixels = publisher.borrow_loaned_sequence(&mut image, |image| &mut image.data, 640 * 480)?;
    /// camera.read(&mut pixels);
    /// publisher.publish_loaned(pixels)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The sequence consists of numbers, or of messages of [`FixedLayout`] such as
    /// points. Waits for memory as [`Publisher::publish`] does.
    ///
    /// # Errors
    /// As [`Publisher::borrow_loaned_message`]. [`PublishError::Invalid`] when the
    /// sequence is not a field of the message, exceeds the bound of its type, or
    /// its elements are not laid out as in memory (of messages in XCDR2).
    pub fn borrow_loaned_sequence<E: FixedLayout + Default>(
        &self,
        message: &mut T,
        sequence: impl Fn(&mut T) -> &mut Vec<E>,
        count: usize,
    ) -> Result<LoanedMessage<T, [E]>, PublishError>
    where
        T: Viewable,
    {
        let least = count.saturating_mul(size_of::<E>());
        let fits = self.raw.endpoint.check_size(least);
        fits.map_err(|error| self.raw.with_ros_topic(error))?;
        let original = std::mem::take(sequence(message));
        let mut room = ReservedSequence::for_sequence(sequence(message), count);
        let drafted = self.write_around_sequence(message, &mut room);
        *sequence(message) = original;
        let mut memory = drafted?;
        let place = room.byte_range().map_err(|error| self.invalid(&error))?;
        // Fails above all for a sequence longer than its bound.
        view_payload::<T>(memory.bytes()).map_err(|error| self.invalid(&error))?;
        let is_unaligned = values_in_mut::<E>(&mut memory.bytes_mut()[place.clone()]).is_none();
        let unaligned = || UnalignedValue {
            value: vec![E::default(); count].into(),
            write: |values: &[E], bytes: &mut [u8], place: Range<usize>, _| {
                bytes[place].copy_from_slice(bytes_of(values));
            },
        };
        Ok(LoanedMessage {
            unaligned: is_unaligned.then(unaligned),
            memory,
            body_range: place,
            representation: self.raw.representation,
            message: PhantomData,
        })
    }

    /// Serializes the message into loaned memory, leaving out the elements.
    fn write_around_sequence(
        &self,
        message: &T,
        room: &mut ReservedSequence,
    ) -> Result<LoanMemory, PublishError> {
        let representation = self.raw.representation;
        let len = payload_len_reserving(message, representation, room);
        room.byte_range().map_err(|error| self.invalid(&error))?;
        let mut memory = self.raw.loan_memory(len)?;
        let written = to_payload_reserving(message, representation, memory.bytes_mut(), room);
        debug_assert_eq!(written, Ok(len), "counted and written alike");
        Ok(memory)
    }

    /// Publishes a loaned message, without a copy for shared-memory subscriptions.
    ///
    /// Views of this process read it in place as well. Typed subscriptions of this
    /// process decode it. Datagrams for the network are built from it.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then, and the loan is returned.
    /// [`PublishError::Invalid`] for a loan of a publisher whose profile has
    /// another [representation](crate::QosProfile::representation).
    pub fn publish_loaned<V: ?Sized>(&self, loan: LoanedMessage<T, V>) -> Result<(), PublishError> {
        if loan.representation != self.raw.representation {
            return Err(self.invalid(&"the loan is of a publisher with another representation"));
        }
        let (payload, is_in_chunk) = loan.into_payload(&self.raw.memory);
        let message = if is_in_chunk {
            SerializedPayload::in_chunk
        } else {
            SerializedPayload::new
        };
        self.raw
            .send(&mut message(payload).of_type(TypeId::of::<T>()))
    }

    fn invalid(&self, reason: &dyn fmt::Display) -> PublishError {
        PublishError::Invalid {
            topic: self.raw.topic.clone(),
            reason: reason.to_string(),
        }
    }
}

impl PublisherCore {
    /// Memory for a payload of exactly that size.
    fn loan_memory(&self, len: usize) -> Result<LoanMemory, PublishError> {
        let chunk = self.node.core().loan(&self.endpoint, len);
        match chunk.map_err(|error| self.with_ros_topic(error))? {
            Some(chunk) => Ok(LoanMemory::Chunk(chunk)),
            None => Ok(LoanMemory::heap(&self.memory, len)),
        }
    }
}

/// For client libraries of other languages, which write the payload themselves.
impl<T: MessageTypeSupport> Publisher<T> {
    /// Shared memory for a payload of that size. `None` if no subscription reads it there.
    ///
    /// # Errors
    /// As [`Publisher::borrow_loaned_message`].
    #[doc(hidden)]
    pub fn loan_chunk(&self, len: usize) -> Result<Option<Chunk>, PublishError> {
        let chunk = self.raw.node.core().loan(&self.raw.endpoint, len);
        chunk.map_err(|error| self.raw.with_ros_topic(error))
    }

    /// Publishes a payload that was written in place.
    ///
    /// # Errors
    /// See [`PublishError`].
    #[doc(hidden)]
    pub fn publish_payload(&self, payload: SerializedPayload) -> Result<(), PublishError> {
        self.raw.send(&mut payload.of_type(TypeId::of::<T>()))
    }
}

impl<T, V: ?Sized> LoanedMessage<T, V> {
    /// Whether it lies in memory that other processes can read.
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, LoanMemory::Chunk(Chunk::Shared(_)))
    }

    fn into_payload(mut self, memory: &PayloadMemory) -> (Bytes, bool) {
        if let Some(UnalignedValue { value, write }) = &self.unaligned {
            let bytes = self.memory.bytes_mut();
            write(value, bytes, self.body_range, self.representation);
        }
        self.memory.into_payload(memory)
    }
}

/// Alignment is checked at creation; an unaligned value is kept separately.
const MEMORY_IS_STABLE: &str = "a loan's memory does not move";

impl<T: FixedLayout> Deref for LoanedMessage<T, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.unaligned {
            Some(unaligned) => &unaligned.value,
            None => {
                let values = values_in(&self.memory.bytes()[self.body_range.clone()]);
                &values.expect(MEMORY_IS_STABLE)[0]
            }
        }
    }
}

impl<T: FixedLayout> DerefMut for LoanedMessage<T, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.unaligned {
            Some(unaligned) => &mut unaligned.value,
            None => {
                let values = values_in_mut(&mut self.memory.bytes_mut()[self.body_range.clone()]);
                &mut values.expect(MEMORY_IS_STABLE)[0]
            }
        }
    }
}

impl<T, E: FixedLayout> Deref for LoanedMessage<T, [E]> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        match &self.unaligned {
            Some(unaligned) => &unaligned.value,
            None => {
                values_in(&self.memory.bytes()[self.body_range.clone()]).expect(MEMORY_IS_STABLE)
            }
        }
    }
}

impl<T, E: FixedLayout> DerefMut for LoanedMessage<T, [E]> {
    fn deref_mut(&mut self) -> &mut [E] {
        match &mut self.unaligned {
            Some(unaligned) => &mut unaligned.value,
            None => {
                let bytes = &mut self.memory.bytes_mut()[self.body_range.clone()];
                values_in_mut(bytes).expect(MEMORY_IS_STABLE)
            }
        }
    }
}

impl<T, V: ?Sized> fmt::Debug for LoanedMessage<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("bytes", &self.body_range.len())
            .field("is_shared", &self.is_shared())
            .finish()
    }
}

/// A payload that is being written, including its encapsulation header.
enum LoanMemory {
    /// A chunk of the shared-memory transport.
    Chunk(Chunk),
    /// Memory of this process, from `begin` on.
    Own { bytes: Vec<u8>, begin: usize },
}

/// The payload body is aligned as in a shared-memory chunk.
const BODY_ALIGN: usize = 64;

impl LoanMemory {
    fn heap(memory: &PayloadMemory, len: usize) -> Self {
        let mut bytes = memory.take(len + BODY_ALIGN);
        bytes.resize(len + BODY_ALIGN, 0);
        let body = bytes.as_ptr() as usize + HEADER_BYTES;
        let begin = body.wrapping_neg() % BODY_ALIGN;
        bytes.truncate(begin + len);
        Self::Own { bytes, begin }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own { bytes, begin } => &bytes[*begin..],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own { bytes, begin } => &mut bytes[*begin..],
        }
    }

    /// The payload, and whether it is a shared-memory chunk.
    fn into_payload(self, memory: &PayloadMemory) -> (Bytes, bool) {
        match self {
            Self::Chunk(chunk) => (chunk.freeze(), true),
            Self::Own { bytes, begin } => {
                let bytes = Bytes::from(bytes);
                memory.keep(&bytes);
                (bytes.slice(begin..), false)
            }
        }
    }
}
