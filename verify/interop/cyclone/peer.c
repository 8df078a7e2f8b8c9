/* Peer on Eclipse Cyclone DDS: one process that publishes, subscribes or
 * measures round trips, controlled by options, with line output. Options and
 * lines: ../README.md. Listeners receive everything; the main thread only
 * writes at the rate and checks the time. */
#define _GNU_SOURCE /* dladdr in secured.h */
#include <stdatomic.h>

#include "dds/dds.h"
#include "array.h"
#include "chatter.h"

#include "../peer.h"
#include "secured.h"

typedef std_msgs_msg_dds__String_ String;
typedef std_msgs_msg_dds__UInt8MultiArray_ Bytes;

enum { TAKE_MAX = 32 };

static struct peer_options options;
static atomic_int matched_now;
static atomic_long received_count;

static dds_entity_t check(dds_entity_t result, const char *action)
{
  if (result < 0)
    fail(EXIT_DDS, "%s: %s", action, dds_strretcode(result));
  return result;
}

/* -- what is reported ----------------------------------------------------- */

static void on_publication_matched(dds_entity_t e, const dds_publication_matched_status_t s, void *arg)
{
  (void)e, (void)arg;
  atomic_store(&matched_now, (int)s.current_count);
  say("matched %u", s.current_count);
}

static void on_subscription_matched(dds_entity_t e, const dds_subscription_matched_status_t s, void *arg)
{
  (void)e, (void)arg;
  atomic_store(&matched_now, (int)s.current_count);
  say("matched %u", s.current_count);
}

static void on_offered_deadline(dds_entity_t e, const dds_offered_deadline_missed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("deadline_missed total=%u", s.total_count);
}

static void on_requested_deadline(dds_entity_t e, const dds_requested_deadline_missed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("deadline_missed total=%u", s.total_count);
}

static void on_liveliness_lost(dds_entity_t e, const dds_liveliness_lost_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("liveliness_lost total=%u", s.total_count);
}

static void on_liveliness_changed(dds_entity_t e, const dds_liveliness_changed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("liveliness alive=%u not_alive=%u", s.alive_count, s.not_alive_count);
}

/* Cyclone numbers its last two policies differently. */
static const char *cyclone_policy_name(uint32_t id)
{
  if (id == DDS_DATA_REPRESENTATION_QOS_POLICY_ID)
    return "DATA_REPRESENTATION";
  if (id == DDS_TYPE_CONSISTENCY_ENFORCEMENT_QOS_POLICY_ID)
    return "TYPE_CONSISTENCY_ENFORCEMENT";
  return id == DDS_PROPERTY_QOS_POLICY_ID ? "PROPERTY" : policy_name(id);
}

static void on_offered_qos(dds_entity_t e, const dds_offered_incompatible_qos_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("incompatible_qos policy=%s total=%u", cyclone_policy_name(s.last_policy_id), s.total_count);
}

static void on_requested_qos(dds_entity_t e, const dds_requested_incompatible_qos_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("incompatible_qos policy=%s total=%u", cyclone_policy_name(s.last_policy_id), s.total_count);
}

static void on_lost(dds_entity_t e, const dds_sample_lost_status_t s, void *arg)
{
  (void)e, (void)arg;
  say("lost total=%u", s.total_count);
}

static void report_sample(const void *sample)
{
  long seq = atomic_load(&received_count) + 1;
  if (options.bytes) {
    const Bytes *b = (const Bytes *)sample;
    say_sample("received", seq, b->data._buffer, b->data._length, false);
  } else {
    const String *s = (const String *)sample;
    say_sample("received", seq, s->data, strlen(s->data), true);
  }
  atomic_store(&received_count, seq); /* set after the line is printed: main exits on it */
}

static void on_data(dds_entity_t reader, void *arg)
{
  (void)arg;
  for (;;) {
    void *samples[TAKE_MAX] = { NULL };
    dds_sample_info_t info[TAKE_MAX];
    dds_return_t n = dds_take(reader, samples, info, TAKE_MAX, TAKE_MAX);
    if (n <= 0)
      return;
    for (int i = 0; i < n; i++)
      if (info[i].valid_data)
        report_sample(samples[i]);
    dds_return_loan(reader, samples, n);
  }
}

/* -- entities ------------------------------------------------------------- */

static dds_entity_t make_participant(void)
{
  char text[256];
  dds_qos_t *qos = dds_create_qos();
  snprintf(text, sizeof text, "enclave=%s;", options.enclave);
  dds_qset_userdata(qos, text, strlen(text));
  if (options.security)
    secure(qos, options.security);
  dds_entity_t p = check(dds_create_participant((dds_domainid_t)options.domain, qos, NULL), "create a participant");
  dds_delete_qos(qos);
  return p;
}

static dds_qos_t *endpoint_qos(bool writer)
{
  static const dds_liveliness_kind_t kinds[] = {
    DDS_LIVELINESS_AUTOMATIC, DDS_LIVELINESS_MANUAL_BY_PARTICIPANT, DDS_LIVELINESS_MANUAL_BY_TOPIC };
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, options.reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_SECS(10));
  dds_qset_durability(q, options.transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  dds_qset_history(q, options.depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, options.depth ? options.depth : 1);
  if (writer && options.transient_local)
    dds_qset_durability_service(q, 0, options.depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL,
                                options.depth ? options.depth : 1, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (options.deadline_ms)
    dds_qset_deadline(q, DDS_MSECS(options.deadline_ms));
  if (options.lifespan_ms && writer)
    dds_qset_lifespan(q, DDS_MSECS(options.lifespan_ms));
  dds_qset_liveliness(q, kinds[options.liveliness], options.lease_ms ? DDS_MSECS(options.lease_ms) : DDS_INFINITY);
  if (options.exclusive)
    dds_qset_ownership(q, DDS_OWNERSHIP_EXCLUSIVE);
  if (options.exclusive && writer)
    dds_qset_ownership_strength(q, (int32_t)options.strength);
  if (options.partition)
    dds_qset_partition1(q, options.partition);
  if (options.typehash) {
    char text[256];
    snprintf(text, sizeof text, "typehash=%s;", options.typehash);
    dds_qset_userdata(q, text, strlen(text));
  }
  return q;
}

static dds_entity_t make_topic(dds_entity_t participant, const char *name)
{
  const dds_topic_descriptor_t *type = options.bytes ? &std_msgs_msg_dds__UInt8MultiArray__desc
                                                     : &std_msgs_msg_dds__String__desc;
  return check(dds_create_topic(participant, type, name, NULL, NULL), name);
}

static dds_entity_t make_writer(dds_entity_t participant, const char *topic)
{
  dds_qos_t *qos = endpoint_qos(true);
  dds_listener_t *l = dds_create_listener(NULL);
  dds_lset_publication_matched(l, on_publication_matched);
  dds_lset_offered_deadline_missed(l, on_offered_deadline);
  dds_lset_liveliness_lost(l, on_liveliness_lost);
  dds_lset_offered_incompatible_qos(l, on_offered_qos);
  dds_entity_t w = check(dds_create_writer(participant, make_topic(participant, topic), qos, l), "create a writer");
  dds_delete_listener(l);
  dds_delete_qos(qos);
  return w;
}

static dds_entity_t make_reader(dds_entity_t participant, const char *topic, dds_on_data_available_fn on_data_available)
{
  dds_qos_t *qos = endpoint_qos(false);
  dds_listener_t *l = dds_create_listener(NULL);
  dds_lset_subscription_matched(l, on_subscription_matched);
  dds_lset_requested_deadline_missed(l, on_requested_deadline);
  dds_lset_liveliness_changed(l, on_liveliness_changed);
  dds_lset_requested_incompatible_qos(l, on_requested_qos);
  dds_lset_sample_lost(l, on_lost);
  if (on_data_available)
    dds_lset_data_available(l, on_data_available);
  dds_entity_t r = check(dds_create_reader(participant, make_topic(participant, topic), qos, l), "create a reader");
  dds_delete_listener(l);
  dds_delete_qos(qos);
  return r;
}

/* -- pub and sub ---------------------------------------------------------- */

static void write_sample(dds_entity_t writer, long seq)
{
  dds_return_t result;
  if (options.bytes) {
    Bytes b;
    memset(&b, 0, sizeof b);
    b.data._length = b.data._maximum = (uint32_t)bytes_size(&options);
    b.data._buffer = (uint8_t *)malloc(b.data._length + 1);
    fill_payload(b.data._buffer, b.data._length, seq, false);
    result = dds_write(writer, &b);
    check(result, "write");
    say_sample("sent", seq, b.data._buffer, b.data._length, false);
    free(b.data._buffer);
  } else {
    String s = { make_text(&options, seq) };
    result = dds_write(writer, &s);
    check(result, "write");
    say_sample("sent", seq, s.data, strlen(s.data), true);
    free(s.data);
  }
}

/* Waits until that time, asserting liveliness manually if requested. */
static void stay_until(dds_entity_t writer, int64_t moment)
{
  while (!stop_requested && now_ns() < moment) {
    int64_t next = now_ns() + (options.assert_ms ? options.assert_ms * 1000000 : 20000000);
    if (writer && options.assert_ms)
      dds_assert_liveliness(writer);
    sleep_until(next < moment ? next : moment);
  }
}

/* Changes a policy of an existing endpoint or of its parent. */
static dds_return_t change_qos(dds_entity_t endpoint, const char *policy, const char *value)
{
  dds_qos_t *qos = dds_create_qos();
  dds_return_t result = DDS_RETCODE_BAD_PARAMETER;
  if (!strcmp(policy, "user_data")) {
    dds_qset_userdata(qos, value, strlen(value));
    result = dds_set_qos(endpoint, qos);
  } else if (!strcmp(policy, "strength")) {
    dds_qset_ownership_strength(qos, atoi(value));
    result = dds_set_qos(endpoint, qos);
  } else if (!strcmp(policy, "partition")) {
    dds_qset_partition1(qos, value);
    result = dds_set_qos(dds_get_parent(endpoint), qos);
  }
  dds_delete_qos(qos);
  return result;
}

/* Executes the commands of stdin until its end. */
static long obey(dds_entity_t endpoint)
{
  char line[512], *word, *rest;
  long seq = 0;
  while ((rest = next_order(line, sizeof line, &word))) {
    if (!strcmp(word, "write")) {
      write_sample(endpoint, ++seq);
      continue;
    }
    dds_return_t result = change_qos(endpoint, word, rest);
    if (result == DDS_RETCODE_OK)
      say("did %s %s", word, rest);
    else
      say("refused %s: %s", word, dds_strretcode(result));
  }
  return seq;
}

static int run_pub(void)
{
  int64_t end = give_up_at(&options);
  dds_entity_t participant = make_participant();
  dds_entity_t writer = make_writer(participant, options.topic);
  say("ready");
  while (atomic_load(&matched_now) < options.wait_matched && !stop_requested) {
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
      stay_until(writer, next += (int64_t)(1e9 / options.rate));
  }
  bool complete = !options.count || seq == options.count || options.by_lines;
  if (options.reliable && !stop_requested && dds_wait_for_acks(writer, DDS_SECS(10)) != 0)
    say("unacknowledged");
  stay_until(writer, now_ns() + seconds(options.linger));
  say("ended sent=%ld", seq);
  dds_delete(participant);
  return complete || stop_requested ? EXIT_OK : EXIT_TIME;
}

static int run_sub(void)
{
  int64_t end = give_up_at(&options);
  dds_entity_t participant = make_participant();
  dds_entity_t reader = make_reader(participant, options.topic, on_data);
  say("ready");
  if (options.by_lines) {
    obey(reader);
    stop_requested = true;
  }
  while (!stop_requested && now_ns() < end && (!options.count || atomic_load(&received_count) < options.count))
    sleep_ns(2000000);
  bool complete = !options.count || atomic_load(&received_count) >= options.count;
  stay_until(0, now_ns() + seconds(options.linger));
  say("ended received=%ld", atomic_load(&received_count));
  dds_delete(participant);
  return complete || stop_requested ? EXIT_OK : EXIT_TIME;
}

/* -- ping and pong --------------------------------------------------------- */

static dds_entity_t echo_writer, echo_reader;
static int64_t *rtt_list, ping_sent_at;
static long ping_index;
static Bytes ping_sample;
static atomic_bool ping_done;

static void send_ping(void)
{
  ping_sent_at = now_ns();
  check(dds_write(echo_writer, &ping_sample), "write");
}

/* Takes one sample into reused memory; false if there is none. */
static bool take_bytes(Bytes *into)
{
  void *samples[1] = { into };
  dds_sample_info_t info[1];
  return dds_take(echo_reader, samples, info, 1, 1) == 1 && info[0].valid_data;
}

static void handle_pong(dds_entity_t reader, void *arg)
{
  static Bytes reply;
  (void)reader, (void)arg;
  while (!atomic_load(&ping_done) && take_bytes(&reply)) {
    int64_t took = now_ns() - ping_sent_at;
    if (reply.data._length != ping_sample.data._length)
      fail(EXIT_DDS, "reply of %u bytes, expected %u", reply.data._length, ping_sample.data._length);
    if (ping_index >= options.warmup)
      rtt_list[ping_index - options.warmup] = took;
    if (++ping_index == options.warmup + options.count)
      atomic_store(&ping_done, true);
    else
      send_ping();
  }
}

static void handle_ping(dds_entity_t reader, void *arg)
{
  static Bytes request;
  (void)reader, (void)arg;
  while (take_bytes(&request))
    check(dds_write(echo_writer, &request), "write");
}

/* With a wait set the main thread takes samples; else the receive thread. */
static void run_echo(dds_on_data_available_fn handle, int64_t end)
{
  dds_entity_t waitset = 0;
  if (options.wait == WAIT_WAITSET) {
    waitset = check(dds_create_waitset(dds_get_participant(echo_reader)), "create a waitset");
    check(dds_set_status_mask(echo_reader, DDS_DATA_AVAILABLE_STATUS), "set the status mask");
    check(dds_waitset_attach(waitset, echo_reader, 1), "attach to the waitset");
  }
  while (!stop_requested && !atomic_load(&ping_done) && now_ns() < end) {
    if (waitset && dds_waitset_wait(waitset, NULL, 0, DDS_MSECS(50)) > 0)
      handle(echo_reader, NULL);
    else if (!waitset)
      sleep_ns(5000000);
  }
}

static void make_echo(dds_on_data_available_fn handle)
{
  bool ping = options.verb == VERB_PING;
  dds_entity_t participant = make_participant();
  echo_writer = make_writer(participant, ping ? options.topic : options.reply_topic);
  echo_reader = make_reader(participant, ping ? options.reply_topic : options.topic,
                            options.wait == WAIT_LISTENER ? handle : NULL);
  say("ready");
}

static bool both_matched(void)
{
  dds_publication_matched_status_t p;
  dds_subscription_matched_status_t s;
  dds_get_publication_matched_status(echo_writer, &p);
  dds_get_subscription_matched_status(echo_reader, &s);
  return p.current_count > 0 && s.current_count > 0;
}

static int run_ping(void)
{
  int64_t end = give_up_at(&options);
  ping_sample.data._length = ping_sample.data._maximum = (uint32_t)bytes_size(&options);
  ping_sample.data._buffer = (uint8_t *)malloc(ping_sample.data._length + 1);
  fill_payload(ping_sample.data._buffer, ping_sample.data._length, 1, false);
  rtt_list = (int64_t *)calloc((size_t)options.count + 1, sizeof *rtt_list);
  make_echo(handle_pong);
  while (!both_matched() && !stop_requested) {
    if (now_ns() > end)
      fail(EXIT_TIME, "no pong matched in time");
    sleep_ns(1000000);
  }
  sleep_ns(300000000); /* the other side may match a little later */
  send_ping();
  run_echo(handle_pong, end);
  say_rtt(rtt_list, ping_index - options.warmup, options.size);
  dds_delete(DDS_CYCLONEDDS_HANDLE);
  return atomic_load(&ping_done) ? EXIT_OK : EXIT_TIME;
}

static int run_pong(void)
{
  make_echo(handle_ping);
  run_echo(handle_ping, give_up_at(&options));
  dds_delete(DDS_CYCLONEDDS_HANDLE);
  return EXIT_OK;
}

int main(int argc, char **argv)
{
  options = parse_options(argc, argv);
  if (options.filter)
    fail(EXIT_USAGE, "--filter: Cyclone DDS has no filters that go over the wire");
  catch_stop();
  switch (options.verb) {
  case VERB_PUB: return run_pub();
  case VERB_SUB: return run_sub();
  case VERB_PING: return run_ping();
  case VERB_PONG: return run_pong();
  }
  return EXIT_USAGE;
}
