/*
 * The floor of a round trip: the least that a server of HTTP can do.  It waits with epoll, takes
 * each read for one whole request, and sends an answer that was made before, as long as the one of
 * weir serve.  bench/serve/noop.py measures it in turns with the server, with the same client.
 *
 *	bench-bare PORT
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MODEL                                                                                      \
	"{\"name\":\"noop\",\"inputs\":[{\"name\":\"X\",\"datatype\":\"FP32\",\"shape\":[-1,16]}]}"
#define TENSOR                                                                                        \
	"{\"model_name\":\"noop\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"Y\",\"datatype\":" \
	"\"FP32\",\"shape\":[1,16],\"parameters\":{\"binary_data_size\":64}}]}"
#define VALUES "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char model[512], tensor[512];

static void make_answer(char *to, const char *headers, const char *body, const char *more)
{
	snprintf(to, sizeof model, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n%s%s", headers,
		strlen(body) + strlen(more), body, more);
}

static void answer(int fd)
{
	char request[4096];
	const ssize_t n = recv(fd, request, sizeof request, 0);
	const char *said = n >= 3 && memcmp(request, "GET", 3) == 0 ? model : tensor;
	if (n <= 0 || send(fd, said, strlen(said), MSG_NOSIGNAL) < 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event e = { .events = EPOLLIN, .data.fd = listener };
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (const struct sockaddr *)&at, sizeof at) || listen(listener, 64) ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e)) {
		perror("bench-bare");
		return 1;
	}
	make_answer(model, "Content-Type: application/json\r\n", MODEL, "");
	make_answer(tensor,
		"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: 138\r\n",
		TENSOR, VALUES);
	while (epoll_wait(epoll, &e, 1, -1) > 0) {
		if (e.data.fd != listener) {
			answer(e.data.fd);
			continue;
		}
		const int fd = accept(listener, NULL, NULL);
		e = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
	}
	return 1;
}
