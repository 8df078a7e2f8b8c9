/* What the machine allows: the floors of `cargo xtask bench host`, without any
 * middleware. `ping` forks its own other side.
 *
 *   floor ping --how futex|eventfd|spin|udp [--copy yes] [--cpus A,B] [--rate HZ] --size --count --warmup
 *   floor memcpy --size BYTES [--count N]    hot (same memory) and cold (64 MB apart)
 *   floor nodes                              a process that only exists
 *
 * With --copy each side copies `size` bytes into memory that both map, where the
 * other may read them in place; without, only the wake-up goes across. `udp` always
 * carries the bytes, in datagrams of 63 KB.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../peer.h"

enum { PIECE = 63 * 1024, COLD_BYTES = 64 << 20 };
enum how { HOW_FUTEX, HOW_EVENTFD, HOW_SPIN, HOW_UDP };

static struct { enum how how; bool copy; int cpus[2]; size_t size; long count, warmup, rate; } o =
  { HOW_FUTEX, false, { -1, -1 }, 64, 1000, 100, 0 };

/* One word per side on separate cache lines, and the shared payloads. */
struct side { _Alignas(128) atomic_uint word; };
static struct side *sides;
static uint8_t *shared[2], *own[2];
static int events[2], sockets[2];
static struct sockaddr_in addresses[2];

static void wake(int to, unsigned round)
{
  if (o.copy)
    memcpy(shared[to], own[0], o.size);
  switch (o.how) {
  case HOW_SPIN:
    atomic_store_explicit(&sides[to].word, round, memory_order_release);
    break;
  case HOW_FUTEX:
    atomic_store(&sides[to].word, round);
    syscall(SYS_futex, &sides[to].word, FUTEX_WAKE, 1, NULL, NULL, 0);
    break;
  case HOW_EVENTFD:
    if (write(events[to], &(uint64_t){ 1 }, 8) != 8)
      fail(EXIT_DDS, "eventfd: %s", strerror(errno));
    break;
  case HOW_UDP:
    for (size_t at = 0; at < o.size; at += PIECE) {
      size_t n = o.size - at < PIECE ? o.size - at : PIECE;
      if (sendto(sockets[1 - to], own[0] + at, n, 0, (struct sockaddr *)&addresses[to], sizeof addresses[to]) < 0)
        fail(EXIT_DDS, "send: %s", strerror(errno));
    }
    break;
  }
}

static void wait_for(int me, unsigned round)
{
  uint64_t ignored;
  switch (o.how) {
  case HOW_SPIN:
    while (atomic_load_explicit(&sides[me].word, memory_order_acquire) != round)
      ;
    break;
  case HOW_FUTEX:
    for (unsigned seen; (seen = atomic_load(&sides[me].word)) != round;)
      syscall(SYS_futex, &sides[me].word, FUTEX_WAIT, seen, NULL, NULL, 0);
    break;
  case HOW_EVENTFD:
    while (read(events[me], &ignored, 8) != 8)
      if (errno != EINTR)
        fail(EXIT_DDS, "eventfd: %s", strerror(errno));
    break;
  case HOW_UDP:
    for (size_t at = 0; at < o.size;) {
      ssize_t n = recv(sockets[me], own[1] + at, o.size - at, 0);
      if (n < 0)
        fail(EXIT_TIME, "receive: %s", strerror(errno));
      at += (size_t)n;
    }
    break;
  }
}

static void pin(int side)
{
  cpu_set_t set;
  if (o.cpus[side] < 0)
    return;
  CPU_ZERO(&set);
  CPU_SET(o.cpus[side], &set);
  if (sched_setaffinity(0, sizeof set, &set))
    fail(EXIT_DDS, "--cpus %d: %s", o.cpus[side], strerror(errno));
}

static uint8_t *memory(size_t size, int flags)
{
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED)
    fail(EXIT_DDS, "map %zu bytes: %s", size, strerror(errno));
  return (uint8_t *)p;
}

static void open_sockets(void)
{
  int bytes = 8 << 20;
  struct timeval patience = { 5, 0 };
  for (int i = 0; i < 2; i++) {
    socklen_t length = sizeof addresses[i];
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
    if (setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
      setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(sockets[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(sockets[i], (struct sockaddr *)&addresses[i], length) ||
        getsockname(sockets[i], (struct sockaddr *)&addresses[i], &length))
      fail(EXIT_DDS, "bind: %s", strerror(errno));
  }
}

static void run_ping(void)
{
  long total = o.warmup + o.count;
  int64_t *took = (int64_t *)calloc((size_t)o.count + 1, sizeof *took);
  sides = (struct side *)memory(2 * sizeof *sides, MAP_SHARED);
  for (int i = 0; i < 2; i++) {
    shared[i] = memory(o.size, MAP_SHARED);
    events[i] = eventfd(0, 0);
  }
  if (o.how == HOW_UDP)
    open_sockets();
  pid_t child = fork();
  own[0] = memory(o.size, MAP_PRIVATE);
  own[1] = memory(o.size, MAP_PRIVATE);
  pin(child ? 0 : 1);
  if (!child) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (long i = 1; i <= total; i++) {
      wait_for(1, (unsigned)i);
      wake(0, (unsigned)i);
    }
    _exit(0);
  }
  int64_t begin = now_ns();
  for (long i = 1; i <= total; i++) {
    if (o.rate) {
      int64_t due = begin + i * 1000000000 / o.rate;
      struct timespec t = { (time_t)(due / 1000000000), (long)(due % 1000000000) };
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    int64_t start = now_ns();
    wake(1, (unsigned)i);
    wait_for(0, (unsigned)i);
    if (i > o.warmup)
      took[i - o.warmup - 1] = now_ns() - start;
  }
  qsort(took, (size_t)o.count, sizeof *took, compare_ns);
  say("took count=%ld min=%.3f p50=%.3f p95=%.3f p99=%.3f max=%.3f lost=0 torn=0 path=%s", o.count, took[0] / 1e3,
      took[o.count / 2] / 1e3, took[o.count * 95 / 100] / 1e3, took[o.count * 99 / 100] / 1e3,
      took[o.count - 1] / 1e3, o.how == HOW_UDP ? "UDP" : "memory");
}

static double copy_us(uint8_t *to, const uint8_t *from, size_t stride, size_t places)
{
  int64_t *took = (int64_t *)calloc((size_t)o.count, sizeof *took);
  for (long i = 0; i < o.count; i++) {
    size_t at = (size_t)i % places * stride;
    int64_t start = now_ns();
    memcpy(to + at, from + at, o.size);
    took[i] = now_ns() - start;
  }
  qsort(took, (size_t)o.count, sizeof *took, compare_ns);
  double p50 = took[o.count / 2] / 1e3;
  free(took);
  return p50;
}

static void run_memcpy(void)
{
  size_t stride = o.size > 4096 ? o.size : 4096, places = COLD_BYTES / stride;
  uint8_t *from = memory(stride * places, MAP_PRIVATE), *to = memory(stride * places, MAP_PRIVATE);
  double cold = copy_us(to, from, stride, places);
  double hot = copy_us(to, from, stride, 1);
  say("copied size=%zu hot=%.3f cold=%.3f", o.size, hot, cold);
}

int main(int argc, char **argv)
{
  if (argc < 2 || argc % 2)
    fail(EXIT_USAGE, "usage: floor ping|memcpy|nodes [--OPTION VALUE]...");
  int verb = choice("verb", argv[1], "ping|memcpy|nodes");
  for (int i = 2; i + 1 < argc; i += 2) {
    const char *n = argv[i], *v = argv[i + 1];
    if (!strcmp(n, "--how")) o.how = (enum how)choice(n, v, "futex|eventfd|spin|udp");
    else if (!strcmp(n, "--copy")) o.copy = choice(n, v, "no|yes") == 1;
    else if (!strcmp(n, "--size")) o.size = (size_t)number(n, v);
    else if (!strcmp(n, "--count")) o.count = (long)number(n, v);
    else if (!strcmp(n, "--warmup")) o.warmup = (long)number(n, v);
    else if (!strcmp(n, "--rate")) o.rate = (long)number(n, v);
    else if (!strcmp(n, "--cpus")) {
      if (sscanf(v, "%d,%d", &o.cpus[0], &o.cpus[1]) != 2)
        fail(EXIT_USAGE, "--cpus %s: expected two numbers, as 0,1", v);
    } else fail(EXIT_USAGE, "%s: no such option", n);
  }
  if (!o.size || o.count < 1)
    fail(EXIT_USAGE, "--size and --count: expected 1 or more");
  switch (verb) {
  case 0: run_ping(); break;
  case 1: run_memcpy(); break;
  default:
    say("ready");
    for (;;)
      pause();
  }
  return EXIT_OK;
}
