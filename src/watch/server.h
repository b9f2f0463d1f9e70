/* server.h: the page of runs, live, for any number of browsers.
 *
 * Read-only: GET and HEAD of three addresses, none of which names a file. Requests whose Host is
 * not the server's own are refused, so that a page from elsewhere cannot reach it through a name
 * that changes its address. Memory is bounded: what is sent is made once for all viewers, and the
 * number of connections has a limit. */
#ifndef FTH_WATCH_SERVER_H
#define FTH_WATCH_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct fth_server fth_server;

typedef struct fth_server_spec {
    const char *host;         /* numeric address, or "localhost" */
    int port;                 /* 0: any that is free */
    const char *const *names; /* [n_names] further names under which the machine may be called */
    size_t n_names;
    const char *policy; /* content security policy */
    bool by_hand;       /* no port and no thread: connections come by fth_server_take */
} fth_server_spec;

/* Opens the port and serves. FTH_USAGE when the port is in use or not allowed, or the address is
 * not one of this machine. */
fth_err fth_server_new(const fth_server_spec *spec, fth_server **out);

/* Stops and frees; NULL is fine. */
void fth_server_free(fth_server *s);

/* The port that is served; 0: none. */
int fth_server_port(const fth_server *s);

/* What viewers get from now on: the page for "/" and the data for "/data.json", both copied. Those
 * that are connected are told. */
fth_err fth_server_publish(fth_server *s, const char *page, size_t page_size, const char *data,
                           size_t data_size);

/* Of a server by hand: serves a connected socket from now on, and closes it in the end; what can be
 * done now without waiting is done by fth_server_run, which gives the number of open
 * connections. */
fth_err fth_server_take(fth_server *s, int fd);
int fth_server_run(fth_server *s);

/* Lets a line go to every viewer, which shows who has left. To be called every few seconds. */
void fth_server_beat(fth_server *s);

#endif
