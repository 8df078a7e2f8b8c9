//! Subscriptions: creation, taking of messages, loans and events.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use bytes::Bytes;
use pteros_runtime::Core;
use pteros_runtime::content_filter::FilterSpec;
use pteros_runtime::sample::{QueuedSample, SampleBody, SampleMeta};

use crate::abi::{
    self, Event, EventCallback, Gid, MessageInfo, MessageSequence, MessageTypeSupport, Node, Ret,
    SerializedMessage, Subscription, SubscriptionOptions,
};
use crate::distribution::filter_support;
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, create, non_null, non_null_mut, received, run,
    run_end, run_set_callback, text,
};
use crate::event::{self, EventState};
use crate::handle::{Handle, c_name};
use crate::listener::{DataWaiter, set_data_callback};
use crate::loan::{self, ReceivedLoan};
use crate::node::{self, NodeState};
use crate::publisher::{NO_LOANS, checked_endpoint};
use crate::typesupport::MessageType;
use crate::{qos, serialized, shared_message};
use pteros_typesupport::{Loans, PlainLayout};

/// State behind a subscription handle.
pub(crate) struct SubscriptionState {
    node: Arc<NodeState>,
    pub(crate) waiter: Arc<DataWaiter>,
    ty: MessageType,
    pub(crate) events: Arc<EventState>,
    avoids_conventions: bool,
    /// Loaned messages; `None` if the type is not plain.
    loans: Option<Loans<ReceivedLoan>>,
}

/// The state of a subscription handle.
///
/// # Safety
/// `subscription` is null or a subscription handle.
pub(crate) unsafe fn state<'s>(
    subscription: *const Subscription,
) -> Outcome<&'s Arc<SubscriptionState>> {
    // SAFETY: as for this function.
    unsafe {
        let subscription = non_null(subscription, "subscription")?;
        check_identifier(subscription.implementation_identifier, "subscription")?;
        Handle::<Subscription, SubscriptionState>::state(subscription)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_subscription(
    node: *const Node,
    type_support: *const MessageTypeSupport,
    topic_name: *const c_char,
    qos: *const abi::QosProfile,
    options: *const SubscriptionOptions,
) -> *mut Subscription {
    create("rmw_create_subscription", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let node = node::state(node)?;
            non_null(type_support, "type_support")?;
            let topic = text(topic_name, "topic_name")?;
            let qos = non_null(qos, "qos_profile")?;
            let options = *non_null(options, "subscription_options")?;
            create_subscription(node, type_support, topic, qos, options)
        }
    })
}

unsafe fn create_subscription(
    node: &Arc<NodeState>,
    type_support: *const MessageTypeSupport,
    topic: &str,
    qos: &abi::QosProfile,
    mut options: SubscriptionOptions,
) -> Outcome<*mut Subscription> {
    let unique_flow = options.unique_flow;
    // SAFETY: the contract of rmw (lib.rs).
    let (ty, mut spec) =
        unsafe { checked_endpoint(node, type_support, topic, qos, unique_flow, false) }?;
    let core = &node.context.core;
    // The caller owns and frees the filter.
    let filter = std::mem::replace(&mut options.content_filter, std::ptr::null_mut());
    // SAFETY: the contract of rmw (lib.rs).
    let filter = unsafe { filter.as_ref() }.filter(|_| node.context.has_optional_features);
    // SAFETY: the contract of rmw (lib.rs).
    let filter = filter.map(|filter| unsafe { filter.spec() });
    spec.content_filter = filter.transpose()?;
    let form = shared_message::DELIVERY_FORM;
    let reader = core.create_reader(spec, form, options.ignore_local_publications)?;
    core.discovery()
        .attach_endpoint(node.key, &reader.announced());
    let can_loan = node.context.has_optional_features && ty.plain.is_some();
    let is_filtered = reader.content_filter().is_some();
    let state = Arc::new(SubscriptionState {
        loans: can_loan.then(Loans::default),
        events: event::create(&node.context, &reader.events, true),
        node: node.clone(),
        waiter: DataWaiter::new(core, reader),
        ty,
        avoids_conventions: qos.avoid_ros_namespace_conventions,
    });
    let names = [c_name(topic)?, Default::default()];
    let abi = Subscription {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(&state.waiter).cast_mut().cast(),
        topic_name: names[0].as_ptr(),
        options,
        can_loan_messages: can_loan,
        is_cft_enabled: is_filtered,
        is_cft_supported: filter_support(node.context.has_optional_features),
    };
    Ok(Handle::new(abi, state, names).into_raw())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_subscription(
    node: *mut Node,
    subscription: *mut Subscription,
) -> Ret {
    run_end("rmw_destroy_subscription", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(node, "node")?;
            non_null(subscription, "subscription")?;
            node::state(node)?;
            state(subscription)?;
            let subscription = Handle::<Subscription, SubscriptionState>::destroy(subscription);
            let core = &subscription.node.context.core;
            let reader = &subscription.waiter.reader;
            core.discovery()
                .detach_endpoint(subscription.node.key, reader.data.guid);
            core.remove_reader(reader);
        }
        Ok(())
    })
}

impl MessageInfo {
    pub(crate) fn of(meta: &SampleMeta) -> Self {
        Self {
            source_timestamp: meta.source.unwrap_or(meta.reception).as_nanos(),
            received_timestamp: meta.reception.as_nanos(),
            publication_sequence_number: u64::try_from(meta.sequence).unwrap_or(u64::MAX),
            reception_sequence_number: u64::MAX,
            publisher_gid: Gid::new(meta.publisher.to_bytes()),
            from_intra_process: false,
        }
    }
}

/// The bytes of a sample.
pub(crate) fn payload(item: &QueuedSample) -> Option<&Bytes> {
    match &item.body {
        SampleBody::Serialized(payload) if item.is_data() => Some(payload),
        _ => None,
    }
}

impl SubscriptionState {
    pub(crate) fn core(&self) -> &Core {
        &self.node.context.core
    }

    pub(crate) fn check_optional_features(&self) -> Outcome {
        if self.node.context.has_optional_features {
            return Ok(());
        }
        Err(Failure::unsupported(
            "a content filter with PTEROS_RMW_OPTIONAL_FEATURES=off",
        ))
    }

    pub(crate) fn content_filter(&self) -> Option<FilterSpec> {
        self.waiter.reader.content_filter()
    }

    pub(crate) fn set_content_filter(&self, spec: &FilterSpec) -> Outcome {
        self.check_optional_features()?;
        self.core().set_content_filter(&self.waiter.reader, spec)?;
        Ok(())
    }

    fn loans(&self) -> Outcome<(&Loans<ReceivedLoan>, &PlainLayout)> {
        let loans = self.loans.as_ref().zip(self.ty.plain.as_deref());
        loans.ok_or_else(|| Failure::unsupported(NO_LOANS))
    }

    /// Loans the oldest message.
    ///
    /// # Safety
    /// `info` is null or a message info.
    unsafe fn take_loan(&self, info: *mut MessageInfo) -> Outcome<Option<*mut c_void>> {
        let (loans, layout) = self.loans()?;
        loans.check_space()?;
        let Some(taken) = self.take(|body| loan::receive(&self.ty.program, layout, body)) else {
            return Ok(None);
        };
        let ((at, loan), meta) = taken?;
        // SAFETY: as for this function.
        if let Some(info) = unsafe { info.as_mut() } {
            *info = MessageInfo::of(&meta);
        }
        Ok(Some(loans.add(at, loan)))
    }

    /// Takes the oldest message that `decode` accepts. A message that is not of the type
    /// is dropped and counted, as in other middlewares, because its sender is wrong.
    fn take<T>(
        &self,
        mut decode: impl FnMut(SampleBody) -> Outcome<T>,
    ) -> Option<Outcome<(T, SampleMeta)>> {
        let mut decode_data = |item: QueuedSample| {
            if !item.is_data() {
                return Ok(None);
            }
            let meta = item.meta;
            let decoded = received(decode(item.body))?;
            Ok::<_, String>(Some(decoded.map(|message| (message, meta))))
        };
        loop {
            let core = &self.node.context.core;
            let taken = core
                .taking()
                .take_decoded(&self.waiter.reader, &mut decode_data)?;
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// Takes a message into a struct of the user.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type; `info` is null or a
    /// message info.
    unsafe fn take_into(&self, message: *mut c_void, info: *mut MessageInfo) -> Outcome<bool> {
        // SAFETY: as for this function.
        let decode = |body| unsafe { shared_message::take_into(body, &self.ty.program, message) };
        let Some(taken) = self.take(decode) else {
            return Ok(false);
        };
        let ((), meta) = taken?;
        // SAFETY: as for this function.
        if let Some(info) = unsafe { info.as_mut() } {
            *info = MessageInfo::of(&meta);
        }
        Ok(true)
    }
}

unsafe fn take(
    subscription: *const Subscription,
    message: *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    unsafe {
        let state = state(subscription)?;
        if message.is_null() {
            return Err(Failure::argument("argument ros_message is null"));
        }
        let taken = non_null_mut(taken, "taken")?;
        *taken = false;
        *taken = state.take_into(message, info)?;
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take(
    subscription: *const Subscription,
    message: *mut c_void,
    taken: *mut bool,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take", || unsafe {
        take(subscription, message, taken, std::ptr::null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_with_info(
    subscription: *const Subscription,
    message: *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take_with_info", || unsafe {
        state(subscription)?;
        if message.is_null() {
            return Err(Failure::argument("argument ros_message is null"));
        }
        non_null(taken, "taken")?;
        non_null(info, "message_info")?;
        take(subscription, message, taken, info)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_sequence(
    subscription: *const Subscription,
    count: usize,
    messages: *mut MessageSequence,
    infos: *mut MessageSequence,
    taken: *mut usize,
    _allocation: *mut c_void,
) -> Ret {
    run("rmw_take_sequence", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(subscription)?;
            let messages = non_null_mut(messages, "message_sequence")?;
            let infos = non_null_mut(infos, "message_info_sequence")?;
            let taken = non_null_mut(taken, "taken")?;
            if count == 0 {
                return Err(Failure::argument("count is 0"));
            }
            if count > messages.capacity || count > infos.capacity {
                return Err(Failure::argument(format!(
                    "{count} messages exceed the capacity of a sequence ({} and {})",
                    messages.capacity, infos.capacity
                )));
            }
            *taken = 0;
            let (places, info_places) = (
                messages.data.cast::<*mut c_void>(),
                infos.data.cast::<MessageInfo>(),
            );
            while *taken < count && state.take_into(*places.add(*taken), info_places.add(*taken))? {
                *taken += 1;
            }
            messages.size = *taken;
            infos.size = *taken;
        }
        Ok(())
    })
}

unsafe fn take_loaned(
    subscription: *const Subscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    unsafe {
        let state = state(subscription)?;
        let message = non_null_mut(message, "loaned_message")?;
        let taken = non_null_mut(taken, "taken")?;
        if !message.is_null() {
            return Err(Failure::argument("*loaned_message is not null"));
        }
        *taken = false;
        if let Some(loan) = state.take_loan(info)? {
            *message = loan;
            *taken = true;
        }
    }
    Ok(())
}

/// The message must not be written: it may be in memory of the publisher's process, which
/// is read-only here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_loaned_message(
    subscription: *const Subscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take_loaned_message", || unsafe {
        take_loaned(subscription, message, taken, std::ptr::null_mut())
    })
}

/// As [`rmw_take_loaned_message`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_loaned_message_with_info(
    subscription: *const Subscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take_loaned_message_with_info", || unsafe {
        state(subscription)?;
        non_null(info, "message_info")?;
        take_loaned(subscription, message, taken, info)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_return_loaned_message_from_subscription(
    subscription: *const Subscription,
    message: *mut c_void,
) -> Ret {
    run("rmw_return_loaned_message_from_subscription", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(subscription)?;
            let (loans, _) = state.loans()?;
            non_null(message, "loaned_message")?;
            loans.remove(message)?;
        }
        Ok(())
    })
}

unsafe fn take_serialized(
    subscription: *const Subscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: *mut MessageInfo,
) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    unsafe {
        let state = state(subscription)?;
        let message = non_null_mut(message, "serialized_message")?;
        let taken = non_null_mut(taken, "taken")?;
        *taken = false;
        if let Some(body) = state.take(Ok) {
            let (body, meta) = body?;
            serialized::assign(message, &shared_message::into_payload(body))?;
            if let Some(info) = info.as_mut() {
                *info = MessageInfo::of(&meta);
            }
            *taken = true;
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_serialized_message(
    subscription: *const Subscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take_serialized_message", || unsafe {
        take_serialized(subscription, message, taken, std::ptr::null_mut())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_serialized_message_with_info(
    subscription: *const Subscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: *mut MessageInfo,
    _allocation: *mut c_void,
) -> Ret {
    // SAFETY: the contract of rmw (lib.rs).
    run("rmw_take_serialized_message_with_info", || unsafe {
        state(subscription)?;
        non_null(message, "serialized_message")?;
        non_null(taken, "taken")?;
        non_null(info, "message_info")?;
        take_serialized(subscription, message, taken, info)
    })
}

/// Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_count_matched_publishers(
    subscription: *const Subscription,
    count: *mut usize,
) -> Ret {
    run("rmw_subscription_count_matched_publishers", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(subscription)?;
            *non_null_mut(count, "publisher_count")? = state.waiter.reader.matched_count();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_actual_qos(
    subscription: *const Subscription,
    qos: *mut abi::QosProfile,
) -> Ret {
    run("rmw_subscription_get_actual_qos", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = state(subscription)?;
            let announced = state.waiter.reader.announced();
            *non_null_mut(qos, "qos")? = qos::actual(&announced.qos, state.avoids_conventions);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_set_on_new_message_callback(
    subscription: *mut Subscription,
    callback: EventCallback,
    user_data: *const c_void,
) -> Ret {
    run_set_callback(
        "rmw_subscription_set_on_new_message_callback",
        callback,
        || {
            // SAFETY: the contract of rmw (lib.rs).
            let state = unsafe { state(subscription) }?;
            set_data_callback(&state.waiter, &state.node.context, callback, user_data)
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_event_init(
    rmw_event: *mut Event,
    subscription: *const Subscription,
    event_type: u32,
) -> Ret {
    run("rmw_subscription_event_init", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            non_null(rmw_event, "rmw_event")?;
            event::init(rmw_event, &state(subscription)?.events, event_type)
        }
    })
}
