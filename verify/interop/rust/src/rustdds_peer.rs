//! A peer over RustDDS: `pub` and `sub`.

mod dds_peer;
mod messages;
mod options;

use dds_peer::Endpoint;
use messages::{Bytes, Sample, Text};
use options::Options;
use rustdds::dds::WriteError;
use rustdds::no_key::{DataReaderCdr, DataWriterCdr};
use rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use rustdds::{
    DataReaderStatus, DataWriterStatus, DomainParticipant, Duration, QosPolicies, QosPolicyBuilder,
    StatusEvented, TopicKind,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn main() {
    let options = Options::read("rt/chatter", "", 0);
    if options.is_bytes {
        dds_peer::run::<Bytes, _>(&options, |is_writer| Peer::open(&options, is_writer));
    } else {
        dds_peer::run::<Text, _>(&options, |is_writer| Peer::open(&options, is_writer));
    }
}

struct Peer<T: Serialize + DeserializeOwned + 'static> {
    participant: DomainParticipant,
    writer: Option<DataWriterCdr<T>>,
    reader: Option<DataReaderCdr<T>>,
    matched: usize,
}

impl<T: Sample + Serialize + DeserializeOwned> Peer<T> {
    fn open(options: &Options, is_writer: bool) -> Self {
        let participant = DomainParticipant::new(options.domain).expect("a participant");
        let qos = qos(options);
        let topic = participant
            .create_topic(
                options.topic.clone(),
                T::TYPE_NAME.to_owned(),
                &qos,
                TopicKind::NoKey,
            )
            .expect("a topic");
        let writer = is_writer.then(|| {
            let publisher = participant.create_publisher(&qos).expect("a publisher");
            let writer = publisher.create_datawriter_no_key_cdr(&topic, Some(qos.clone()));
            writer.expect("a writer")
        });
        let reader = (!is_writer).then(|| {
            let subscriber = participant.create_subscriber(&qos).expect("a subscriber");
            let reader = subscriber.create_datareader_no_key_cdr(&topic, Some(qos.clone()));
            reader.expect("a reader")
        });
        Self {
            participant,
            writer,
            reader,
            matched: 0,
        }
    }
}

fn qos(options: &Options) -> QosPolicies {
    QosPolicyBuilder::new()
        .reliability(if options.is_reliable {
            Reliability::Reliable {
                max_blocking_time: Duration::from_millis(100),
            }
        } else {
            Reliability::BestEffort
        })
        .durability(if options.is_transient_local {
            Durability::TransientLocal
        } else {
            Durability::Volatile
        })
        .history(match options.depth {
            Some(depth) => History::KeepLast {
                depth: depth as i32,
            },
            None => History::KeepAll,
        })
        // Else a reader of all samples keeps 64.
        .resource_limits(ResourceLimits {
            max_samples: 10_000,
            max_instances: 1,
            max_samples_per_instance: 10_000,
        })
        .build()
}

impl<T: Sample + Serialize + DeserializeOwned> Endpoint<T> for Peer<T> {
    fn matched(&mut self) -> usize {
        if let Some(writer) = &self.writer {
            while let Some(status) = writer.try_recv_status() {
                if let DataWriterStatus::PublicationMatched { current, .. } = status {
                    self.matched = current.count() as usize;
                }
            }
        }
        if let Some(reader) = &self.reader {
            while let Some(status) = reader.try_recv_status() {
                if let DataReaderStatus::SubscriptionMatched { current, .. } = status {
                    self.matched = current.count() as usize;
                }
            }
        }
        self.matched
    }

    fn write(&mut self, sample: T) -> Option<T> {
        match self.writer.as_ref()?.write(sample, None) {
            Ok(()) => None,
            Err(WriteError::WouldBlock { data }) => Some(data),
            Err(error) => panic!("write: {error}"),
        }
    }

    fn take(&mut self) -> Option<T> {
        let sample = self.reader.as_mut()?.take_next_sample();
        sample.expect("a sample").map(|sample| sample.into_value())
    }

    fn is_acknowledged(&mut self, within: std::time::Duration) -> bool {
        let writer = self.writer.as_ref();
        writer.is_none_or(|writer| {
            writer
                .wait_for_acknowledgments(within.into())
                .unwrap_or(false)
        })
    }

    fn close(self) {
        let Self {
            participant,
            writer,
            reader,
            ..
        } = self;
        drop((writer, reader));
        drop(participant);
    }
}
