//! Subscriptions.

use std::sync::Arc;

use bytes::Bytes;
use pteros_rcl::data_waiter::DataWaiter;
use pteros_rcl::event_waiter::EventWaiter;
use pteros_rcl::rmw_qos::resolve_best_available;
use pteros_runtime::EndpointSpec;
use pteros_runtime::content_filter::FilterSpec;
use pteros_runtime::names::{NameKind, dds_topic};
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::{QueuedSample, SampleBody, SampleMeta};
use pteros_runtime::user_data::{ANY_TYPE_HASH, type_hash_entry};
use pyo3::prelude::*;

use crate::decode::Undecodable;
use crate::endpoint::{MessageInfo, filterable, topic_name};
use crate::error::{self, rcl};
use crate::handle::{Handle, Lifetime};
use crate::node::{Node, NodeState};
use crate::program::Program;
use crate::qos::Profile;
use crate::{raw_message, types};

/// A subscription.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Subscription {
    node: Arc<NodeState>,
    pub(crate) waiter: Arc<DataWaiter>,
    program: Arc<Program>,
    pub(crate) events: Arc<EventWaiter>,
    pub(crate) life: Arc<Lifetime>,
    topic: String,
}

impl Subscription {
    /// The oldest message as an object.
    pub(crate) fn take_message<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.life.check()?;
        let taken = self.next(|payload, _| self.program.decode_received(py, &payload));
        taken.transpose()
    }

    /// The oldest message that `decode` accepts. Others are dropped and counted: they are
    /// no error of the program that receives them.
    fn next<T>(
        &self,
        mut decode: impl FnMut(Bytes, SampleMeta) -> Result<T, Undecodable>,
    ) -> Option<T> {
        let core = &self.node.context.core;
        let mut decode_data = |item: QueuedSample| match (item.is_data(), item.body) {
            (true, SampleBody::Serialized(payload)) => decode(payload, item.meta).map(Some),
            _ => Ok(None),
        };
        loop {
            let taken = core
                .taking()
                .take_decoded(&self.waiter.reader, &mut decode_data)?;
            if taken.is_some() {
                return taken;
            }
        }
    }
}

#[pymethods]
impl Subscription {
    #[new]
    #[pyo3(signature = (node, msg_type, topic, qos, ignore_local_publications=false, filter_expression=None, filter_parameters=Vec::new()))]
    #[allow(clippy::too_many_arguments, reason = "by keyword in Python")]
    fn new(
        py: Python<'_>,
        node: &Node,
        msg_type: &Bound<'_, PyAny>,
        topic: &str,
        qos: &Profile,
        ignore_local_publications: bool,
        filter_expression: Option<String>,
        filter_parameters: Vec<String>,
    ) -> PyResult<PyClassInitializer<Self>> {
        node.check(py, "create subscription")?;
        let node = node.state.clone();
        let program = types::program_of(msg_type)?;
        let profile = qos.to_profile()?;
        let topic = topic_name(py, &node, NameKind::Topic, topic, &profile)?;
        let core = &node.context.core;
        let on_topic = dds_topic(&topic, profile.avoid_ros_namespace_conventions);
        let profile = resolve_best_available(core.graph(), &on_topic, false, profile);
        let mut endpoint_qos = profile.to_reader();
        endpoint_qos.user_data = type_hash_entry(types::type_hash(&program.name)?);
        if program.is_appendable {
            let entry = ANY_TYPE_HASH.as_bytes();
            endpoint_qos.user_data.extend_from_slice(entry);
        }
        let spec = EndpointSpec {
            topic: on_topic,
            type_name: program.ty.dds_type_name(),
            qos: endpoint_qos,
            serialize_only: true,
            message_type: filterable(&program),
            content_filter: filter_expression.map(|expression| FilterSpec {
                expression,
                parameters: filter_parameters,
            }),
            ..EndpointSpec::default()
        };
        let reader = py
            .detach(|| {
                let reader =
                    core.create_reader(spec, DeliveryForm::Bytes, ignore_local_publications)?;
                core.discovery()
                    .attach_endpoint(node.key, &reader.announced());
                Ok(reader)
            })
            .map_err(error::endpoint)?;
        let events = EventWaiter::new(core, &reader.events, true, ());
        let waiter = DataWaiter::new(core, reader);
        let (owner, removed) = (node.clone(), waiter.clone());
        let life = Lifetime::new(move || {
            let core = &owner.context.core;
            core.discovery()
                .detach_endpoint(owner.key, removed.reader.data.guid);
            core.remove_reader(&removed.reader);
        });
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                node,
                waiter,
                program,
                events,
                life,
                topic,
            }),
        )
    }

    /// The oldest message and its meta data, or None.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, MessageInfo)>> {
        self.life.check()?;
        let taken = self.next(|payload, meta| {
            let message = self.program.decode_received(py, &payload)?;
            Ok(message.map(|message| (message, MessageInfo::of(py, &meta))))
        });
        taken.transpose()
    }

    /// As an executor takes it: the arguments of a callback that gets the oldest message
    /// alone, or None.
    fn take_arguments<'py>(
        &self,
        py: Python<'py>,
        _executor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        Ok(self.take_message(py)?.map(|message| (message,)))
    }

    /// The oldest message as it was received, or None.
    fn take_raw<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, MessageInfo)>> {
        self.life.check()?;
        let Some((payload, meta)) = self.next(|payload, meta| Ok((payload, meta))) else {
            return Ok(None);
        };
        let message = raw_message::new(py, payload)?;
        Ok(Some((message, MessageInfo::of(py, &meta))))
    }

    /// Whether `take` has something.
    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.waiter.reader.has_samples())
    }

    fn get_topic_name(&self) -> PyResult<&str> {
        self.life.check()?;
        Ok(&self.topic)
    }

    fn get_publisher_count(&self) -> PyResult<usize> {
        self.life.check()?;
        Ok(self.waiter.reader.matched_count())
    }

    /// Expression and parameters.
    fn get_content_filter(&self) -> PyResult<Option<(String, Vec<String>)>> {
        self.life.check()?;
        let filter = self.waiter.reader.content_filter();
        Ok(filter.map(|filter| (filter.expression, filter.parameters)))
    }

    /// Replaces the filter; "" removes it.
    #[pyo3(signature = (expression, parameters=Vec::new()))]
    fn set_content_filter(
        &self,
        py: Python<'_>,
        expression: String,
        parameters: Vec<String>,
    ) -> PyResult<()> {
        self.life.check()?;
        let spec = FilterSpec {
            expression,
            parameters,
        };
        let core = &self.node.context.core;
        py.detach(|| core.set_content_filter(&self.waiter.reader, &spec))
            .map_err(rcl)
    }

    #[getter]
    fn is_cft_enabled(&self) -> bool {
        self.waiter.reader.content_filter().is_some()
    }
}
