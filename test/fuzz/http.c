/* Bytes that come to a connection of fathom watch; a pair of sockets stands for the network. */
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "watch/server.h"

enum { ROUNDS = 16 }; /* of the server: after these it waits, for bytes that do not come */

static fth_server *start(void) {
    static const fth_server_spec spec = {.policy = "default-src 'none'", .by_hand = true};
    fth_server *s = NULL;
    if (fth_server_new(&spec, &s) != FTH_OK || fth_server_publish(s, "page", 4, "{}", 2) != FTH_OK)
        abort();
    return s;
}

static void look_at(const char *answer, ssize_t n) {
    if (n >= 12 && memcmp(answer, "HTTP/1.1 500", 12) == 0)
        abort(); /* nothing that a client sends may do that */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fth_server *s;
    char answer[2048];
    int fd[2];
    if (!s) s = start();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0) abort();
    const ssize_t sent = send(fd[0], data, size, MSG_NOSIGNAL);
    shutdown(fd[0], SHUT_WR);
    if (sent != (ssize_t)size || fth_server_take(s, fd[1]) != FTH_OK) abort();
    for (int k = 0; k < ROUNDS && fth_server_run(s) > 0; k++) continue;
    look_at(answer, recv(fd[0], answer, sizeof answer, 0));
    close(fd[0]);
    fth_server_beat(s); /* a viewer is found to have left when something is sent */
    for (int k = 0; fth_server_run(s) > 0; k++)
        if (k > ROUNDS) abort(); /* a connection that stays for ever */
    return 0;
}
