// Shapes program on eProsima Fast DDS: publishes or subscribes to one topic of
// ShapeType with any policy. Options and lines: ../README.md. Fast DDS 2.9
// writes only XCDR1 and does not support coherent sets.

#include <map>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include "shapesPubSubTypes.h"
#include "shapesTypeObject.h"

#include "../shapes_peer.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::c_TimeInfinite;
using eprosima::fastrtps::types::ReturnCode_t;

static shapes_options options;

template <class T>
static T *check(T *made, const char *action)
{
  if (!made)
    fail(EXIT_DDS, "%s: refused, see the log above", action);
  return made;
}

// -- what is reported ---------------------------------------------------------

struct Writing : DataWriterListener {
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &s) override
  {
    say_status("on_publication_matched", options.topic, "matched readers %d (change = %d)", s.current_count,
               s.current_count_change);
  }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &s) override
  {
    say_status("on_offered_deadline_missed", options.topic, "(total = %d, change = %d)", s.total_count,
               s.total_count_change);
  }
  void on_liveliness_lost(DataWriter *, const LivelinessLostStatus &s) override
  {
    say_status("on_liveliness_lost", options.topic, "(total = %d, change = %d)", s.total_count, s.total_count_change);
  }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &s) override
  {
    say_status("on_offered_incompatible_qos", options.topic, "%u (%s)", s.last_policy_id,
               policy_name(s.last_policy_id));
  }
};

struct Reading : DataReaderListener {
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &s) override
  {
    say_status("on_subscription_matched", options.topic, "matched writers %d (change = %d)", s.current_count,
               s.current_count_change);
  }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &s) override
  {
    say_status("on_requested_deadline_missed", options.topic, "(total = %d, change = %d)", s.total_count,
               s.total_count_change);
  }
  void on_liveliness_changed(DataReader *, const LivelinessChangedStatus &s) override
  {
    say_status("on_liveliness_changed", options.topic, "(alive = %d, not_alive = %d)", s.alive_count,
               s.not_alive_count);
  }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &s) override
  {
    say_status("on_requested_incompatible_qos", options.topic, "%u (%s)", s.last_policy_id,
               policy_name(s.last_policy_id));
  }
  void on_sample_lost(DataReader *, const SampleLostStatus &s) override
  {
    say_status("on_sample_lost", options.topic, "(total = %d, change = %d)", s.total_count, s.total_count_change);
  }
  void on_sample_rejected(DataReader *, const SampleRejectedStatus &s) override
  {
    say_status("on_sample_rejected", options.topic, "(total = %d)", s.total_count);
  }
};

static Writing writing;
static Reading reading;

// -- policies -----------------------------------------------------------------

static Duration_t milliseconds(long ms)
{
  return ms ? Duration_t(int32_t(ms / 1000), uint32_t(ms % 1000) * 1000000u) : c_TimeInfinite;
}

static std::vector<eprosima::fastrtps::rtps::octet> bytes(const char *text)
{
  return {text, text + strlen(text)};
}

template <class Qos>
static void fill_qos(Qos &q)
{
  const auto &o = options;
  q.reliability().kind = o.best_effort ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
  q.reliability().max_blocking_time = milliseconds(10000);
  q.durability().kind = o.durability == 'v'   ? VOLATILE_DURABILITY_QOS
                        : o.durability == 'l' ? TRANSIENT_LOCAL_DURABILITY_QOS
                        : o.durability == 't' ? TRANSIENT_DURABILITY_QOS
                                              : PERSISTENT_DURABILITY_QOS;
  if (o.depth >= 0) {
    q.history().kind = o.depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
    q.history().depth = o.depth ? o.depth : 1;
  }
  if (o.max_samples)
    q.resource_limits().max_samples = o.max_samples;
  if (o.max_instances)
    q.resource_limits().max_instances = o.max_instances;
  if (o.max_samples_per_instance)
    q.resource_limits().max_samples_per_instance = o.max_samples_per_instance;
  q.deadline().period = milliseconds(o.deadline_ms);
  q.lifespan().duration = milliseconds(o.lifespan_ms);
  q.liveliness().kind = o.liveliness == 'a'   ? AUTOMATIC_LIVELINESS_QOS
                        : o.liveliness == 'p' ? MANUAL_BY_PARTICIPANT_LIVELINESS_QOS
                                              : MANUAL_BY_TOPIC_LIVELINESS_QOS;
  if (o.lease_ms) {
    q.liveliness().lease_duration = milliseconds(o.lease_ms);
    q.liveliness().announcement_period = milliseconds(o.lease_ms * 2 / 3);
  }
  q.ownership().kind = o.strength >= 0 ? EXCLUSIVE_OWNERSHIP_QOS : SHARED_OWNERSHIP_QOS;
  q.latency_budget().duration = Duration_t(int32_t(o.budget_ms / 1000), uint32_t(o.budget_ms % 1000) * 1000000u);
  q.destination_order().kind =
    o.order == 's' ? BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS : BY_RECEPTION_TIMESTAMP_DESTINATIONORDER_QOS;
  if (o.user_data)
    q.user_data().data_vec(bytes(o.user_data));
  q.data_sharing().off();
}

template <class Qos>
static void fill_group(Qos &q)
{
  if (options.partition)
    q.partition().push_back(options.partition);
  if (options.group_data)
    q.group_data().data_vec(bytes(options.group_data));
  q.presentation().access_scope = options.access_scope == 'i'   ? INSTANCE_PRESENTATION_QOS
                                  : options.access_scope == 't' ? TOPIC_PRESENTATION_QOS
                                                                : GROUP_PRESENTATION_QOS;
  q.presentation().coherent_access = options.coherent;
  q.presentation().ordered_access = options.ordered;
}

// -- publishing and subscribing -----------------------------------------------

static void publish(DomainParticipant *participant, Topic *topic)
{
  PublisherQos group;
  fill_group(group);
  DataWriterQos qos;
  fill_qos(qos);
  if (options.strength >= 0)
    qos.ownership_strength().value = uint32_t(options.strength);
  qos.writer_data_lifecycle().autodispose_unregistered_instances = !options.no_autodispose;
  auto *publisher = check(participant->create_publisher(group), "create a publisher");
  auto *writer = check(publisher->create_datawriter(topic, qos, &writing), "create a writer");
  say("Create writer for topic: %s color: %s", options.topic, options.color);
  shapes_way way = {100, 100, options.size, 3, 3};
  char color[140];
  ShapeType shape;
  shape.additional_payload_size().assign(size_t(options.payload), 255);
  for (long n = 0; !stop_requested && (!options.iterations || n < options.iterations); n++) {
    shapes_step(&way, &options);
    shape.x(way.x), shape.y(way.y), shape.shapesize(way.size);
    for (int i = 0; i < options.instances; i++) {
      shape.color(shapes_color(&options, i, color));
      if (!writer->write(&shape))
        say("write refused");
      if (options.print_samples)
        say_shape(options.topic, color, way.x, way.y, way.size, options.payload, 255);
    }
    sleep_until(now_ns() + options.write_period_ms * 1000000);
  }
  for (int i = 0; i < options.instances && options.final_state != FINAL_NONE; i++) {
    shape.color(shapes_color(&options, i, color));
    auto handle = eprosima::fastrtps::rtps::InstanceHandle_t();
    auto code = options.final_state == FINAL_UNREGISTER ? writer->unregister_instance(&shape, handle)
                                                        : writer->dispose(&shape, handle);
    if (code != ReturnCode_t::RETCODE_OK)
      fail(EXIT_DDS, "end of an instance: return code %u", code());
  }
  writer->wait_for_acknowledgments(milliseconds(1000));
}

static TopicDescription *filtered(DomainParticipant *participant, Topic *topic)
{
  if (!options.content_filter)
    return topic;
  std::string name = std::string(options.topic) + "_filtered";
  return check(participant->create_contentfilteredtopic(name, topic, options.content_filter, {}), "create a filter");
}

static void subscribe(DomainParticipant *participant, Topic *topic)
{
  SubscriberQos group;
  fill_group(group);
  DataReaderQos qos;
  fill_qos(qos);
  qos.time_based_filter().minimum_separation =
    Duration_t(int32_t(options.filter_ms / 1000), uint32_t(options.filter_ms % 1000) * 1000000u);
  auto *subscriber = check(participant->create_subscriber(group), "create a subscriber");
  auto *reader = check(subscriber->create_datareader(filtered(participant, topic), qos, &reading), "create a reader");
  say("Create reader for topic: %s", options.topic);
  // The end of an instance has only its handle, so the colors are stored here.
  std::map<InstanceHandle_t, std::string> colors;
  for (long n = 0; !stop_requested && (!options.iterations || n < options.iterations); n++) {
    ShapeType shape;
    SampleInfo info;
    while (reader->take_next_sample(&shape, &info) == ReturnCode_t::RETCODE_OK) {
      auto &color = colors[info.instance_handle];
      auto &payload = shape.additional_payload_size();
      if (info.valid_data) {
        color = shape.color().c_str();
        say_shape(options.topic, color.c_str(), shape.x(), shape.y(), shape.shapesize(), int(payload.size()),
                  payload.empty() ? 0 : payload.back());
      }
      if (info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE)
        say("%-10s %-10s NOT_ALIVE_DISPOSED_INSTANCE_STATE", options.topic, color.c_str());
      if (info.instance_state == NOT_ALIVE_NO_WRITERS_INSTANCE_STATE)
        say("%-10s %-10s NOT_ALIVE_NO_WRITERS_INSTANCE_STATE", options.topic, color.c_str());
    }
    sleep_until(now_ns() + options.read_period_ms * 1000000);
  }
}

int main(int argc, char **argv)
{
  options = shapes_parse(argc, argv);
  catch_stop();
  if (options.representation == 2)
    fail(EXIT_DDS, "-x 2: Fast DDS 2.9 writes XCDR1 only");
  DomainParticipantQos qos;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  auto *factory = DomainParticipantFactory::get_instance();
  auto *participant = check(factory->create_participant(uint32_t(options.domain), qos), "create a participant");
  // Content filters need the type object, which is not announced.
  registershapesTypes();
  TypeSupport type(new ShapeTypePubSubType);
  type.get()->auto_fill_type_information(false);
  type.get()->auto_fill_type_object(false);
  type.register_type(participant);
  TopicQos topic_qos;
  if (options.topic_data)
    topic_qos.topic_data().data_vec(bytes(options.topic_data));
  auto *topic = check(participant->create_topic(options.topic, "ShapeType", topic_qos), "create a topic");
  say("Create topic: %s", options.topic);
  if (options.publish)
    publish(participant, topic);
  else
    subscribe(participant, topic);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  say("Done.");
  return EXIT_OK;
}
