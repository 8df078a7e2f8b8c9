//! Publishers: creation, publication, loans and events.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use bytes::Bytes;
use pteros_rcl::rmw_qos::resolve_best_available;
use pteros_runtime::names::{NameKind, dds_topic, validate_dds_topic, validate_full};
use pteros_runtime::outbound::{OutboundMessage, SerializedPayload};
use pteros_runtime::rtps::qos::Durability;
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::writer::WriterEndpoint;
use pteros_runtime::{Core, EndpointSpec};

use crate::abi::{
    self, Event, Gid, MessageTypeSupport, Node, Publisher, PublisherOptions, Ret,
    SerializedMessage, ret,
};
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, create, non_null, non_null_mut, run, run_end,
    text,
};
use crate::event::{self, EventState};
use crate::handle::{Handle, c_name};
use crate::node::{self, NodeState};
use crate::typesupport::{self, MessageType};
use crate::user_message::UserMessage;
use crate::{network_flow, qos};
use pteros_typesupport::{HEADER, Loans, PayloadMemory, PlainLayout};

/// State behind a publisher handle.
pub(crate) struct PublisherState {
    node: Arc<NodeState>,
    pub(crate) writer: Arc<WriterEndpoint>,
    ty: MessageType,
    pub(crate) events: Arc<EventState>,
    avoids_conventions: bool,
    /// Loaned messages; `None` if the type is not plain.
    loans: Option<Loans<PayloadMemory>>,
}

/// The state of a publisher handle.
///
/// # Safety
/// `publisher` is null or a publisher handle.
pub(crate) unsafe fn state<'p>(publisher: *const Publisher) -> Outcome<&'p Arc<PublisherState>> {
    // SAFETY: as for this function.
    unsafe {
        let publisher = non_null(publisher, "publisher")?;
        check_identifier(publisher.implementation_identifier, "publisher")?;
        Handle::<Publisher, PublisherState>::state(publisher)
    }
}

/// Checks the arguments of a new publisher or subscription. Returns its type and what the
/// runtime creates it from.
///
/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn checked_endpoint(
    node: &NodeState,
    type_support: *const MessageTypeSupport,
    topic: &str,
    qos: &abi::QosProfile,
    unique_flow: u32,
    is_writer: bool,
) -> Outcome<(MessageType, EndpointSpec)> {
    let avoids_conventions = qos.avoid_ros_namespace_conventions;
    check_topic(topic, avoids_conventions)?;
    network_flow::check_requirement(unique_flow)?;
    let profile = qos::profile(qos)?;
    // SAFETY: as for this function.
    let ty = unsafe { typesupport::message_type(type_support) }?;
    let topic = dds_topic(topic, avoids_conventions);
    let graph = node.context.core.graph();
    let profile = resolve_best_available(graph, &topic, is_writer, profile);
    let mut qos = if is_writer {
        profile.to_endpoint()
    } else {
        profile.to_reader()
    };
    qos.user_data = type_hash_entry(ty.hash.as_ref());
    let spec = EndpointSpec {
        topic,
        type_name: ty.dds_name.clone(),
        qos,
        message_type: node.context.filterable_type(&ty),
        ..EndpointSpec::default()
    };
    Ok((ty, spec))
}

/// Checks a topic name, which rcl has expanded.
fn check_topic(name: &str, avoids_conventions: bool) -> Outcome {
    let valid = if avoids_conventions {
        validate_dds_topic(name)
    } else {
        validate_full(NameKind::Topic, name)
    };
    valid.map_err(|error| Failure::argument(error.to_string()))
}

/// `typehash=RIHS01_…;` as USER_DATA.
pub(crate) fn type_hash_entry(hash: Option<&pteros_msg::hash::TypeHash>) -> Vec<u8> {
    hash.map(pteros_runtime::user_data::type_hash_entry)
        .unwrap_or_default()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_publisher(
    node: *const Node,
    type_support: *const MessageTypeSupport,
    topic_name: *const c_char,
    qos: *const abi::QosProfile,
    options: *const PublisherOptions,
) -> *mut Publisher {
    create("rmw_create_publisher", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let node = node::state(node)?;
            non_null(type_support, "type_support")?;
            let topic = text(topic_name, "topic_name")?;
            let qos = non_null(qos, "qos_profile")?;
            let options = *non_null(options, "publisher_options")?;
            create_publisher(node, type_support, topic, qos, options)
        }
    })
}

unsafe fn create_publisher(
    node: &Arc<NodeState>,
    type_support: *const MessageTypeSupport,
    topic: &str,
    qos: &abi::QosProfile,
    options: PublisherOptions,
) -> Outcome<*mut Publisher> {
    let unique_flow = options.unique_flow;
    // SAFETY: the contract of rmw (lib.rs).
    let (ty, spec) =
        unsafe { checked_endpoint(node, type_support, topic, qos, unique_flow, true) }?;
    let core = &node.context.core;
    let writer = core.create_writer(spec)?;
    core.discovery()
        .attach_endpoint(node.key, &writer.announced());
    let can_loan = node.context.has_optional_features && ty.plain.is_some();
    let state = Arc::new(PublisherState {
        loans: can_loan.then(Loans::default),
        events: event::create(&node.context, &writer.events, false),
        node: node.clone(),
        writer,
        ty,
        avoids_conventions: qos.avoid_ros_namespace_conventions,
    });
    let names = [c_name(topic)?, Default::default()];
    let abi = Publisher {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(&state).cast_mut().cast(),
        topic_name: names[0].as_ptr(),
        options,
        can_loan_messages: can_loan,
    };
    Ok(Handle::new(abi, state, names).into_raw())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_publisher(node: *mut Node, publisher: *mut Publisher) -> Ret {
    run_end("rmw_destroy_publisher", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(node, "node")?;
            non_null(publisher, "publisher")?;
            node::state(node)?;
            state(publisher)?;
            let publisher = Handle::<Publisher, PublisherState>::destroy(publisher);
            let core = &publisher.node.context.core;
            core.discovery()
                .detach_endpoint(publisher.node.key, publisher.writer.guid());
            core.remove_writer(&publisher.writer);
        }
        Ok(())
    })
}

impl PublisherState {
    pub(crate) fn core(&self) -> &Core {
        &self.node.context.core
    }

    fn loans(&self) -> Outcome<(&Loans<PayloadMemory>, &PlainLayout)> {
        let loans = self.loans.as_ref().zip(self.ty.plain.as_deref());
        loans.ok_or_else(|| Failure::unsupported(NO_LOANS))
    }

    fn borrow(&self) -> Outcome<*mut c_void> {
        let (loans, layout) = self.loans()?;
        loans.check_space()?;
        let bytes = HEADER.len() + layout.size_of;
        let chunk = self.core().loan(&self.writer, bytes)?;
        let mut memory = PayloadMemory::new(&self.ty.program, layout, chunk);
        Ok(loans.add(memory.address(), memory))
    }

    /// Publishes a struct of the user: as a shared copy if all subscriptions are in this
    /// context, else as CDR.
    ///
    /// # Safety
    /// As for [`UserMessage::new`].
    unsafe fn publish_struct(&self, message: *const c_void) -> Outcome {
        let program = &self.ty.program;
        let readers = self.writer.intra_process_count();
        // SAFETY: as for this function.
        let mut message = unsafe {
            if readers > 0 && program.can_copy() {
                UserMessage::shared(program, message, self.takers(readers))?
            } else {
                UserMessage::new(program, message)?
            }
        };
        self.publish(&mut message)
    }

    /// Number of subscriptions that take a message, if no late joiner needs it
    /// afterwards.
    fn takers(&self, readers: usize) -> Option<usize> {
        let is_volatile = self.writer.data.qos.durability == Durability::Volatile;
        is_volatile.then_some(readers)
    }

    fn publish(&self, message: &mut dyn OutboundMessage) -> Outcome {
        let context = &self.node.context;
        let core = &context.core;
        let publish = || core.publish(&self.writer, message, core.platform.wall_clock());
        context.listener.call_back_after(&self.writer, publish)?;
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish(
    publisher: *const Publisher,
    message: *const c_void,
    _allocation: *mut c_void,
) -> Ret {
    run("rmw_publish", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            if message.is_null() {
                return Err(Failure::argument("argument ros_message is null"));
            }
            state.publish_struct(message)
        }
    })
}

/// Error text for a type without loans.
pub(crate) const NO_LOANS: &str = "a loan of a type with strings, sequences or gaps unlike CDR's, \
     or with PTEROS_RMW_OPTIONAL_FEATURES=off,";

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_borrow_loaned_message(
    publisher: *const Publisher,
    type_support: *const MessageTypeSupport,
    message: *mut *mut c_void,
) -> Ret {
    run("rmw_borrow_loaned_message", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            non_null(type_support, "type_support")?;
            let message = non_null_mut(message, "ros_message")?;
            if !message.is_null() {
                return Err(Failure::argument("*ros_message is not null"));
            }
            *message = state.borrow()?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_return_loaned_message_from_publisher(
    publisher: *const Publisher,
    message: *mut c_void,
) -> Ret {
    run("rmw_return_loaned_message_from_publisher", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            non_null(message, "loaned_message")?;
            state.loans()?.0.remove(message)?;
        }
        Ok(())
    })
}

/// The loan ends even if publishing fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish_loaned_message(
    publisher: *const Publisher,
    message: *mut c_void,
    _allocation: *mut c_void,
) -> Ret {
    run("rmw_publish_loaned_message", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            non_null(message, "ros_message")?;
            let (loans, layout) = state.loans()?;
            let memory = loans.remove(message)?;
            state.publish(&mut memory.into_message(layout))
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publish_serialized_message(
    publisher: *const Publisher,
    message: *const SerializedMessage,
    _allocation: *mut c_void,
) -> Ret {
    run("rmw_publish_serialized_message", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            let message = non_null(message, "serialized_message")?;
            let payload = Bytes::copy_from_slice(crate::serialized::bytes(message));
            state.publish(&mut SerializedPayload::new(payload))
        }
    })
}

/// Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_count_matched_subscriptions(
    publisher: *const Publisher,
    count: *mut usize,
) -> Ret {
    run("rmw_publisher_count_matched_subscriptions", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            *non_null_mut(count, "subscription_count")? = state.writer.matched_count();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_get_actual_qos(
    publisher: *const Publisher,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_publisher_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            *non_null_mut(qos, "qos")? =
                qos::actual(&state.writer.announced().qos, state.avoids_conventions);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_assert_liveliness(publisher: *const Publisher) -> Ret {
    run("rmw_publisher_assert_liveliness", || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(publisher) }?;
        state
            .node
            .context
            .core
            .discovery()
            .assert_liveliness(&state.writer);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_wait_for_all_acked(
    publisher: *const Publisher,
    timeout: abi::Time,
) -> Ret {
    run("rmw_publisher_wait_for_all_acked", || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(publisher) }?;
        let core = &state.node.context.core;
        core.publishing().request_acknowledgement(&state.writer);
        let until: Instant = crate::wait::deadline(core, Some(timeout));
        if core
            .driver()
            .wait_until(until, || state.writer.is_acknowledged())
        {
            return Ok(());
        }
        Err(Failure::new(
            ret::TIMEOUT,
            "subscriptions did not acknowledge all messages in time",
        ))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_gid_for_publisher(
    publisher: *const Publisher,
    gid: *mut Gid,
) -> Ret {
    run("rmw_get_gid_for_publisher", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(publisher)?;
            *non_null_mut(gid, "gid")? = Gid::new(state.writer.guid().to_bytes());
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_event_init(
    rmw_event: *mut Event,
    publisher: *const Publisher,
    event_type: u32,
) -> Ret {
    run("rmw_publisher_event_init", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(rmw_event, "rmw_event")?;
            event::init(rmw_event, &state(publisher)?.events, event_type)
        }
    })
}
