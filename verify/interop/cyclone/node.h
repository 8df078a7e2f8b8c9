/* Endpoints of services and topics on Cyclone DDS as rmw_cyclonedds creates
 * them: requests and replies begin with the client id and the sequence number
 * of the request. */
#ifndef CYCLONE_NODE_H
#define CYCLONE_NODE_H

#include "dds/dds.h"

enum { TAKE_MAX = 32 };

struct requester {
  uint64_t client;
  int64_t number;
};

struct service {
  dds_entity_t writer, reader;
  struct requester next; /* sequence number of a client's next request */
};

static dds_entity_t participant;

static dds_entity_t check(dds_entity_t result, const char *action)
{
  if (result < 0)
    fail(EXIT_DDS, "%s: %s", action, dds_strretcode(result));
  return result;
}

/* Reliable, the last `depth`. */
static dds_qos_t *node_qos(int depth)
{
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(q, DDS_HISTORY_KEEP_LAST, depth);
  return q;
}

static dds_entity_t open_writer(const dds_topic_descriptor_t *type, const char *name, const dds_qos_t *qos)
{
  dds_entity_t topic = check(dds_create_topic(participant, type, name, NULL, NULL), name);
  return check(dds_create_writer(participant, topic, qos, NULL), "create a writer");
}

static dds_entity_t open_reader(const dds_topic_descriptor_t *type, const char *name, const dds_qos_t *qos)
{
  dds_entity_t topic = check(dds_create_topic(participant, type, name, NULL, NULL), name);
  return check(dds_create_reader(participant, topic, qos, NULL), "create a reader");
}

static struct service open_service(bool serve, const char *name, const char *service,
                                   const dds_topic_descriptor_t *request, const dds_topic_descriptor_t *reply)
{
  static unsigned count;
  struct service s;
  char id[96];
  count++;
  snprintf(id, sizeof id, "%s 1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.%x;", serve ? "serviceid=" : "clientid=", count);
  dds_qos_t *qos = node_qos(1000);
  dds_qset_userdata(qos, id, strlen(id));
  s.reader = open_reader(serve ? request : reply, service_topic(name, service, serve), qos);
  s.writer = open_writer(serve ? reply : request, service_topic(name, service, !serve), qos);
  s.next.client = 0x0102030405060700u + count;
  s.next.number = 0;
  dds_delete_qos(qos);
  return s;
}

static bool has_matched(dds_entity_t end, bool is_writer)
{
  dds_publication_matched_status_t p;
  dds_subscription_matched_status_t s;
  if (is_writer)
    return dds_get_publication_matched_status(end, &p) == 0 && p.current_count > 0;
  return dds_get_subscription_matched_status(end, &s) == 0 && s.current_count > 0;
}

static bool is_met(const struct service *s)
{
  return has_matched(s->writer, true) && has_matched(s->reader, false);
}

/* Passes each available sample to `handle`. */
static void take_all(dds_entity_t reader, void (*handle)(const void *sample))
{
  for (;;) {
    void *samples[TAKE_MAX] = { NULL };
    dds_sample_info_t info[TAKE_MAX];
    dds_return_t n = dds_take(reader, samples, info, TAKE_MAX, TAKE_MAX);
    if (n <= 0)
      return;
    for (int i = 0; i < n; i++)
      if (info[i].valid_data)
        handle(samples[i]);
    dds_return_loan(reader, samples, n);
  }
}

#endif
