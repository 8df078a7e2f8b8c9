/* Service server and client on Eclipse Cyclone DDS, with the wire format of
 * rmw_cyclonedds. Options and lines: ../README.md. */
#include <stdatomic.h>

#include "dds/dds.h"
#include "add_two_ints_headed.h"

#include "../service_peer.h"

typedef example_interfaces_srv_dds__AddTwoInts_Request_ Request;
typedef example_interfaces_srv_dds__AddTwoInts_Response_ Response;

enum { TAKE_MAX = 32 };

static const uint64_t client_number = 0x0102030405060708u;

static struct service_options options;
static dds_entity_t participant, requests, replies;
static atomic_int matched_now;

static dds_entity_t check(dds_entity_t result, const char *action)
{
  if (result < 0)
    fail(EXIT_DDS, "%s: %s", action, dds_strretcode(result));
  return result;
}

static void on_matched_writer(dds_entity_t e, const dds_publication_matched_status_t s, void *arg)
{
  (void)e, (void)arg;
  atomic_store(&matched_now, (int)s.current_count);
  say("matched %u", s.current_count);
}

static void answer_requests(dds_entity_t reader)
{
  for (;;) {
    void *samples[TAKE_MAX] = { NULL };
    dds_sample_info_t info[TAKE_MAX];
    dds_return_t n = dds_take(reader, samples, info, TAKE_MAX, TAKE_MAX);
    if (n <= 0)
      return;
    for (int i = 0; i < n; i++) {
      if (!info[i].valid_data)
        continue;
      const Request *r = (const Request *)samples[i];
      Response answer = { r->client, r->number, r->a + r->b };
      say("asked %lld %lld", (long long)r->a, (long long)r->b);
      check(dds_write(replies, &answer), "write");
    }
    dds_return_loan(reader, samples, n);
  }
}

static void handle_replies(dds_entity_t reader, void *arg)
{
  (void)arg;
  for (;;) {
    void *samples[TAKE_MAX] = { NULL };
    dds_sample_info_t info[TAKE_MAX];
    dds_return_t n = dds_take(reader, samples, info, TAKE_MAX, TAKE_MAX);
    if (n <= 0)
      return;
    for (int i = 0; i < n; i++) {
      const Response *r = (const Response *)samples[i];
      if (info[i].valid_data && r->client == client_number)
        say("answer %lld %lld", (long long)r->number, (long long)r->sum);
    }
    dds_return_loan(reader, samples, n);
  }
}

static dds_qos_t *service_qos(void)
{
  dds_qos_t *q = dds_create_qos();
  const char *id = options.serve ? "serviceid= 1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.10;" : "clientid=1f.2.3.4.5.6.7.8.9.a.b.c.d.e.f.10;";
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(q, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_userdata(q, id, strlen(id));
  return q;
}

static dds_entity_t make_writer(bool of_requests)
{
  const dds_topic_descriptor_t *type = of_requests ? &example_interfaces_srv_dds__AddTwoInts_Request__desc
                                                   : &example_interfaces_srv_dds__AddTwoInts_Response__desc;
  dds_qos_t *qos = service_qos();
  dds_listener_t *l = dds_create_listener(NULL);
  dds_lset_publication_matched(l, on_matched_writer);
  const char *name = service_topic(&options, of_requests);
  dds_entity_t topic = check(dds_create_topic(participant, type, name, NULL, NULL), name);
  dds_entity_t w = check(dds_create_writer(participant, topic, qos, l), "create a writer");
  dds_delete_listener(l);
  dds_delete_qos(qos);
  return w;
}

static dds_entity_t make_reader(bool of_requests, dds_on_data_available_fn handle)
{
  const dds_topic_descriptor_t *type = of_requests ? &example_interfaces_srv_dds__AddTwoInts_Request__desc
                                                   : &example_interfaces_srv_dds__AddTwoInts_Response__desc;
  dds_qos_t *qos = service_qos();
  dds_listener_t *l = dds_create_listener(NULL);
  if (handle)
    dds_lset_data_available(l, handle);
  const char *name = service_topic(&options, of_requests);
  dds_entity_t topic = check(dds_create_topic(participant, type, name, NULL, NULL), name);
  dds_entity_t r = check(dds_create_reader(participant, topic, qos, l), "create a reader");
  dds_delete_listener(l);
  dds_delete_qos(qos);
  return r;
}

int main(int argc, char **argv)
{
  options = service_parse(argc, argv);
  catch_stop();
  participant = check(dds_create_participant((dds_domainid_t)options.domain, NULL, NULL), "create a participant");
  int64_t end = service_end(&options);
  if (options.serve) {
    replies = make_writer(false);
    dds_entity_t asked = make_reader(true, NULL);
    say("ready");
    /* As rmw_cyclonedds: no response before its client's reader is matched. */
    for (; !stop_requested && now_ns() < end; sleep_ns(1000000))
      if (atomic_load(&matched_now) > 0)
        answer_requests(asked);
    return EXIT_OK;
  }
  if (!options.late_reader_ms)
    make_reader(false, handle_replies);
  requests = make_writer(true);
  say("ready");
  Request request = { client_number, 0, 0, 0 };
  long long a, b;
  while (!stop_requested && service_order(&a, &b)) {
    request.number++;
    request.a = a, request.b = b;
    check(dds_write(requests, &request), "write");
    if (options.late_reader_ms) {
      sleep_ns(options.late_reader_ms * 1000000);
      make_reader(false, handle_replies);
      options.late_reader_ms = 0;
    }
  }
  return EXIT_OK;
}
