//! Subscriptions, with a callback or polled.

use std::ffi::{CString, c_char, c_void};
use std::time::{SystemTime, UNIX_EPOCH};

use pteros::{QosProfile, Sample, SampleInfo, Subscription, SubscriptionOptions};
use pteros_typesupport::{CMessageTable, Loans};

use crate::argument::{array, c_text, null, put, required, text};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Error, Outcome, Status};
use crate::message::CMessage;
use crate::node::PterosNode;
use crate::qos::{self, CQos};
use crate::types;

/// `pteros_subscription_t`.
pub struct PterosSubscription {
    subscription: Subscription<CMessage>,
    topic: CString,
    /// Messages that the program reads in place.
    loans: Loans<Sample<CMessage>>,
}

/// `pteros_message_info_t`.
#[repr(C)]
pub struct MessageInfo {
    /// Nanoseconds since 1970; 0 if the publisher sent none.
    source_timestamp: i64,
    received_timestamp: i64,
    sequence_number: i64,
    publisher_gid: [u8; 16],
}

// `tests/programs/services.c` has the same numbers.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<MessageInfo>() == 40
        && std::mem::offset_of!(MessageInfo, sequence_number) == 16
        && std::mem::offset_of!(MessageInfo, publisher_gid) == 24
);

impl MessageInfo {
    pub(crate) fn of(info: &SampleInfo) -> Self {
        Self {
            source_timestamp: info.source_timestamp.map_or(0, nanoseconds),
            received_timestamp: nanoseconds(info.received_timestamp),
            sequence_number: info.sequence,
            publisher_gid: info.publisher_gid.to_bytes(),
        }
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// `pteros_message_callback_t`.
type MessageCallback =
    Option<extern "C" fn(message: *const c_void, info: *const MessageInfo, user: *mut c_void)>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_new(
    node: Option<&PterosNode>,
    table: *const CMessageTable,
    topic: *const c_char,
    qos: Option<&CQos>,
    callback: MessageCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosSubscription>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_subscription_new", || {
        create(node, table, topic, qos, None, callback, user)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_new_filtered(
    node: Option<&PterosNode>,
    table: *const CMessageTable,
    topic: *const c_char,
    qos: Option<&CQos>,
    filter: Option<&CContentFilter>,
    callback: MessageCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosSubscription>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_subscription_new_filtered", || {
        create(node, table, topic, qos, filter, callback, user)
    })
}

fn create(
    node: Option<&PterosNode>,
    table: *const CMessageTable,
    topic: *const c_char,
    qos: Option<&CQos>,
    filter: Option<&CContentFilter>,
    callback: MessageCallback,
    user: UserData,
) -> Outcome<PterosSubscription> {
    let node = &required(node, "node")?.node;
    let ty = types::message(table)?;
    let mut options = SubscriptionOptions::<CMessage>::of_type(&ty, text(topic, "topic")?);
    options.qos = qos::profile(qos, QosProfile::default())?;
    if let Some(filter) = filter {
        let (expression, parameters) = filter.read()?;
        options = options.content_filter(expression, parameters);
    }
    let subscription = match callback {
        Some(callback) => node.create_subscription(options, move |sample: Sample<CMessage>| {
            let info = MessageInfo::of(sample.info());
            callback(sample.address(), &raw const info, user.pointer());
        })?,
        None => node.create_polled_subscription(options)?,
    };
    Ok(PterosSubscription {
        topic: c_text(subscription.topic()),
        subscription,
        loans: Loans::default(),
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_free(subscription: Option<Box<PterosSubscription>>) {
    error::free("pteros_subscription_free", subscription);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_take(
    subscription: Option<&PterosSubscription>,
    message: *mut c_void,
    info: Option<&mut MessageInfo>,
    taken: *mut bool,
) -> Status {
    error::run("pteros_subscription_take", || {
        let subscription = &required(subscription, "subscription")?.subscription;
        put(taken, false, "taken")?;
        if message.is_null() {
            return Err(null("message"));
        }
        let Some(sample) = subscription.take() else {
            return Ok(());
        };
        // SAFETY: the contract of C (lib.rs).
        unsafe { sample.copy_to(message) }?;
        if let Some(info) = info {
            *info = MessageInfo::of(sample.info());
        }
        put(taken, true, "taken")
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_borrow(
    subscription: Option<&PterosSubscription>,
    message: *mut *const c_void,
    info: Option<&mut MessageInfo>,
) -> Status {
    error::run("pteros_subscription_borrow", || {
        let subscription = required(subscription, "subscription")?;
        put(message, std::ptr::null(), "message")?;
        subscription.loans.check_space().map_err(Error::failed)?;
        let Some(sample) = subscription.subscription.take() else {
            return Ok(());
        };
        if let Some(info) = info {
            *info = MessageInfo::of(sample.info());
        }
        // The struct is behind a pointer, so it stays where it is when the sample moves.
        let address = sample.address();
        subscription.loans.add(address.cast_mut(), sample);
        put(message, address, "message")
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_return(
    subscription: Option<&PterosSubscription>,
    message: *const c_void,
) -> Status {
    error::run("pteros_subscription_return", || {
        let subscription = required(subscription, "subscription")?;
        drop(subscription.loans.remove(message)?);
        Ok(())
    })
}

/// `pteros_content_filter_t`.
#[repr(C)]
pub struct CContentFilter {
    expression: *const c_char,
    parameters: *const *const c_char,
    parameter_count: usize,
}

impl CContentFilter {
    fn read(&self) -> Outcome<(&str, Vec<&str>)> {
        let parameters = array(self.parameters, self.parameter_count, "filter->parameters")?;
        let parameters = parameters
            .iter()
            .map(|parameter| text(*parameter, "filter->parameters"));
        Ok((
            text(self.expression, "filter->expression")?,
            parameters.collect::<Outcome<_>>()?,
        ))
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_set_content_filter(
    subscription: Option<&PterosSubscription>,
    filter: Option<&CContentFilter>,
) -> Status {
    error::run("pteros_subscription_set_content_filter", || {
        let subscription = &required(subscription, "subscription")?.subscription;
        let filter = filter.map(CContentFilter::read).transpose()?;
        let (expression, parameters) = filter.unwrap_or_default();
        Ok(subscription.set_content_filter(expression, parameters)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_is_cft_enabled(
    subscription: Option<&PterosSubscription>,
) -> bool {
    error::value("pteros_subscription_is_cft_enabled", false, || {
        Ok(required(subscription, "subscription")?
            .subscription
            .is_cft_enabled())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_topic(
    subscription: Option<&PterosSubscription>,
) -> *const c_char {
    error::value("pteros_subscription_topic", c"".as_ptr(), || {
        Ok(required(subscription, "subscription")?.topic.as_ptr())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_subscription_matched_count(
    subscription: Option<&PterosSubscription>,
) -> usize {
    error::value("pteros_subscription_matched_count", 0, || {
        let subscription = required(subscription, "subscription")?;
        Ok(subscription.subscription.matched_count())
    })
}
