//! A peer over Dust DDS: `pub` and `sub`.

mod dds_peer;
mod messages;
mod options;

use std::time::Duration;

use dds_peer::Endpoint;
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::status::NO_STATUS;
use dust_dds::infrastructure::time::{Duration as Span, DurationKind};
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::xtypes::type_support::TypeSupport;
use messages::{Bytes, Sample, Text};
use options::Options;

fn main() {
    let options = Options::read("rt/chatter", "", 0);
    if options.is_bytes {
        dds_peer::run::<Bytes, _>(&options, |is_writer| Peer::open(&options, is_writer));
    } else {
        dds_peer::run::<Text, _>(&options, |is_writer| Peer::open(&options, is_writer));
    }
}

struct Peer<T> {
    participant: DomainParticipant,
    endpoint: Either<T>,
}

enum Either<T> {
    Writer(DataWriter<T>),
    Reader(DataReader<T>),
}

impl<T: Sample + TypeSupport> Peer<T> {
    fn open(options: &Options, is_writer: bool) -> Self {
        let (default, none) = (QosKind::Default, NO_STATUS);
        let participant = DomainParticipantFactory::get_instance()
            .create_participant(i32::from(options.domain), default, NO_LISTENER, none)
            .expect("a participant");
        let topic = participant
            .create_topic::<T>(
                &options.topic,
                T::TYPE_NAME,
                QosKind::Default,
                NO_LISTENER,
                none,
            )
            .expect("a topic");
        let reliability = ReliabilityQosPolicy {
            kind: if options.is_reliable {
                ReliabilityQosPolicyKind::Reliable
            } else {
                ReliabilityQosPolicyKind::BestEffort
            },
            max_blocking_time: DurationKind::Finite(Span::new(0, 100_000_000)),
        };
        let durability = DurabilityQosPolicy {
            kind: if options.is_transient_local {
                DurabilityQosPolicyKind::TransientLocal
            } else {
                DurabilityQosPolicyKind::Volatile
            },
        };
        let history = HistoryQosPolicy {
            kind: match options.depth {
                Some(depth) => HistoryQosPolicyKind::KeepLast(depth),
                None => HistoryQosPolicyKind::KeepAll,
            },
        };
        let endpoint = if is_writer {
            let qos = QosKind::Specific(DataWriterQos {
                reliability,
                durability,
                history,
                ..DataWriterQos::default()
            });
            let publisher = participant
                .create_publisher(QosKind::Default, NO_LISTENER, none)
                .expect("a publisher");
            let writer = publisher.create_datawriter(&topic, qos, NO_LISTENER, none);
            Either::Writer(writer.expect("a writer"))
        } else {
            let qos = QosKind::Specific(DataReaderQos {
                reliability,
                durability,
                history,
                ..DataReaderQos::default()
            });
            let subscriber = participant
                .create_subscriber(QosKind::Default, NO_LISTENER, none)
                .expect("a subscriber");
            let reader = subscriber.create_datareader(&topic, qos, NO_LISTENER, none);
            Either::Reader(reader.expect("a reader"))
        };
        Self {
            participant,
            endpoint,
        }
    }
}

impl<T: TypeSupport + Clone> Endpoint<T> for Peer<T> {
    fn matched(&mut self) -> usize {
        let count = match &self.endpoint {
            Either::Writer(writer) => {
                let status = writer.get_publication_matched_status();
                status.map(|status| status.current_count)
            }
            Either::Reader(reader) => {
                let status = reader.get_subscription_matched_status();
                status.map(|status| status.current_count)
            }
        };
        count.expect("a status") as usize
    }

    fn write(&mut self, sample: T) -> Option<T> {
        let Either::Writer(writer) = &self.endpoint else {
            return None;
        };
        match writer.write(sample.clone(), None) {
            Ok(()) => None,
            Err(DdsError::Timeout) => Some(sample),
            Err(error) => panic!("write: {error:?}"),
        }
    }

    fn take(&mut self) -> Option<T> {
        let Either::Reader(reader) = &self.endpoint else {
            return None;
        };
        loop {
            match reader.take_next_sample() {
                // A sample without data is the end of an instance.
                Ok(sample) if sample.data.is_none() => {}
                Ok(sample) => return sample.data,
                Err(DdsError::NoData) => return None,
                Err(error) => panic!("take: {error:?}"),
            }
        }
    }

    fn is_acknowledged(&mut self, within: Duration) -> bool {
        let within = Span::new(within.as_secs() as i32, within.subsec_nanos());
        match &self.endpoint {
            Either::Writer(writer) => writer.wait_for_acknowledgments(within).is_ok(),
            Either::Reader(_) => true,
        }
    }

    fn close(self) {
        let _ = self.participant.delete_contained_entities();
        let _ = DomainParticipantFactory::get_instance().delete_participant(&self.participant);
    }
}
