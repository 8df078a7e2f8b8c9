/* Eclipse Cyclone DDS as a contestant of `cargo xtask bench host`: options and
 * lines are host.h's, waiting is by listener, which is its fastest way here:
 * the thread that receives also answers. Debian's build has no shared memory,
 * and so no loans. */
#define _GNU_SOURCE
#include "dds/dds.h"
#include "array.h"

#include "host.h"

typedef std_msgs_msg_dds__UInt8MultiArray_ Bytes;

static dds_entity_t participant, writer, reader;
static Bytes message;

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

static void on_data(dds_entity_t from, void *arg)
{
  static Bytes heard;
  void *samples[1] = { &heard };
  dds_sample_info_t info[1];
  (void)arg;
  while (dds_take(from, samples, info, 1, 1) == 1)
    if (info[0].valid_data && traffic_hear(heard.data._buffer, heard.data._length, "UDP"))
      stack_publish();
}

/* In one process no packet is sent: the sample goes through a cache of the reader. */
static void on_data_inside(dds_entity_t from, void *arg)
{
  void *samples[1] = { NULL };
  dds_sample_info_t info[1];
  (void)arg;
  while (dds_take(from, samples, info, 1, 1) == 1) {
    const Bytes *heard = (const Bytes *)samples[0];
    if (info[0].valid_data)
      traffic_hear(heard->data._buffer, heard->data._length, "intra-process");
    dds_return_loan(from, samples, 1);
  }
}

static void add_endpoints(const char *out, const char *in)
{
  dds_qos_t *qos = dds_create_qos();
  dds_listener_t *l = dds_create_listener(NULL);
  const dds_topic_descriptor_t *type = &std_msgs_msg_dds__UInt8MultiArray__desc;
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, host.keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST, 10);
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

static void stack_open(const char *out, const char *in)
{
  if (host.loan)
    fail(HOST_UNSUPPORTED, "unsupported: Debian's Cyclone DDS is built without shared memory");
  participant = check(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "create a participant");
  message.data._length = message.data._maximum = (uint32_t)host.size;
  message.data._buffer = (uint8_t *)calloc(1, host.size);
  fill_payload(message.data._buffer, host.size, 1, false);
  add_endpoints(out, in);
}

static void stack_publish(void)
{
  traffic_fill(message.data._buffer);
  check(dds_write(writer, &message), "write");
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
    participant = check(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "create a participant");
  add_endpoints(out, in);
}

int main(int argc, char **argv)
{
  return host_main(argc, argv);
}
