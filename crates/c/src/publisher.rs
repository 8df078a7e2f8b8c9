//! Publishers, and loaned messages of fixed size (zero-copy).

use std::ffi::{CString, c_char, c_void};

use bytes::Bytes;
use pteros::{Publisher, PublisherOptions, QosProfile};
use pteros_typesupport::{CMessageTable, HEADER, Loans, PayloadMemory, PlainLayout};

use crate::argument::{array, c_text, null, output, required, text, timeout};
use crate::error::{self, Error, Outcome, Status};
use crate::message::{CMessage, MessageSupport};
use crate::node::PterosNode;
use crate::qos::{self, CQos};
use crate::types;

/// `pteros_publisher_t`.
pub struct PterosPublisher {
    publisher: Publisher<CMessage>,
    ty: MessageSupport,
    topic: CString,
    loans: Loans<PayloadMemory>,
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_new(
    node: Option<&PterosNode>,
    table: *const CMessageTable,
    topic: *const c_char,
    qos: Option<&CQos>,
) -> Option<Box<PterosPublisher>> {
    error::create("pteros_publisher_new", || {
        let node = &required(node, "node")?.node;
        let ty = types::message(table)?;
        let mut options = PublisherOptions::<CMessage>::of_type(&ty, text(topic, "topic")?);
        options.qos = qos::profile(qos, QosProfile::default())?;
        let publisher = node.create_publisher(options)?;
        Ok(PterosPublisher {
            topic: c_text(publisher.topic()),
            publisher,
            ty,
            loans: Loans::default(),
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_free(publisher: Option<Box<PterosPublisher>>) {
    error::free("pteros_publisher_free", publisher);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_publish(
    publisher: Option<&PterosPublisher>,
    message: *const c_void,
) -> Status {
    error::run("pteros_publisher_publish", || {
        let publisher = required(publisher, "publisher")?;
        if message.is_null() {
            return Err(null("message"));
        }
        // SAFETY: the contract of C (lib.rs).
        let message = unsafe { CMessage::borrowed(&publisher.ty, message) };
        Ok(publisher.publisher.publish(&message)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_publish_serialized(
    publisher: Option<&PterosPublisher>,
    data: *const u8,
    size: usize,
) -> Status {
    error::run("pteros_publisher_publish_serialized", || {
        let publisher = &required(publisher, "publisher")?.publisher;
        let payload = array(data, size, "data")?;
        if payload.len() < HEADER.len() {
            return Err(Error::argument(format!(
                "{size} bytes are no serialized message; pass CDR with its header of {} bytes",
                HEADER.len()
            )));
        }
        Ok(publisher.publish_serialized(Bytes::copy_from_slice(payload))?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_topic(publisher: Option<&PterosPublisher>) -> *const c_char {
    error::value("pteros_publisher_topic", c"".as_ptr(), || {
        Ok(required(publisher, "publisher")?.topic.as_ptr())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_matched_count(publisher: Option<&PterosPublisher>) -> usize {
    error::value("pteros_publisher_matched_count", 0, || {
        Ok(required(publisher, "publisher")?.publisher.matched_count())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_wait_for_matched(
    publisher: Option<&PterosPublisher>,
    count: usize,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_publisher_wait_for_matched", || {
        let publisher = &required(publisher, "publisher")?.publisher;
        if publisher.wait_for_matched(count, timeout(timeout_ns)) {
            return Ok(());
        }
        Err(Error::new(
            Status::Timeout,
            format!(
                "topic {:?}: {} of {count} subscriptions are matched; start them, or compare \
                 types and QoS",
                publisher.topic(),
                publisher.matched_count()
            ),
        ))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_wait_for_all_acked(
    publisher: Option<&PterosPublisher>,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_publisher_wait_for_all_acked", || {
        let publisher = &required(publisher, "publisher")?.publisher;
        if publisher.wait_for_all_acked(timeout(timeout_ns)) {
            return Ok(());
        }
        Err(Error::new(
            Status::Timeout,
            format!(
                "topic {:?}: subscriptions did not acknowledge all messages in time",
                publisher.topic()
            ),
        ))
    })
}

impl PterosPublisher {
    fn layout(&self) -> Outcome<&PlainLayout> {
        self.ty.0.plain.as_ref().ok_or_else(|| {
            Error::new(
                Status::Unsupported,
                format!(
                    "{:?} has strings, sequences or gaps unlike CDR's, so it cannot be loaned; \
                     call pteros_publisher_publish",
                    self.ty
                ),
            )
        })
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_borrow(
    publisher: Option<&PterosPublisher>,
    message: Option<&mut *mut c_void>,
) -> Status {
    error::run("pteros_publisher_borrow", || {
        let publisher = required(publisher, "publisher")?;
        let message = output(message, "message")?;
        let layout = publisher.layout()?;
        publisher.loans.check_space().map_err(Error::failed)?;
        let len = HEADER.len() + layout.size_of;
        let chunk = publisher.publisher.loan_chunk(len)?;
        let ty = &publisher.ty.0;
        let mut memory = PayloadMemory::new(&ty.program, layout, chunk);
        let address = memory.address();
        // SAFETY: memory of the size and alignment of the struct, which is ours alone.
        unsafe { ty.initialize(address) }?;
        *message = publisher.loans.add(address, memory);
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_publish_borrowed(
    publisher: Option<&PterosPublisher>,
    message: *mut c_void,
) -> Status {
    error::run("pteros_publisher_publish_borrowed", || {
        let publisher = required(publisher, "publisher")?;
        let layout = publisher.layout()?;
        let memory = publisher.loans.remove(message)?;
        let payload = memory.into_message(layout);
        Ok(publisher.publisher.publish_payload(payload)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_publisher_return(
    publisher: Option<&PterosPublisher>,
    message: *mut c_void,
) -> Status {
    error::run("pteros_publisher_return", || {
        required(publisher, "publisher")?.loans.remove(message)?;
        Ok(())
    })
}
