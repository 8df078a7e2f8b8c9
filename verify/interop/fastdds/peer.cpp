// Peer on eProsima Fast DDS: one process that publishes, subscribes or measures
// round trips, controlled by options, with line output.
//
// Options and lines: ../README.md. The structure is that of ../cyclone/peer.c.
// Shared memory and data sharing are off by default, so that RTPS over UDP is
// tested.

#include <atomic>
#include <memory>
#include <vector>

#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/core/condition/StatusCondition.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
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

#include "arrayPubSubTypes.h"
#include "chatterPubSubTypes.h"
#include "chatterTypeObject.h"

#include "../peer.h"
#include "secured.hpp"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::types::ReturnCode_t;
using String = std_msgs::msg::dds_::String_;
using Bytes = std_msgs::msg::dds_::UInt8MultiArray_;

static peer_options options;
static std::atomic<int> matched_now{0};
static std::atomic<long> received_count{0};

template <class T>
static T *check(T *made, const char *action)
{
  if (!made)
    fail(EXIT_DDS, "%s: refused, see the log above", action);
  return made;
}

static void check(ReturnCode_t code, const char *action)
{
  if (code != ReturnCode_t::RETCODE_OK)
    fail(EXIT_DDS, "%s: return code %u", action, code());
}

// -- what is reported ---------------------------------------------------------

struct Writing : DataWriterListener {
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &s) override
  {
    matched_now = s.current_count;
    say("matched %d", s.current_count);
  }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &s) override
  {
    say("deadline_missed total=%d", s.total_count);
  }
  void on_liveliness_lost(DataWriter *, const LivelinessLostStatus &s) override
  {
    say("liveliness_lost total=%d", s.total_count);
  }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &s) override
  {
    say("incompatible_qos policy=%s total=%d", policy_name(s.last_policy_id), s.total_count);
  }
};

static void report_string(const String &s, long seq)
{
  say_sample("received", seq, s.data().c_str(), s.data().size(), true);
}

static void report_bytes(const Bytes &b, long seq)
{
  say_sample("received", seq, b.data().data(), b.data().size(), false);
}

struct Reading : DataReaderListener {
  void (*handle)(DataReader *) = nullptr;

  void on_data_available(DataReader *reader) override
  {
    if (handle)
      handle(reader);
  }
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &s) override
  {
    matched_now = s.current_count;
    say("matched %d", s.current_count);
  }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &s) override
  {
    say("deadline_missed total=%d", s.total_count);
  }
  void on_liveliness_changed(DataReader *, const LivelinessChangedStatus &s) override
  {
    say("liveliness alive=%d not_alive=%d", s.alive_count, s.not_alive_count);
  }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &s) override
  {
    say("incompatible_qos policy=%s total=%d", policy_name(s.last_policy_id), s.total_count);
  }
  void on_sample_lost(DataReader *, const SampleLostStatus &s) override
  {
    say("lost total=%d", s.total_count);
  }
};

static Writing writing;
static Reading reading;

template <class T>
static void take_and_report(DataReader *reader, void (*report)(const T &, long))
{
  static T sample;
  SampleInfo info;
  while (reader->take_next_sample(&sample, &info) == ReturnCode_t::RETCODE_OK) {
    if (!info.valid_data)
      continue;
    long seq = received_count + 1;
    report(sample, seq);
    received_count = seq; // set after the line is printed: main exits on it
  }
}

static void on_data(DataReader *reader)
{
  if (options.bytes)
    take_and_report<Bytes>(reader, report_bytes);
  else
    take_and_report<String>(reader, report_string);
}

// -- entities -----------------------------------------------------------------

static Duration_t milliseconds(long ms)
{
  return Duration_t(int32_t(ms / 1000), uint32_t(ms % 1000) * 1000000u);
}

static void set_user_data(UserDataQosPolicy &policy, const std::string &text)
{
  policy.data_vec(std::vector<eprosima::fastrtps::rtps::octet>(text.begin(), text.end()));
}

static DomainParticipant *make_participant()
{
  DomainParticipantQos qos;
  set_user_data(qos.user_data(), std::string("enclave=") + options.enclave + ";");
  if (options.security)
    secure(qos, options.security);
  if (!options.shared_memory) {
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
  }
  auto *p = DomainParticipantFactory::get_instance()->create_participant(uint32_t(options.domain), qos);
  check(p, "create a participant");
  TypeSupport type(options.bytes ? static_cast<TopicDataType *>(new std_msgs::msg::dds_::UInt8MultiArray_PubSubType)
                                 : static_cast<TopicDataType *>(new std_msgs::msg::dds_::String_PubSubType));
  type.get()->auto_fill_type_information(false);
  type.get()->auto_fill_type_object(false);
  check(type.register_type(p), "register the type");
  // Content filters, local and remote, look up fields here.
  if (!options.bytes)
    registerchatterTypes();
  return p;
}

static Topic *make_topic(DomainParticipant *participant, const char *name)
{
  const char *type = options.bytes ? "std_msgs::msg::dds_::UInt8MultiArray_" : "std_msgs::msg::dds_::String_";
  return check(participant->create_topic(name, type, TOPIC_QOS_DEFAULT), name);
}

// Policies of writers and readers.
template <class Qos>
static void fill_qos(Qos &q)
{
  static const LivelinessQosPolicyKind kinds[] = {
    AUTOMATIC_LIVELINESS_QOS, MANUAL_BY_PARTICIPANT_LIVELINESS_QOS, MANUAL_BY_TOPIC_LIVELINESS_QOS};
  q.reliability().kind = options.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  q.reliability().max_blocking_time = milliseconds(10000);
  q.durability().kind = options.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  q.history().kind = options.depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  q.history().depth = options.depth ? options.depth : 1;
  if (options.deadline_ms)
    q.deadline().period = milliseconds(options.deadline_ms);
  if (options.lifespan_ms)
    q.lifespan().duration = milliseconds(options.lifespan_ms);
  q.liveliness().kind = kinds[options.liveliness];
  if (options.lease_ms) {
    q.liveliness().lease_duration = milliseconds(options.lease_ms);
    q.liveliness().announcement_period = milliseconds(options.lease_ms * 2 / 3);
  }
  if (options.exclusive)
    q.ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
  q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (!options.shared_memory)
    q.data_sharing().off();
  if (options.typehash)
    set_user_data(q.user_data(), std::string("typehash=") + options.typehash + ";");
}

static DataWriter *make_writer(DomainParticipant *participant, const char *topic)
{
  PublisherQos publisher;
  if (options.partition)
    publisher.partition().push_back(options.partition);
  DataWriterQos qos;
  fill_qos(qos);
  qos.ownership_strength().value = (uint32_t)options.strength;
  auto *p = check(participant->create_publisher(publisher), "create a publisher");
  return check(p->create_datawriter(make_topic(participant, topic), qos, &writing), "create a writer");
}

static DataReader *make_reader(DomainParticipant *participant, const char *topic, void (*handle)(DataReader *))
{
  SubscriberQos subscriber;
  if (options.partition)
    subscriber.partition().push_back(options.partition);
  DataReaderQos qos;
  fill_qos(qos);
  reading.handle = handle;
  StatusMask mask = handle ? StatusMask::all() : StatusMask::all() >> StatusMask::data_available();
  auto *s = check(participant->create_subscriber(subscriber), "create a subscriber");
  TopicDescription *wanted = make_topic(participant, topic);
  if (options.filter) {
    std::vector<std::string> parameters;
    if (options.filter_parameter)
      parameters.push_back(options.filter_parameter);
    auto *all = static_cast<Topic *>(wanted);
    wanted = check(participant->create_contentfilteredtopic("wanted", all, options.filter, parameters), "filter");
  }
  return check(s->create_datareader(wanted, qos, &reading, mask), "create a reader");
}

static void delete_participant(DomainParticipant *participant)
{
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}

// -- pub and sub --------------------------------------------------------------

static void check_written(bool written)
{
  if (!written)
    fail(EXIT_DDS, "write: refused, the history is full or the wait was too long");
}

static void write_sample(DataWriter *writer, long seq)
{
  if (options.bytes) {
    Bytes b;
    b.data().resize(bytes_size(&options));
    fill_payload(b.data().data(), b.data().size(), seq, false);
    check_written(writer->write(&b));
    say_sample("sent", seq, b.data().data(), b.data().size(), false);
  } else {
    String s;
    char *text = make_text(&options, seq);
    s.data(text);
    free(text);
    check_written(writer->write(&s));
    say_sample("sent", seq, s.data().c_str(), s.data().size(), true);
  }
}

// Waits until that time, asserting liveliness manually if requested.
static void stay_until(DataWriter *writer, int64_t moment)
{
  while (!stop_requested && now_ns() < moment) {
    int64_t next = now_ns() + (options.assert_ms ? options.assert_ms * 1000000 : 20000000);
    if (writer && options.assert_ms)
      writer->assert_liveliness();
    sleep_until(next < moment ? next : moment);
  }
}

// Changes a policy of an existing writer or of its parent.
static ReturnCode_t change_qos(DataWriter *writer, const std::string &policy, const char *value)
{
  DataWriterQos qos = writer->get_qos();
  if (policy == "partition") {
    auto *publisher = const_cast<Publisher *>(writer->get_publisher());
    PublisherQos of_all = publisher->get_qos();
    of_all.partition().clear();
    of_all.partition().push_back(value);
    return publisher->set_qos(of_all);
  }
  if (policy == "user_data")
    set_user_data(qos.user_data(), value);
  else if (policy == "strength")
    qos.ownership_strength().value = uint32_t(atoi(value));
  else
    return ReturnCode_t::RETCODE_BAD_PARAMETER;
  return writer->set_qos(qos);
}

// The same for a reader.
static ReturnCode_t change_qos(DataReader *reader, const std::string &policy, const char *value)
{
  if (policy == "partition") {
    auto *subscriber = const_cast<Subscriber *>(reader->get_subscriber());
    SubscriberQos of_all = subscriber->get_qos();
    of_all.partition().clear();
    of_all.partition().push_back(value);
    return subscriber->set_qos(of_all);
  }
  DataReaderQos qos = reader->get_qos();
  if (policy != "user_data")
    return ReturnCode_t::RETCODE_BAD_PARAMETER;
  set_user_data(qos.user_data(), value);
  return reader->set_qos(qos);
}

static bool write_if_writer(DataWriter *writer, long seq) { return write_sample(writer, seq), true; }
static bool write_if_writer(DataReader *, long) { return false; }

// Executes the commands of stdin until its end.
template <class E>
static long obey(E *endpoint)
{
  char line[512], *word, *rest;
  long seq = 0;
  while ((rest = next_order(line, sizeof line, &word))) {
    if (!strcmp(word, "write") && write_if_writer(endpoint, seq + 1)) {
      ++seq;
      continue;
    }
    ReturnCode_t result = change_qos(endpoint, word, rest);
    if (result == ReturnCode_t::RETCODE_OK)
      say("did %s %s", word, rest);
    else
      say("refused %s: %u", word, unsigned(result()));
  }
  return seq;
}

static int run_pub()
{
  int64_t end = give_up_at(&options);
  auto *participant = make_participant();
  auto *writer = make_writer(participant, options.topic);
  say("ready");
  while (matched_now < options.wait_matched && !stop_requested) {
    if (now_ns() > end)
      fail(EXIT_TIME, "no %d readers matched in time", options.wait_matched);
    sleep_ns(1000000);
  }
  wait_for_start(&options);
  int64_t next = now_ns();
  long seq = options.by_lines ? obey(writer) : 0;
  while (!options.by_lines && !stop_requested && (!options.count || seq < options.count) && now_ns() < end) {
    write_sample(writer, ++seq);
    if (options.rate > 0 && seq != options.count)
      stay_until(writer, next += int64_t(1e9 / options.rate));
  }
  bool complete = !options.count || seq == options.count || options.by_lines;
  if (options.reliable && !stop_requested &&
      writer->wait_for_acknowledgments(milliseconds(10000)) != ReturnCode_t::RETCODE_OK)
    say("unacknowledged");
  stay_until(writer, now_ns() + seconds(options.linger));
  say("ended sent=%ld", seq);
  delete_participant(participant);
  return complete || stop_requested ? EXIT_OK : EXIT_TIME;
}

static int run_sub()
{
  int64_t end = give_up_at(&options);
  auto *participant = make_participant();
  auto *reader = make_reader(participant, options.topic, on_data);
  say("ready");
  if (options.by_lines) {
    obey(reader);
    stop_requested = true;
  }
  while (!stop_requested && now_ns() < end && (!options.count || received_count < options.count))
    sleep_ns(2000000);
  bool complete = !options.count || received_count >= options.count;
  stay_until(nullptr, now_ns() + seconds(options.linger));
  say("ended received=%ld", received_count.load());
  delete_participant(participant);
  return complete || stop_requested ? EXIT_OK : EXIT_TIME;
}

// -- ping and pong ------------------------------------------------------------

static DomainParticipant *echo_participant;
static DataWriter *echo_writer;
static DataReader *echo_reader;
static std::vector<int64_t> rtt_list;
static int64_t ping_sent_at;
static long ping_index;
static Bytes ping_sample;
static std::atomic<bool> ping_done{false};

static void send_ping()
{
  ping_sent_at = now_ns();
  if (!echo_writer->write(&ping_sample))
    fail(EXIT_DDS, "write: refused");
}

static bool take_bytes(DataReader *reader, Bytes &into)
{
  SampleInfo info;
  return reader->take_next_sample(&into, &info) == ReturnCode_t::RETCODE_OK && info.valid_data;
}

static void handle_pong(DataReader *reader)
{
  static Bytes reply;
  while (!ping_done && take_bytes(reader, reply)) {
    int64_t took = now_ns() - ping_sent_at;
    if (reply.data().size() != ping_sample.data().size())
      fail(EXIT_DDS, "reply of %zu bytes, expected %zu", reply.data().size(), ping_sample.data().size());
    if (ping_index >= options.warmup)
      rtt_list.push_back(took);
    if (++ping_index == options.warmup + options.count)
      ping_done = true;
    else
      send_ping();
  }
}

static void handle_ping(DataReader *reader)
{
  static Bytes request;
  while (take_bytes(reader, request))
    if (!echo_writer->write(&request))
      fail(EXIT_DDS, "write: refused");
}

// With a wait set the main thread takes samples; else the receive thread.
static void run_echo(void (*handle)(DataReader *), int64_t end)
{
  WaitSet waitset;
  ConditionSeq active;
  if (options.wait == WAIT_WAITSET) {
    auto &condition = echo_reader->get_statuscondition();
    condition.set_enabled_statuses(StatusMask::data_available());
    check(waitset.attach_condition(condition), "attach to the waitset");
  }
  while (!stop_requested && !ping_done && now_ns() < end) {
    if (options.wait != WAIT_WAITSET)
      sleep_ns(5000000);
    else if (waitset.wait(active, milliseconds(50)) == ReturnCode_t::RETCODE_OK)
      handle(echo_reader);
  }
}

static void make_echo(void (*handle)(DataReader *))
{
  bool ping = options.verb == VERB_PING;
  echo_participant = make_participant();
  echo_writer = make_writer(echo_participant, ping ? options.topic : options.reply_topic);
  echo_reader = make_reader(echo_participant, ping ? options.reply_topic : options.topic,
                            options.wait == WAIT_LISTENER ? handle : nullptr);
  say("ready");
}

static bool both_matched()
{
  PublicationMatchedStatus p;
  SubscriptionMatchedStatus s;
  echo_writer->get_publication_matched_status(p);
  echo_reader->get_subscription_matched_status(s);
  return p.current_count > 0 && s.current_count > 0;
}

static int run_ping()
{
  int64_t end = give_up_at(&options);
  ping_sample.data().resize(bytes_size(&options));
  fill_payload(ping_sample.data().data(), ping_sample.data().size(), 1, false);
  rtt_list.reserve(size_t(options.count));
  make_echo(handle_pong);
  while (!both_matched() && !stop_requested) {
    if (now_ns() > end)
      fail(EXIT_TIME, "no pong matched in time");
    sleep_ns(1000000);
  }
  sleep_ns(300000000); // the other side may match a little later
  send_ping();
  run_echo(handle_pong, end);
  say_rtt(rtt_list.data(), long(rtt_list.size()), options.size);
  delete_participant(echo_participant);
  return ping_done ? EXIT_OK : EXIT_TIME;
}

static int run_pong()
{
  make_echo(handle_ping);
  run_echo(handle_ping, give_up_at(&options));
  delete_participant(echo_participant);
  return EXIT_OK;
}

int main(int argc, char **argv)
{
  options = parse_options(argc, argv);
  catch_stop();
  switch (options.verb) {
  case VERB_PUB: return run_pub();
  case VERB_SUB: return run_sub();
  case VERB_PING: return run_ping();
  case VERB_PONG: return run_pong();
  }
  return EXIT_USAGE;
}
