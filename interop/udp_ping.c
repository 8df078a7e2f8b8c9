/* The floor of every round trip: plain UDP on loopback, blocking, no protocol.
 *
 * udp_ping pong --port P
 * udp_ping ping --port P --size BYTES --count N --warmup N
 * Both bind 127.0.0.1 (the ping side: any port). A payload above 63 KB goes as
 * several datagrams, as a DDS stack must fragment it; the echo starts when all
 * of it has come. Prints the same `rtt` line as the peers.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "peer.h"

enum { PIECE = 63 * 1024, BUFFER = 16 << 20, PAYLOAD_MAX = 64 << 20 };

struct settings { bool ping; int port; size_t size; long count, warmup; };

static struct settings parse(int argc, char **argv)
{
  struct settings s = { false, 47400, 64, 5000, 500 };
  if (argc < 2)
    fail(EXIT_USAGE, "usage: udp_ping ping|pong [--port P] [--size BYTES] [--count N] [--warmup N]");
  s.ping = choice("verb", argv[1], "pong|ping") == 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    double value = number(argv[i], argv[i + 1]);
    if (!strcmp(argv[i], "--port")) s.port = (int)value;
    else if (!strcmp(argv[i], "--size")) s.size = (size_t)value;
    else if (!strcmp(argv[i], "--count")) s.count = (long)value;
    else if (!strcmp(argv[i], "--warmup")) s.warmup = (long)value;
    else fail(EXIT_USAGE, "unknown option %s", argv[i]);
  }
  if (s.size < 8 || s.size > PAYLOAD_MAX)
    fail(EXIT_USAGE, "--size %zu: expected 8 to %d", s.size, PAYLOAD_MAX);
  return s;
}

static int open_socket(int port)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
  int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = BUFFER;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address))
    fail(EXIT_DDS, "bind 127.0.0.1:%d: %s", port, strerror(errno));
  return fd;
}

/* The first 8 bytes of each payload hold its size. */
static void send_all(int fd, const uint8_t *data, size_t size, const struct sockaddr_in *to)
{
  for (size_t at = 0; at < size; at += PIECE) {
    size_t n = size - at < PIECE ? size - at : PIECE;
    if (sendto(fd, data + at, n, 0, (const struct sockaddr *)to, sizeof *to) < 0)
      fail(EXIT_DDS, "send: %s", strerror(errno));
  }
}

static size_t receive_all(int fd, uint8_t *data, struct sockaddr_in *from)
{
  uint64_t size = 0;
  for (size_t at = 0; !at || at < size;) {
    socklen_t length = sizeof *from;
    ssize_t n = recvfrom(fd, data + at, PIECE, 0, (struct sockaddr *)from, &length);
    if (n <= 0) {
      if (stop_requested || errno == EINTR)
        exit(EXIT_OK);
      fail(EXIT_TIME, "receive: %s", strerror(errno));
    }
    if (!at) {
      memcpy(&size, data, sizeof size);
      if (size < 8 || size > PAYLOAD_MAX)
        fail(EXIT_DDS, "a payload claims %llu bytes", (unsigned long long)size);
    }
    at += (size_t)n;
  }
  return (size_t)size;
}

int main(int argc, char **argv)
{
  struct settings s = parse(argc, argv);
  struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s.port) };
  uint8_t *data = malloc(PAYLOAD_MAX + PIECE);
  int64_t *list = calloc((size_t)s.count + 1, sizeof *list);
  struct timeval patience = { 5, 0 };
  int fd = open_socket(s.ping ? 0 : s.port);
  catch_stop();
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!s.ping) {
    say("ready");
    for (;;)
      send_all(fd, data, receive_all(fd, data, &peer), &peer);
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  fill_payload(data, s.size, 1, false);
  memcpy(data, &(uint64_t){ s.size }, 8);
  for (long i = -s.warmup; i < s.count && !stop_requested; i++) {
    int64_t start = now_ns();
    send_all(fd, data, s.size, &peer);
    receive_all(fd, data, &peer);
    if (i >= 0)
      list[i] = now_ns() - start;
  }
  say_rtt(list, s.count, (long)s.size);
  return EXIT_OK;
}
