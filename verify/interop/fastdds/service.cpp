// Service server and client on eProsima Fast DDS, with the wire format of
// rmw_fastrtps. Options and lines: ../README.md. The structure is that of
// ../cyclone/service.c.

#include <atomic>
#include <memory>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/rtps/common/WriteParams.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include "add_two_intsPubSubTypes.h"

#include "../service_peer.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::WriteParams;
using eprosima::fastrtps::types::ReturnCode_t;
using Request = example_interfaces::srv::dds_::AddTwoInts_Request_;
using Response = example_interfaces::srv::dds_::AddTwoInts_Response_;

static service_options options;
static DomainParticipant *participant;
static DataWriter *writer;
static DataReader *replies;
static std::atomic<int> matched_now{0};

template <class T>
static T *check(T *made, const char *action)
{
  if (!made)
    fail(EXIT_DDS, "%s: refused, see the log above", action);
  return made;
}

struct Writing : DataWriterListener {
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &s) override
  {
    matched_now = s.current_count;
    say("matched %d", s.current_count);
  }
};

static void answer_requests(DataReader *reader)
{
  Request request;
  SampleInfo info;
  while (reader->take_next_sample(&request, &info) == ReturnCode_t::RETCODE_OK) {
    if (!info.valid_data)
      continue;
    say("asked %lld %lld", (long long)request.a(), (long long)request.b());
    // The GUID of its reply reader if it is announced, else that of its writer.
    GUID_t client = info.related_sample_identity.writer_guid();
    if (client == GUID_t::unknown())
      client = info.sample_identity.writer_guid();
    WriteParams about;
    about.related_sample_identity().writer_guid(client);
    about.related_sample_identity().sequence_number(info.sample_identity.sequence_number());
    Response answer;
    answer.sum(request.a() + request.b());
    if (!writer->write(&answer, about))
      fail(EXIT_DDS, "write: refused");
  }
}

struct Asking : DataReaderListener {
  void on_data_available(DataReader *reader) override
  {
    Response answer;
    SampleInfo info;
    while (reader->take_next_sample(&answer, &info) == ReturnCode_t::RETCODE_OK) {
      const auto &related = info.related_sample_identity;
      if (info.valid_data && (related.writer_guid() == reader->guid() || related.writer_guid() == writer->guid()))
        say("answer %lld %lld", (long long)related.sequence_number().to64long(), (long long)answer.sum());
    }
  }
};

static Writing writing;
static Asking asking;

template <class Qos>
static void fill_qos(Qos &q)
{
  q.reliability().kind = RELIABLE_RELIABILITY_QOS;
  q.durability().kind = VOLATILE_DURABILITY_QOS;
  q.history().kind = KEEP_LAST_HISTORY_QOS;
  q.history().depth = 10;
  q.data_sharing().off();
}

static Topic *make_topic(bool of_requests)
{
  TypeSupport type(of_requests
                     ? static_cast<TopicDataType *>(new example_interfaces::srv::dds_::AddTwoInts_Request_PubSubType)
                     : static_cast<TopicDataType *>(new example_interfaces::srv::dds_::AddTwoInts_Response_PubSubType));
  type.get()->auto_fill_type_information(false);
  type.get()->auto_fill_type_object(false);
  type.register_type(participant);
  const char *name = service_topic(&options, of_requests);
  return check(participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT), name);
}

static DataWriter *make_writer(bool of_requests)
{
  DataWriterQos qos;
  fill_qos(qos);
  auto *p = check(participant->create_publisher(PUBLISHER_QOS_DEFAULT), "create a publisher");
  return check(p->create_datawriter(make_topic(of_requests), qos, &writing), "create a writer");
}

static DataReader *make_reader(bool of_requests, DataReaderListener *listener)
{
  DataReaderQos qos;
  fill_qos(qos);
  auto *s = check(participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "create a subscriber");
  return check(s->create_datareader(make_topic(of_requests), qos, listener), "create a reader");
}

int main(int argc, char **argv)
{
  options = service_parse(argc, argv);
  if (options.late_reader_ms)
    fail(EXIT_USAGE, "--late-reader: requests name the reader of replies, which must be there");
  catch_stop();
  DomainParticipantQos qos;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  auto *factory = DomainParticipantFactory::get_instance();
  participant = check(factory->create_participant(uint32_t(options.domain), qos), "create a participant");
  DataReader *asked = nullptr;
  if (options.serve) {
    writer = make_writer(false);
    asked = make_reader(true, nullptr);
  } else {
    replies = make_reader(false, &asking);
    writer = make_writer(true);
  }
  say("ready");
  int64_t end = service_end(&options);
  long long a, b;
  // As rmw_fastrtps: no response before its client's reader is matched.
  for (; options.serve && !stop_requested && now_ns() < end; sleep_ns(1000000))
    if (matched_now > 0)
      answer_requests(asked);
  while (!options.serve && !stop_requested && service_order(&a, &b)) {
    Request request;
    request.a(a);
    request.b(b);
    WriteParams about;
    about.related_sample_identity().writer_guid(replies->guid());
    if (!writer->write(&request, about))
      fail(EXIT_DDS, "write: refused");
  }
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  return EXIT_OK;
}
