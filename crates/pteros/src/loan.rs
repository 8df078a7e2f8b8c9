//! Loans: messages written where they will be read.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{
    HEADER_BYTES, Representation, Room, fixed_header, payload_len, payload_len_with_room,
    to_payload_slice, to_payload_with_room,
};
use pteros_msg::message::Message;
use pteros_msg::plain::{FixedLayout, bytes_of, values_in, values_in_mut};
use pteros_msg::view::{Viewable, view_payload};
use pteros_rmw::error::PublishError;
use pteros_rmw::links::Chunk;
use pteros_rmw::sample::SharedValue;
use pteros_rmw::writer::Outgoing;

use crate::payload_memory::PayloadMemory;
use crate::publisher::{Publisher, RawPublisher};

/// A message, or the large sequence of one, to be written where its readers
/// will read it, and then [published](Publisher::publish_loaned).
///
/// Dereferences to what is to be written: the message itself
/// ([`Publisher::loan`]), or the elements of the sequence
/// ([`Publisher::loan_sequence`]). Dropped, nothing is published and its memory
/// is free again. It may outlive its publisher, and counts as in use meanwhile:
/// who holds many exhausts the pool.
///
/// Its memory is shared with other processes if the publisher has subscriptions
/// there that are reached by shared memory and the message has more than 512
/// bytes, and of this process otherwise. That is decided when it is made; what
/// becomes of it afterwards costs a copy at most.
pub struct Loan<T, V: ?Sized = T> {
    memory: Memory,
    /// Where in the payload the value lies.
    place: Range<usize>,
    /// The value, where it cannot lie in the payload.
    beside: Option<Beside<V>>,
    representation: Representation,
    message: PhantomData<fn() -> T>,
}

/// A value that is written into the payload in the end.
struct Beside<V: ?Sized> {
    value: Box<V>,
    write: fn(&V, &mut [u8], Range<usize>, Representation),
}

impl<T: Message> Publisher<T> {
    /// A message to be written in place, with its default values at first, as
    /// rclcpp's `borrow_loaned_message`. For types of nothing but numbers, without gaps between them
    /// ([`FixedLayout`]): the compiler says which are.
    ///
    /// ```no_run
    /// use pteros::interfaces::geometry_msgs::msg::Pose;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.node("tracker")?;
    /// let publisher = node.create_publisher::<Pose>("pose", 10)?;
    /// let mut pose = publisher.loan()?;
    /// pose.position.x = 1.5;
    /// publisher.publish_loaned(pose)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Waits for memory as [`Publisher::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoSharedMemory`] when a reliable publisher's pool is
    /// exhausted (a best-effort one gets memory of its own, which is lost to
    /// subscriptions by shared memory, and counted, if there is still no chunk
    /// when it is published), [`PublishError::TooLarge`],
    /// [`PublishError::ShutDown`].
    pub fn loan(&self) -> Result<Loan<T>, PublishError>
    where
        T: FixedLayout,
    {
        let mut loan = self.loan_unset()?;
        *loan = T::default();
        Ok(loan)
    }

    /// As [`Publisher::loan`], without writing the default values: its numbers
    /// are those that the memory held, of an earlier message of this process
    /// perhaps. For large types all of which is written anyway.
    ///
    /// # Errors
    /// As [`Publisher::loan`].
    pub fn loan_unset(&self) -> Result<Loan<T>, PublishError>
    where
        T: FixedLayout,
    {
        let representation = self.raw.representation;
        let begin = HEADER_BYTES;
        let end = begin + size_of::<T>();
        let lies_there = representation == Representation::Xcdr1;
        let len = match lies_there {
            true => end.next_multiple_of(4),
            false => payload_len(&T::default(), representation),
        };
        let mut memory = self.raw.lend(len)?;
        let bytes = memory.bytes_mut();
        bytes[..begin].copy_from_slice(&fixed_header::<T>());
        if lies_there {
            bytes[end..].fill(0);
        }
        let is_beside = !lies_there || values_in_mut::<T>(&mut bytes[begin..end]).is_none();
        let beside = || Beside {
            value: Box::new(T::default()),
            write: |value: &T, bytes, _, representation| {
                let written = to_payload_slice(value, representation, bytes);
                debug_assert_eq!(written, Ok(bytes.len()), "its size is fixed");
            },
        };
        Ok(Loan {
            beside: is_beside.then(beside),
            memory,
            place: begin..end,
            representation,
            message: PhantomData,
        })
    }

    /// The elements of a message's large sequence, `count` of them, to be written
    /// in place. All other fields are taken from `message` now; what it has in
    /// the sequence itself does not matter and stays there. The elements are
    /// those that the memory held: write them all.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Camera;
    /// # impl Camera { fn read(&mut self, pixels: &mut [u8]) { pixels.fill(7) } }
    /// # let mut camera = Camera;
    /// let node = Context::new()?.node("camera")?;
    /// let publisher = node.create_publisher::<Image>("image", 2)?;
    /// let mut image = Image {
    ///     width: 640,
    ///     height: 480,
    ///     encoding: "mono8".into(),
    ///     step: 640,
    ///     ..Image::default()
    /// };
    /// let mut pixels = publisher.loan_sequence(&mut image, |image| &mut image.data, 640 * 480)?;
    /// camera.read(&mut pixels);
    /// publisher.publish_loaned(pixels)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The sequence is of numbers, or of messages of [`FixedLayout`] such as
    /// points. Waits for memory as [`Publisher::publish`] does.
    ///
    /// # Errors
    /// As [`Publisher::loan`]; [`PublishError::Invalid`] when the sequence is not
    /// one of the message's, is longer than its type allows, or its elements do
    /// not lie as in memory (of messages in XCDR2).
    pub fn loan_sequence<E: FixedLayout + Default>(
        &self,
        message: &mut T,
        sequence: impl Fn(&mut T) -> &mut Vec<E>,
        count: usize,
    ) -> Result<Loan<T, [E]>, PublishError>
    where
        T: Viewable,
    {
        let least = count.saturating_mul(size_of::<E>());
        let fits = self.raw.endpoint.check_size(least);
        fits.map_err(|error| self.raw.named(error))?;
        let own = std::mem::take(sequence(message));
        let mut room = Room::in_place_of(sequence(message), count);
        let drafted = self.draft(message, &mut room);
        *sequence(message) = own;
        let mut memory = drafted?;
        let place = room.place().map_err(|error| self.invalid(&error))?;
        // A sequence that is longer than its type allows, above all.
        view_payload::<T>(memory.bytes()).map_err(|error| self.invalid(&error))?;
        let is_beside = values_in_mut::<E>(&mut memory.bytes_mut()[place.clone()]).is_none();
        let beside = || Beside {
            value: vec![E::default(); count].into(),
            write: |values: &[E], bytes: &mut [u8], place: Range<usize>, _| {
                bytes[place].copy_from_slice(bytes_of(values));
            },
        };
        Ok(Loan {
            beside: is_beside.then(beside),
            memory,
            place,
            representation: self.raw.representation,
            message: PhantomData,
        })
    }

    /// Memory with all of the message but for the elements.
    fn draft(&self, message: &T, room: &mut Room) -> Result<Memory, PublishError> {
        let representation = self.raw.representation;
        let len = payload_len_with_room(message, representation, room);
        room.place().map_err(|error| self.invalid(&error))?;
        let mut memory = self.raw.lend(len)?;
        let written = to_payload_with_room(message, representation, memory.bytes_mut(), room);
        debug_assert_eq!(written, Ok(len), "counted and written alike");
        Ok(memory)
    }

    /// Publishes what was written into a loan, without copying it for
    /// subscriptions that are reached by shared memory. Views of this process
    /// read it in place as well; its typed subscriptions decode it, the network
    /// gets its datagrams from it.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then, and the loan is over.
    /// [`PublishError::Invalid`] for the loan of a publisher whose profile names
    /// another [representation](crate::QosProfile::representation).
    pub fn publish_loaned<V: ?Sized>(&self, loan: Loan<T, V>) -> Result<(), PublishError> {
        if loan.representation != self.raw.representation {
            return Err(self.invalid(&"the loan is of a publisher with another representation"));
        }
        let (payload, is_shared) = loan.freeze(&self.raw.memory);
        self.raw.send(&mut Loaned {
            message_type: TypeId::of::<T>(),
            payload,
            is_shared,
        })
    }

    fn invalid(&self, reason: &dyn fmt::Display) -> PublishError {
        PublishError::Invalid {
            topic: self.raw.topic.clone(),
            reason: reason.to_string(),
        }
    }
}

impl RawPublisher {
    /// Memory for a payload of just that size.
    fn lend(&self, len: usize) -> Result<Memory, PublishError> {
        let chunk = self.node.core().lend(&self.endpoint, len);
        match chunk.map_err(|error| self.named(error))? {
            Some(chunk) => Ok(Memory::Chunk(chunk)),
            None => Ok(Memory::own(&self.memory, len)),
        }
    }
}

impl<T, V: ?Sized> Loan<T, V> {
    /// Whether it lies in memory that other processes can read.
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, Memory::Chunk(Chunk::Shared(_)))
    }

    fn freeze(mut self, memory: &PayloadMemory) -> (Bytes, bool) {
        if let Some(Beside { value, write }) = &self.beside {
            let bytes = self.memory.bytes_mut();
            write(value, bytes, self.place, self.representation);
        }
        self.memory.freeze(memory)
    }
}

/// A loan is aligned when it is made, or beside.
const LIES_THERE: &str = "a loan's memory does not move";

impl<T: FixedLayout> Deref for Loan<T, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.beside {
            Some(beside) => &beside.value,
            None => {
                let values = values_in(&self.memory.bytes()[self.place.clone()]);
                &values.expect(LIES_THERE)[0]
            }
        }
    }
}

impl<T: FixedLayout> DerefMut for Loan<T, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.beside {
            Some(beside) => &mut beside.value,
            None => {
                let values = values_in_mut(&mut self.memory.bytes_mut()[self.place.clone()]);
                &mut values.expect(LIES_THERE)[0]
            }
        }
    }
}

impl<T, E: FixedLayout> Deref for Loan<T, [E]> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        match &self.beside {
            Some(beside) => &beside.value,
            None => values_in(&self.memory.bytes()[self.place.clone()]).expect(LIES_THERE),
        }
    }
}

impl<T, E: FixedLayout> DerefMut for Loan<T, [E]> {
    fn deref_mut(&mut self) -> &mut [E] {
        match &mut self.beside {
            Some(beside) => &mut beside.value,
            None => {
                let bytes = &mut self.memory.bytes_mut()[self.place.clone()];
                values_in_mut(bytes).expect(LIES_THERE)
            }
        }
    }
}

impl<T, V: ?Sized> fmt::Debug for Loan<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("bytes", &self.place.len())
            .field("is_shared", &self.is_shared())
            .finish()
    }
}

/// A payload that is being written, header included.
enum Memory {
    /// Made by the links.
    Chunk(Chunk),
    /// Of this process alone, from `begin` on.
    Own { bytes: Vec<u8>, begin: usize },
}

/// What follows a payload's header is aligned as in a chunk of shared memory.
const BODY_ALIGN: usize = 64;

impl Memory {
    fn own(memory: &PayloadMemory, len: usize) -> Self {
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

    /// The payload, and whether the links made its memory.
    fn freeze(self, memory: &PayloadMemory) -> (Bytes, bool) {
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

/// A loan on its way out.
struct Loaned {
    message_type: TypeId,
    payload: Bytes,
    is_shared: bool,
}

impl Outgoing for Loaned {
    fn message_type(&self) -> TypeId {
        self.message_type
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.clone()
    }

    fn wants_memory(&self) -> bool {
        !self.is_shared
    }

    fn offer_memory(&mut self, mut memory: Chunk) {
        if memory.len() == self.payload.len() {
            memory.copy_from_slice(&self.payload);
            self.payload = memory.freeze();
            self.is_shared = true;
        }
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len()
    }
}
