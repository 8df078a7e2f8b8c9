// Program of eProsima Fast DDS for `cargo xtask bench host`, with the options and
// lines of host.h. It waits by listener, so the receiving thread also replies.
//
// Default: a sequence of bytes over its shared-memory transport. With
// HOST_DATA_SHARING=on: types of fixed size, whose history is in shared memory
// and is read in place; only those can be loaned. With HOST_UDP=on: only UDP. With
// HOST_SECURITY=FOLDER: secured with the files of an enclave.

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include "arrayPubSubTypes.h"
#include "chatterPubSubTypes.h"
#include "payloadPubSubTypes.h"

#include "host.h"
#include "../fastdds/secured.hpp"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::types::ReturnCode_t;
using Sequence = std_msgs::msg::dds_::UInt8MultiArray_;
using Text = std_msgs::msg::dds_::String_;

static bool sharing;
static TypeSupport type;
static DomainParticipant *participant;
static DataWriter *writer;
static DataReader *reader;
static void *outgoing, *incoming;

template <class T>
static T *check(T *made, const char *action)
{
  if (!made)
    fail(EXIT_DDS, "%s: refused", action);
  return made;
}

// A fixed-size type is serialized as its memory; Fast DDS calls that plain.
static uint8_t *bytes_of(void *sample)
{
  if (host.text)
    return reinterpret_cast<uint8_t *>(&static_cast<Text *>(sample)->data()[0]);
  return sharing ? static_cast<uint8_t *>(sample) : static_cast<Sequence *>(sample)->data().data();
}

static size_t size_of(void *sample)
{
  if (host.text)
    return static_cast<Text *>(sample)->data().size();
  return sharing ? host.size : static_cast<Sequence *>(sample)->data().size();
}

static const char *path()
{
  return host.verb == HOST_INTRA ? "intra-process" : sharing ? "data_sharing" : "SHM_transport";
}

static bool take_lent(DataReader *from, bool *answer)
{
  LoanableSequence<uint8_t, std::true_type> samples;
  SampleInfoSeq infos;
  if (from->take(samples, infos, 1) != ReturnCode_t::RETCODE_OK)
    return false;
  *answer = infos[0].valid_data && traffic_receive(&samples[0], host.size, path());
  from->return_loan(samples, infos);
  return true;
}

static bool take_copied(DataReader *from, bool *answer)
{
  SampleInfo info;
  if (from->take_next_sample(incoming, &info) != ReturnCode_t::RETCODE_OK)
    return false;
  *answer = info.valid_data && traffic_receive(bytes_of(incoming), size_of(incoming), path());
  return true;
}

struct Writing : DataWriterListener {
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &) override { sem_post(&traffic.changed); }
};

struct Reading : DataReaderListener {
  void on_data_available(DataReader *from) override
  {
    bool answer = false;
    while (host.loan ? take_lent(from, &answer) : take_copied(from, &answer))
      if (answer)
        stack_publish();
  }
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &) override { sem_post(&traffic.changed); }
};

static Writing writing;
static Reading reading;

static TopicDataType *make_type()
{
  if (host.text)
    return new std_msgs::msg::dds_::String_PubSubType;
  switch (sharing ? host.size : 0) {
  case 0: return new std_msgs::msg::dds_::UInt8MultiArray_PubSubType;
  case 64: return new bench::Fixed64PubSubType;
  case 256: return new bench::Fixed256PubSubType;
  case 1024: return new bench::Fixed1024PubSubType;
  case 4096: return new bench::Fixed4096PubSubType;
  case 65536: return new bench::Fixed65536PubSubType;
  case 1048576: return new bench::Fixed1048576PubSubType;
  case 4194304: return new bench::Fixed4194304PubSubType;
  default: fail(HOST_UNSUPPORTED, "unsupported: payload.idl has no type of %zu bytes", host.size);
  }
  return nullptr;
}

static void make_participant()
{
  const char *wish = getenv("HOST_DATA_SHARING");
  sharing = wish && !strcmp(wish, "on");
  if (host.text && sharing)
    fail(HOST_UNSUPPORTED, "unsupported: Fast DDS shares the data of types of fixed size only");
  if (host.loan && !sharing)
    fail(HOST_UNSUPPORTED, "unsupported: Fast DDS lends types of fixed size only");
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  wish = getenv("HOST_UDP");
  if (wish && !strcmp(wish, "on")) {
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  }
  wish = getenv("HOST_SECURITY");
  if (wish)
    secure(qos, wish);
  participant = check(DomainParticipantFactory::get_instance()->create_participant(0, qos), "participant");
  type.reset(make_type());
  type->auto_fill_type_information(false);
  type->auto_fill_type_object(false);
  if (type.register_type(participant) != ReturnCode_t::RETCODE_OK)
    fail(EXIT_DDS, "register the type: refused");
  outgoing = type.create_data();
  incoming = type.create_data();
  if (host.text)
    static_cast<Text *>(outgoing)->data().resize(host.size);
  else if (!sharing)
    static_cast<Sequence *>(outgoing)->data().resize(host.size);
  if (host.text)
    memset(bytes_of(outgoing), 'x', host.size);
  else
    fill_payload(bytes_of(outgoing), host.size, 1, false);
}

template <class Qos>
static void fill_qos(Qos &q)
{
  q.reliability().kind = host.best_effort ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
  q.reliability().max_blocking_time = eprosima::fastrtps::Duration_t(10, 0);
  q.durability().kind = host.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  q.history().kind = host.keep_all ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
  q.history().depth = (int32_t)host.depth;
  if (host.deadline_ms)
    q.deadline().period = eprosima::fastrtps::Duration_t(host.deadline_ms / 1e3);
  if (!sharing)
    q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  // Data sharing allocates all samples at once; its default of 5000 does not fit large ones.
  if (sharing && host.keep_all) {
    int32_t most = host.size > 65536 ? 16 : 256;
    q.resource_limits().max_samples = q.resource_limits().max_samples_per_instance = most;
    q.resource_limits().allocated_samples = most;
  }
}

static void add_endpoints(const char *out, const char *in)
{
  auto topic = [](const char *name) {
    return check(participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT), name);
  };
  if (out) {
    DataWriterQos qos;
    fill_qos(qos);
    auto *publisher = check(participant->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
    writer = check(publisher->create_datawriter(topic(out), qos, &writing), "writer");
  }
  if (in) {
    DataReaderQos qos;
    fill_qos(qos);
    auto *known = participant->lookup_topicdescription(in);
    auto *subscriber = check(participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
    TopicDescription *wanted = known ? known : topic(in);
    reader = check(subscriber->create_datareader(wanted, qos, &reading), "reader");
  }
}

static void stack_open(const char *out, const char *in)
{
  make_participant();
  add_endpoints(out, in);
}

static void stack_publish()
{
  void *sample = outgoing;
  if (host.loan && writer->loan_sample(sample, DataWriter::LoanInitializationKind::NO_LOAN_INITIALIZATION) != ReturnCode_t::RETCODE_OK)
    fail(EXIT_DDS, "no sample to be lent");
  traffic_fill(bytes_of(sample));
  // With data sharing a full history returns an error without blocking.
  int64_t until = now_ns() + seconds(10);
  while (!writer->write(sample)) {
    if (!host.keep_all || now_ns() > until)
      fail(EXIT_DDS, "write: refused, the history is full");
    sleep_ns(20000);
  }
}

static void stack_matched(long *readers, long *writers)
{
  PublicationMatchedStatus p;
  SubscriptionMatchedStatus s;
  if (writer)
    writer->get_publication_matched_status(p);
  if (reader)
    reader->get_subscription_matched_status(s);
  *readers = p.current_count;
  *writers = s.current_count;
}

static void stack_add_node(const char *out, const char *in)
{
  if (!participant)
    make_participant();
  // A node may publish a topic that another node of this process subscribes to.
  auto *known = participant->lookup_topicdescription(out);
  if (!known)
    return add_endpoints(out, in);
  DataWriterQos qos;
  fill_qos(qos);
  auto *publisher = check(participant->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
  writer = check(publisher->create_datawriter(static_cast<Topic *>(known), qos, &writing), "writer");
  add_endpoints(NULL, in);
}

int main(int argc, char **argv)
{
  return host_main(argc, argv);
}
