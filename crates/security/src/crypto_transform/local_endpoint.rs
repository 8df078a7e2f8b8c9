//! Local endpoint: the keys of one of our endpoints, and the receivers that have
//! them.

use std::collections::BTreeMap;

use pteros_rtps::id::{EntityId, Guid};

use super::protection::{EndpointProtection, transformation};
use crate::crypto::{KeyMaterial, ReceiverKey, Sealer};
use crate::governance::PayloadProtection;
use crate::key::RandomnessFailed;

#[derive(Debug)]
pub(super) struct LocalEndpoint {
    pub protection: EndpointProtection,
    pub submessage: Option<Sealer>,
    pub payload: Option<Sealer>,
    /// A key that protects nothing: Fast DDS's writers of protected payloads wait
    /// for one from every reader.
    pub idle: Option<KeyMaterial>,
    /// Receiver-specific keys for origin authentication, where the governance
    /// requires it.
    pub receivers: BTreeMap<Guid, ReceiverKey>,
}

impl LocalEndpoint {
    pub fn new(entity: EntityId, protection: EndpointProtection) -> Result<Self, RandomnessFailed> {
        let sealer = |is_on: bool, encrypts: bool| -> Result<_, RandomnessFailed> {
            if !is_on {
                return Ok(None);
            }
            let material = KeyMaterial::generate(transformation(encrypts), false)?;
            Ok(Some(Sealer::new(material)?))
        };
        let sends = protection.of_sender(entity);
        let (submessage, payload) = (sends.submessage, sends.payload);
        let encrypts_payload = payload == PayloadProtection::Encrypt;
        let is_waited_for = entity.is_reader()
            && !submessage.is_on()
            && protection.payload != PayloadProtection::None;
        let idle = is_waited_for.then(|| KeyMaterial::generate(transformation(true), false));
        Ok(Self {
            protection,
            idle: idle.transpose()?,
            submessage: sealer(submessage.is_on(), submessage.encrypts())?,
            payload: sealer(payload != PayloadProtection::None, encrypts_payload)?,
            receivers: BTreeMap::new(),
        })
    }
}
