// Endpoints of services and topics on Fast DDS as rmw_fastrtps creates them: the
// related sample identity of a reply is sent as inline QoS.
#ifndef FASTDDS_NODE_HPP
#define FASTDDS_NODE_HPP

#include <memory>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/rtps/common/WriteParams.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::SampleIdentity;
using eprosima::fastrtps::rtps::WriteParams;
using eprosima::fastrtps::types::ReturnCode_t;

struct requester {
  SampleIdentity identity;
};

static DomainParticipant *participant;

template <class T>
static T *check(T *made, const char *action)
{
  if (!made)
    fail(EXIT_DDS, "%s: refused, see the log above", action);
  return made;
}

static void open_participant(int domain)
{
  DomainParticipantQos qos;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  participant = check(DomainParticipantFactory::get_instance()->create_participant(uint32_t(domain), qos), "create a participant");
}

static void close_participant()
{
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}

template <class Qos>
static Qos node_qos(int depth, bool kept)
{
  Qos q;
  q.reliability().kind = RELIABLE_RELIABILITY_QOS;
  q.durability().kind = kept ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  q.history().kind = KEEP_LAST_HISTORY_QOS;
  q.history().depth = depth;
  q.data_sharing().off();
  return q;
}

template <class PubSubType>
static Topic *open_topic(const char *name)
{
  TypeSupport type(new PubSubType);
  type.get()->auto_fill_type_information(false);
  type.get()->auto_fill_type_object(false);
  type.register_type(participant);
  return check(participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT), name);
}

template <class PubSubType>
static DataWriter *open_writer(const char *name, int depth, bool kept)
{
  auto *p = check(participant->create_publisher(PUBLISHER_QOS_DEFAULT), "create a publisher");
  return check(p->create_datawriter(open_topic<PubSubType>(name), node_qos<DataWriterQos>(depth, kept)), "create a writer");
}

template <class PubSubType>
static DataReader *open_reader(const char *name, int depth, bool kept)
{
  auto *s = check(participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "create a subscriber");
  return check(s->create_datareader(open_topic<PubSubType>(name), node_qos<DataReaderQos>(depth, kept)), "create a reader");
}

static bool has_matched(DataWriter *writer)
{
  PublicationMatchedStatus s;
  return writer->get_publication_matched_status(s) == ReturnCode_t::RETCODE_OK && s.current_count > 0;
}

static bool has_matched(DataReader *reader)
{
  SubscriptionMatchedStatus s;
  return reader->get_subscription_matched_status(s) == ReturnCode_t::RETCODE_OK && s.current_count > 0;
}

template <class T>
static void write_sample(DataWriter *writer, T &sample)
{
  if (!writer->write(&sample))
    fail(EXIT_DDS, "write: refused");
}

// Passes each available sample to `handle`.
template <class T, class F>
static void take_all(DataReader *reader, F handle)
{
  T sample;
  SampleInfo info;
  while (reader->take_next_sample(&sample, &info) == ReturnCode_t::RETCODE_OK)
    if (info.valid_data)
      handle(sample, info);
}

// Reader and writer of a service, for server or client.
template <class RequestType, class ReplyType>
struct Service {
  using Request = typename RequestType::type;
  using Reply = typename ReplyType::type;

  DataWriter *writer = nullptr;
  DataReader *reader = nullptr;

  void open(bool serve, const char *name, const char *service)
  {
    const char *requests = service_topic(name, service, true), *replies = service_topic(name, service, false);
    reader = serve ? open_reader<RequestType>(requests, 1000, false) : open_reader<ReplyType>(replies, 1000, false);
    writer = serve ? open_writer<ReplyType>(replies, 1000, false) : open_writer<RequestType>(requests, 1000, false);
  }

  bool is_met() const { return has_matched(writer) && has_matched(reader); }

  // A client's request, with the GUID of its reply reader.
  void ask(Request &request)
  {
    WriteParams about;
    about.related_sample_identity().writer_guid(reader->guid());
    if (!writer->write(&request, about))
      fail(EXIT_DDS, "write: refused");
  }

  void answer(const requester &who, Reply &reply)
  {
    WriteParams about;
    about.related_sample_identity(who.identity);
    if (!writer->write(&reply, about))
      fail(EXIT_DDS, "write: refused");
  }

  // For a server: `handle(request, client)`.
  template <class F>
  void take_requests(F handle)
  {
    take_all<Request>(reader, [&](const Request &request, const SampleInfo &info) {
      // The GUID of its reply reader if it is announced, else that of its writer.
      GUID_t client = info.related_sample_identity.writer_guid();
      if (client == GUID_t::unknown())
        client = info.sample_identity.writer_guid();
      requester who;
      who.identity.writer_guid(client);
      who.identity.sequence_number(info.sample_identity.sequence_number());
      handle(request, who);
    });
  }

  // For a client: `handle(number, reply)`.
  template <class F>
  void take_replies(F handle)
  {
    take_all<Reply>(reader, [&](const Reply &reply, const SampleInfo &info) {
      const auto &related = info.related_sample_identity;
      if (related.writer_guid() == reader->guid() || related.writer_guid() == writer->guid())
        handle((long long)related.sequence_number().to64long(), reply);
    });
  }
};

#endif
