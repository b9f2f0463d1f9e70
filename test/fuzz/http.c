/* Bytes that come to the port of fathom watch. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "fuzz.h"
#include "watch/server.h"

static fth_server *start(void) {
    static const fth_server_spec spec = {.host = "localhost", .policy = "default-src 'none'"};
    fth_server *s = NULL;
    if (fth_server_new(&spec, &s) != FTH_OK || fth_server_publish(s, "page", 4, "{}", 2) != FTH_OK)
        abort();
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fth_server *s;
    if (!s) s = start();
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)fth_server_port(s))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct timeval wait = {.tv_usec = 20000};
    const struct linger at_once = {.l_onoff = 1}; /* no port is left waiting */
    char answer[2048];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) abort();
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    for (int k = 0; n >= 0 && k < 16; k++) {
        n = recv(fd, answer, sizeof answer, 0);
        if (n <= 0) break;
        if (k == 0 && n >= 12 && memcmp(answer, "HTTP/1.1 5", 10) == 0 &&
            memcmp(answer + 9, "50", 2) == 0 && answer[11] == '0')
            abort(); /* 500: nothing that a client sends may do that */
    }
    close(fd);
    return 0;
}
