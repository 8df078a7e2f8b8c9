//! Messages of the client library that are structs of a C program.
//!
//! The client library is generic over the types of messages, services and actions. Here
//! are its three traits for types that a C table describes, so that C has the publishers,
//! clients and action servers of Rust.

use std::borrow::Cow;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, Decoder, Encode, Encoder, Representation};
use pteros_msg::dynamic::DynamicMessage;
use pteros_msg::hash::TypeHash;
use pteros_msg::key::KeyHash;
use pteros_msg::message::GoalId;
use pteros_msg::type_support::{
    ActionTypeSupport, DescriptionOf, MessageTypeSupport, ServiceTypeSupport, TypeProperties,
};
use pteros_typesupport::{CMessageType, FailureKind, Outcome, Struct};

/// A type, with the name of the client library's `Support` value.
#[derive(Clone)]
pub(crate) struct MessageSupport(pub(crate) Arc<CMessageType>);

impl fmt::Debug for MessageSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.dynamic.name())
    }
}

/// A struct of a C program.
pub(crate) struct CMessage {
    ty: MessageSupport,
    place: Place,
}

enum Place {
    /// The program keeps it, for one call.
    Borrowed {
        address: *const c_void,
        /// Its CDR, written once for the counting and the writing encoder.
        payload: OnceLock<Bytes>,
    },
    Owned(Struct),
    /// A received payload whose body is the struct (a plain type), where it was received:
    /// in shared memory or in the reader's cache.
    Received {
        payload: Bytes,
        /// Of the struct in the payload.
        body: *const c_void,
    },
}

// SAFETY: an owned struct is Send, and so is a payload, which nobody writes. A borrowed one is used by the thread that calls a
// function of C; what other threads need is copied.
unsafe impl Send for CMessage {}
// SAFETY: as above; shared references only read it.
unsafe impl Sync for CMessage {}

impl CMessage {
    /// A message for one call, which the program keeps.
    ///
    /// # Safety
    /// `address` points to an initialized struct of the type, which nothing changes while
    /// this value exists.
    pub(crate) unsafe fn borrowed(ty: &MessageSupport, address: *const c_void) -> Self {
        Self {
            ty: ty.clone(),
            place: Place::Borrowed {
                address,
                payload: OnceLock::new(),
            },
        }
    }

    /// A copy of the program's struct.
    ///
    /// # Safety
    /// `address` points to an initialized struct of the type.
    ///
    /// # Errors
    /// A string or sequence is not initialized or exceeds its bound; there is no memory.
    pub(crate) unsafe fn copy_of(ty: &MessageSupport, address: *const c_void) -> Outcome<Self> {
        // SAFETY: as for this function.
        let copy = unsafe { Struct::copy_of(&ty.0.program, address) }?;
        Ok(Self::owned(ty, copy))
    }

    fn owned(ty: &MessageSupport, own: Struct) -> Self {
        Self {
            ty: ty.clone(),
            place: Place::Owned(own),
        }
    }

    /// Address of the struct.
    pub(crate) fn address(&self) -> *const c_void {
        match &self.place {
            Place::Borrowed { address, .. } => *address,
            Place::Owned(own) => own.address(),
            Place::Received { body, .. } => *body,
        }
    }

    /// Mutable address of a struct of this library; `None` of the program's, and of a
    /// received payload.
    pub(crate) fn address_mut(&mut self) -> Option<*mut c_void> {
        match &mut self.place {
            Place::Borrowed { .. } | Place::Received { .. } => None,
            Place::Owned(own) => Some(own.address_mut()),
        }
    }

    /// Copies the message into a struct of the program.
    ///
    /// # Safety
    /// `to` points to an initialized struct of the type, which nothing else uses.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) unsafe fn copy_to(&self, to: *mut c_void) -> Outcome {
        // SAFETY: as for this function; `address` is an initialized struct of the type.
        unsafe { self.ty.0.program.copy(self.address(), to) }
    }

    /// # Panics
    /// Another thread has changed the message since `validate`, or there is no memory.
    fn encoded(&self) -> Bytes {
        let encode = || {
            let program = &self.ty.0.program;
            // SAFETY: an initialized struct of the type.
            let encoded = unsafe {
                program.serialized_len(self.address()).map(|len| {
                    let (bytes, encoded) = program.encode_to_vec(self.address(), len);
                    encoded.map(|()| bytes)
                })
            };
            match encoded.and_then(|bytes| bytes) {
                Ok(bytes) => Bytes::from(bytes),
                Err(failure) => panic!("a message of {:?}: {failure}", self.ty),
            }
        };
        match &self.place {
            Place::Borrowed { payload, .. } => payload.get_or_init(encode).clone(),
            Place::Owned(_) => encode(),
            Place::Received { payload, .. } => payload.clone(),
        }
    }
}

impl Encode for CMessage {
    fn encode(&self, out: &mut Encoder<'_>) {
        let payload = self.encoded();
        match out.representation() {
            Representation::Xcdr1 => {
                out.primitive_array(payload.get(pteros_msg::cdr::HEADER_BYTES..).unwrap_or(&[]));
            }
            // Readers that ask for XCDR2 are rare, so the way leads over the dynamic type.
            Representation::Xcdr2 => {
                match DynamicMessage::from_payload(&self.ty.0.dynamic, &payload) {
                    Ok(message) => message.encode(out),
                    // A string exceeds its bound.
                    Err(failure) => panic!("a message of {:?}: {failure}", self.ty),
                }
            }
        }
    }
}

impl Clone for CMessage {
    fn clone(&self) -> Self {
        // SAFETY: an initialized struct of the type.
        match unsafe { Self::copy_of(&self.ty, self.address()) } {
            Ok(copy) => copy,
            // `validate` has checked it, so memory is exhausted.
            Err(failure) => panic!("a message of {:?}: {failure}", self.ty),
        }
    }
}

impl fmt::Debug for CMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ty.fmt(f)
    }
}

impl MessageTypeSupport for CMessage {
    type Support = MessageSupport;

    fn properties(support: &MessageSupport) -> TypeProperties<'_> {
        let dynamic = &support.0.dynamic;
        TypeProperties {
            name: dynamic.name(),
            dds_name: dynamic.dds_type_name(),
            hash: dynamic.hash(),
            extensibility: dynamic.extensibility(),
            key_reader: None,
            description: DescriptionOf::Dynamic(dynamic),
            definitions: || None,
        }
    }

    /// # Panics
    /// There is no memory, as in Rust's own collections.
    fn default_message(support: &MessageSupport) -> Self {
        match support.0.default_struct() {
            Ok(own) => Self::owned(support, own),
            Err(failure) => panic!("a message of {support:?}: {failure}"),
        }
    }

    fn from_type_payload(support: &MessageSupport, payload: &[u8]) -> Result<Self, DecodeError> {
        let program = &support.0.program;
        let Ok(mut own) = Struct::new(program) else {
            return Err(no_memory(payload));
        };
        // SAFETY: an initialized struct of the type, which is ours alone.
        match unsafe { program.decode(payload, own.address_mut()) } {
            Ok(()) => Ok(Self::owned(support, own)),
            Err(failure) if failure.kind == FailureKind::Payload => {
                Err(why_undecodable(support, payload))
            }
            // Memory: a message of a peer does not end the program.
            Err(_) => Err(no_memory(payload)),
        }
    }

    fn from_type_bytes(support: &MessageSupport, payload: Bytes) -> Result<Self, DecodeError> {
        let plain = support.0.plain.as_ref();
        let body = plain.and_then(|layout| layout.view(&payload));
        let Some(body) = body.map(|body| body.as_ptr().cast()) else {
            return Self::from_type_payload(support, &payload);
        };
        Ok(Self {
            ty: support.clone(),
            place: Place::Received { payload, body },
        })
    }

    fn from_type_key(support: &MessageSupport, _: &[u8]) -> Result<Self, DecodeError> {
        // Types of C have no key, so no endpoint asks.
        Ok(Self::default_message(support))
    }

    fn validate(&self, support: &MessageSupport) -> Result<(), String> {
        if !self.is_of(support) {
            return Err(format!(
                "the message is of type {:?}, the endpoint of type {support:?}; pass a struct of \
                 the endpoint's type",
                self.ty
            ));
        }
        // SAFETY: an initialized struct of the type.
        unsafe { self.ty.0.check_bounds(self.address()) }.map_err(|error| error.to_string())?;
        // SAFETY: as above.
        match unsafe { self.ty.0.program.serialized_len(self.address()) } {
            Ok(_) => Ok(()),
            Err(failure) => Err(format!(
                "a message of {support:?}: {failure}; initialize it with its __init function"
            )),
        }
    }

    fn is_of(&self, support: &MessageSupport) -> bool {
        self.ty.0.is_same(&support.0)
    }

    fn instance_key_hash(&self) -> KeyHash {
        KeyHash::default()
    }

    fn instance_key(&self, _: Representation) -> Vec<u8> {
        Vec::new()
    }
}

/// The client library's error for a payload that the struct's decoder refused.
fn why_undecodable(support: &MessageSupport, payload: &[u8]) -> DecodeError {
    let dynamic = DynamicMessage::from_payload(&support.0.dynamic, payload);
    dynamic.err().unwrap_or_else(|| {
        let needed = Decoder::from_payload(payload).map_or(0, |decoder| decoder.position());
        DecodeError::UnexpectedEnd {
            offset: payload.len(),
            needed,
        }
    })
}

fn no_memory(payload: &[u8]) -> DecodeError {
    DecodeError::NoMemory { len: payload.len() }
}

/// A service type of a C program.
#[derive(Clone, Debug)]
pub(crate) struct ServiceSupport {
    pub(crate) name: Arc<str>,
    pub(crate) request: MessageSupport,
    pub(crate) response: MessageSupport,
    /// RIHS01 of the service; `None` if the table has none.
    pub(crate) hash: Option<TypeHash>,
}

/// The services of C.
pub(crate) enum CService {}

impl ServiceTypeSupport for CService {
    type Support = ServiceSupport;
    type Request = CMessage;
    type Response = CMessage;
    type Event = CMessage;

    fn service_name(support: &ServiceSupport) -> &str {
        &support.name
    }

    fn type_hash(support: &ServiceSupport) -> Option<TypeHash> {
        support.hash
    }

    fn request(support: &ServiceSupport) -> &MessageSupport {
        &support.request
    }

    fn response(support: &ServiceSupport) -> &MessageSupport {
        &support.response
    }

    fn event(_: &ServiceSupport) -> Option<&MessageSupport> {
        None
    }
}

/// An action type of a C program.
#[derive(Clone, Debug)]
pub(crate) struct ActionSupport {
    pub(crate) send_goal: ServiceSupport,
    pub(crate) get_result: ServiceSupport,
    pub(crate) feedback_message: MessageSupport,
    pub(crate) goal: MessageSupport,
    pub(crate) result: MessageSupport,
    pub(crate) feedback: MessageSupport,
}

/// The actions of C. Their messages have two members each: the goal id or a flag, and the
/// user's part.
pub(crate) enum CAction {}

/// Writes bytes into a member of a message of this library.
fn write(message: &mut CMessage, member: usize, bytes: &[u8]) {
    write_at(message, member, 0, bytes);
}

/// As [`write`], some bytes behind the begin of the member.
fn write_at(message: &mut CMessage, member: usize, further: usize, bytes: &[u8]) {
    let (offset, size) = (message.ty.0.offset(member), message.ty.0.program.size_of);
    let Some((offset, address)) = offset.zip(message.address_mut()) else {
        return;
    };
    if offset + further + bytes.len() <= size {
        // SAFETY: a member of numbers inside a struct that is ours alone.
        unsafe {
            let to: *mut u8 = address.cast::<u8>().add(offset + further);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}

/// Reads bytes of a member.
fn read<const N: usize>(message: &CMessage, member: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let (offset, size) = (message.ty.0.offset(member), message.ty.0.program.size_of);
    if let Some(offset) = offset.filter(|offset| offset + N <= size) {
        // SAFETY: a member of numbers inside an initialized struct.
        unsafe {
            let from: *const u8 = message.address().cast::<u8>().add(offset);
            bytes.as_mut_ptr().copy_from_nonoverlapping(from, N);
        }
    }
    bytes
}

/// Copies a message into a member that has its type.
///
/// # Panics
/// There is no memory.
fn set_part(message: &mut CMessage, member: usize, part: &CMessage) {
    let (offset, size) = (message.ty.0.offset(member), message.ty.0.program.size_of);
    let Some((offset, address)) = offset.zip(message.address_mut()) else {
        return;
    };
    if offset + part.ty.0.program.size_of <= size {
        // SAFETY: the member has the type of the part, by the table of the action
        // (`types::action`), and lies in a struct that is ours alone.
        let copied = unsafe { part.copy_to(address.cast::<u8>().add(offset).cast()) };
        if let Err(failure) = copied {
            panic!("a message of {:?}: {failure}", message.ty);
        }
    }
}

/// A copy of a member that has that type.
///
/// # Panics
/// There is no memory.
fn part(message: &CMessage, member: usize, ty: &MessageSupport) -> CMessage {
    let (offset, size) = (message.ty.0.offset(member), message.ty.0.program.size_of);
    let offset = offset.filter(|offset| offset + ty.0.program.size_of <= size);
    let copied = offset.map(|offset| {
        // SAFETY: the member has that type, by the table of the action.
        unsafe { CMessage::copy_of(ty, message.address().cast::<u8>().add(offset).cast()) }
    });
    match copied {
        Some(Ok(copy)) => copy,
        Some(Err(failure)) => panic!("a message of {ty:?}: {failure}"),
        // The table of the action was checked, so there is such a member.
        None => CMessage::default_message(ty),
    }
}

impl ActionTypeSupport for CAction {
    type Support = ActionSupport;
    type Goal = CMessage;
    type Result = CMessage;
    type Feedback = CMessage;
    type SendGoal = CService;
    type GetResult = CService;
    type FeedbackMessage = CMessage;

    fn send_goal(support: &ActionSupport) -> &ServiceSupport {
        &support.send_goal
    }

    fn get_result(support: &ActionSupport) -> &ServiceSupport {
        &support.get_result
    }

    fn feedback_type(support: &ActionSupport) -> &MessageSupport {
        &support.feedback_message
    }

    fn goal_type(support: &ActionSupport) -> &MessageSupport {
        &support.goal
    }

    fn result_type(support: &ActionSupport) -> &MessageSupport {
        &support.result
    }

    fn request_goal(
        support: &ActionSupport,
        goal_id: GoalId,
        goal: CMessage,
    ) -> Result<CMessage, String> {
        goal.validate(&support.goal)?;
        let mut request = CMessage::default_message(&support.send_goal.request);
        write(&mut request, 0, &goal_id);
        set_part(&mut request, 1, &goal);
        Ok(request)
    }

    fn requested_goal(support: &ActionSupport, request: &CMessage) -> (GoalId, CMessage) {
        (read(request, 0), part(request, 1, &support.goal))
    }

    fn respond_goal(support: &ActionSupport, accepted: bool, sec: i32, nanosec: u32) -> CMessage {
        let mut response = CMessage::default_message(&support.send_goal.response);
        write(&mut response, 0, &[u8::from(accepted)]);
        write(&mut response, 1, &sec.to_ne_bytes());
        write_at(&mut response, 1, 4, &nanosec.to_ne_bytes());
        response
    }

    fn was_accepted(response: &CMessage) -> bool {
        read(response, 0) != [0]
    }

    fn request_result(support: &ActionSupport, goal_id: GoalId) -> CMessage {
        let mut request = CMessage::default_message(&support.get_result.request);
        write(&mut request, 0, &goal_id);
        request
    }

    fn requested_result(request: &CMessage) -> GoalId {
        read(request, 0)
    }

    fn respond_result(support: &ActionSupport, status: i8, result: CMessage) -> CMessage {
        let mut response = CMessage::default_message(&support.get_result.response);
        write(&mut response, 0, &status.to_ne_bytes());
        set_part(&mut response, 1, &result);
        response
    }

    fn received_result(support: &ActionSupport, response: &CMessage) -> (i8, CMessage) {
        let status = i8::from_ne_bytes(read(response, 0));
        (status, part(response, 1, &support.result))
    }

    fn wrap_feedback(
        support: &ActionSupport,
        goal_id: GoalId,
        feedback: CMessage,
    ) -> Result<CMessage, String> {
        feedback.validate(&support.feedback)?;
        let mut message = CMessage::default_message(&support.feedback_message);
        write(&mut message, 0, &goal_id);
        set_part(&mut message, 1, &feedback);
        Ok(message)
    }

    fn unwrap_feedback<'m>(
        support: &ActionSupport,
        message: &'m CMessage,
    ) -> (GoalId, Cow<'m, CMessage>) {
        let feedback = part(message, 1, &support.feedback);
        (read(message, 0), Cow::Owned(feedback))
    }
}
