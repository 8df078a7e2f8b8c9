/* Program of Eclipse Cyclone DDS for `cargo xtask bench host`, with the
 * options and lines of host.h. It waits by listener, which is its fastest way
 * here: the receiving thread also replies. Debian's build has no shared
 * memory, and so no loans. */
#define _GNU_SOURCE
#include "dds/dds.h"
#include "array.h"
#include "chatter.h"

#include "host.h"
#include "../cyclone/secured.h"

typedef std_msgs_msg_dds__UInt8MultiArray_ Bytes;
typedef std_msgs_msg_dds__String_ Text;

static dds_entity_t participant, writer, reader;
static Bytes message;
static Text text_message;

static dds_entity_t check(dds_entity_t result, const char *action)
{
  if (result < 0)
    fail(EXIT_DDS, "%s: %s", action, dds_strretcode(result));
  return result;
}

static void on_published_match(dds_entity_t e, const dds_publication_matched_status_t s, void *arg)
{
  (void)e, (void)s, (void)arg;
  sem_post(&traffic.changed);
}

static void on_subscribed_match(dds_entity_t e, const dds_subscription_matched_status_t s, void *arg)
{
  (void)e, (void)s, (void)arg;
  sem_post(&traffic.changed);
}

static bool hear(const void *sample, const char *path)
{
  if (host.text) {
    const char *text = ((const Text *)sample)->data;
    return traffic_receive((const uint8_t *)text, strlen(text), path);
  }
  const Bytes *bytes = (const Bytes *)sample;
  return traffic_receive(bytes->data._buffer, bytes->data._length, path);
}

static void on_data(dds_entity_t from, void *arg)
{
  static Bytes bytes;
  static Text text;
  void *samples[1] = { host.text ? (void *)&text : (void *)&bytes };
  dds_sample_info_t info[1];
  (void)arg;
  while (dds_take(from, samples, info, 1, 1) == 1)
    if (info[0].valid_data && hear(samples[0], "UDP"))
      stack_publish();
}

/* Within a process no packet is sent: samples go through the reader history
 * cache. */
static void on_data_inside(dds_entity_t from, void *arg)
{
  void *samples[1] = { NULL };
  dds_sample_info_t info[1];
  (void)arg;
  while (dds_take(from, samples, info, 1, 1) == 1) {
    if (info[0].valid_data)
      hear(samples[0], "intra-process");
    dds_return_loan(from, samples, 1);
  }
}

static void add_endpoints(const char *out, const char *in)
{
  dds_qos_t *qos = dds_create_qos();
  dds_listener_t *l = dds_create_listener(NULL);
  const dds_topic_descriptor_t *type = host.text ? &std_msgs_msg_dds__String__desc : &std_msgs_msg_dds__UInt8MultiArray__desc;
  dds_history_kind_t history = host.keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  dds_qset_reliability(qos, host.best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, history, (int32_t)host.depth);
  if (host.transient_local) {
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    /* History for late joiners: Cyclone takes it from this policy, one sample
     * by default. */
    dds_qset_durability_service(qos, 0, history, (int32_t)host.depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  }
  if (host.deadline_ms)
    dds_qset_deadline(qos, DDS_MSECS(host.deadline_ms));
  dds_lset_publication_matched(l, on_published_match);
  dds_lset_subscription_matched(l, on_subscribed_match);
  if (out)
    writer = check(dds_create_writer(participant, check(dds_create_topic(participant, type, out, NULL, NULL), out), qos, l), "create a writer");
  dds_lset_data_available(l, host.verb == HOST_INTRA ? on_data_inside : on_data);
  if (in)
    reader = check(dds_create_reader(participant, check(dds_create_topic(participant, type, in, NULL, NULL), in), qos, l), "create a reader");
  dds_delete_listener(l);
  dds_delete_qos(qos);
}

static dds_entity_t make_participant(void)
{
  dds_qos_t *qos = dds_create_qos();
  const char *enclave = getenv("HOST_SECURITY");
  if (enclave)
    secure(qos, enclave);
  dds_entity_t made = check(dds_create_participant(DDS_DOMAIN_DEFAULT, qos, NULL), "create a participant");
  dds_delete_qos(qos);
  return made;
}

static void stack_open(const char *out, const char *in)
{
  if (host.loan)
    fail(HOST_UNSUPPORTED, "unsupported: Debian's Cyclone DDS is built without shared memory");
  participant = make_participant();
  message.data._length = message.data._maximum = (uint32_t)host.size;
  message.data._buffer = (uint8_t *)calloc(1, host.size);
  fill_payload(message.data._buffer, host.size, 1, false);
  text_message.data = (char *)calloc(1, host.size + 1);
  memset(text_message.data, 'x', host.size);
  add_endpoints(out, in);
}

static void stack_publish(void)
{
  traffic_fill(host.text ? (uint8_t *)text_message.data : message.data._buffer);
  check(dds_write(writer, host.text ? (void *)&text_message : (void *)&message), "write");
}

static void stack_matched(long *readers, long *writers)
{
  dds_publication_matched_status_t p = { 0 };
  dds_subscription_matched_status_t s = { 0 };
  if (writer)
    dds_get_publication_matched_status(writer, &p);
  if (reader)
    dds_get_subscription_matched_status(reader, &s);
  *readers = p.current_count;
  *writers = s.current_count;
}

static void stack_add_node(const char *out, const char *in)
{
  if (!participant)
    participant = make_participant();
  add_endpoints(out, in);
}

int main(int argc, char **argv)
{
  return host_main(argc, argv);
}
