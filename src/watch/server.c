/* server.c: libmicrohttpd answers; viewers of the event stream sleep until something is
 * published. */
#include "watch/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watch/host.h"

enum { MAX_CONNECTIONS = 1000, CONNECTION_MEMORY = 16 << 10 };

/* A browser that listens to events. */
typedef struct viewer {
    fth_server *server;
    struct MHD_Connection *connection;
    uint64_t seen, beats; /* what it was told last */
    bool asleep;          /* suspended, until there is something to tell */
    struct viewer *next, **link;
} viewer;

struct fth_server {
    struct MHD_Daemon *daemon;
    int port;
    char **names; /* [n_names] */
    size_t n_names;
    char *policy;
    pthread_mutex_t lock; /* of all that follows */
    struct MHD_Response *page, *data;
    uint64_t version, beats;
    bool closing;
    viewer *viewers;
};

/* ---- answers ---- */

static void add_headers(const fth_server *s, struct MHD_Response *r, const char *type) {
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Content-Security-Policy", s->policy);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    MHD_add_response_header(r, "Cache-Control", "no-store");
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct MHD_Response *r) {
    return r ? MHD_queue_response(c, status, r) : MHD_NO;
}

static enum MHD_Result refuse(const fth_server *s, struct MHD_Connection *c, unsigned status,
                              const char *text) {
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    add_headers(s, r, "text/plain; charset=utf-8");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(r, "Allow", "GET, HEAD");
    enum MHD_Result result = answer(c, status, r);
    MHD_destroy_response(r);
    return result;
}

/* ---- events ---- */

/* Called by the HTTP library when the connection can take more. Sleeps when there is no news. */
static ssize_t next_event(void *context, uint64_t position, char *buffer, size_t size) {
    (void)position;
    viewer *v = context;
    fth_server *s = v->server;
    ssize_t n = 0;
    pthread_mutex_lock(&s->lock);
    if (s->closing) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (v->seen != s->version) {
        v->seen = s->version;
        n = snprintf(buffer, size, "event: changed\ndata: %llu\n\n", (unsigned long long)v->seen);
    } else if (v->beats != s->beats) {
        v->beats = s->beats;
        n = snprintf(buffer, size, ":\n\n"); /* a comment */
    } else if (!v->asleep) {
        v->asleep = true;
        MHD_suspend_connection(v->connection);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void forget_viewer(void *context) {
    viewer *v = context;
    pthread_mutex_lock(&v->server->lock);
    *v->link = v->next;
    if (v->next) v->next->link = v->link;
    pthread_mutex_unlock(&v->server->lock);
    free(v);
}

/* The lock is held. */
static void wake_all(fth_server *s) {
    for (viewer *v = s->viewers; v; v = v->next) {
        if (!v->asleep) continue;
        v->asleep = false;
        MHD_resume_connection(v->connection);
    }
}

static enum MHD_Result serve_events(fth_server *s, struct MHD_Connection *c) {
    viewer *v = malloc(sizeof *v);
    if (!v) return MHD_NO;
    pthread_mutex_lock(&s->lock);
    *v = (viewer){.server = s,
                  .connection = c,
                  .seen = s->version - 1, /* the first event comes at once */
                  .beats = s->beats,
                  .next = s->viewers,
                  .link = &s->viewers};
    if (v->next) v->next->link = &v->next;
    s->viewers = v;
    pthread_mutex_unlock(&s->lock);
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 256, next_event, v, forget_viewer);
    if (!r) {
        forget_viewer(v);
        return MHD_NO;
    }
    add_headers(s, r, "text/event-stream");
    enum MHD_Result result = answer(c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return result;
}

/* ---- requests ---- */

static enum MHD_Result serve(void *context, struct MHD_Connection *c, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_size, void **state) {
    (void)version, (void)upload;
    static const int known = 1;
    fth_server *s = context;
    if (!*state) { /* the headers are there, the body is not */
        *state = (void *)&known;
        return MHD_YES;
    }
    if (*upload_size > 0) { /* a body is thrown away */
        *upload_size = 0;
        return MHD_YES;
    }
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (!fth_host_allowed(host, (const char *const *)s->names, s->n_names))
        return refuse(s, c, MHD_HTTP_FORBIDDEN,
                      "This name is not one of the server's; see fathom watch --allow-host.\n");
    bool head = strcmp(method, "HEAD") == 0;
    if (!head && strcmp(method, "GET") != 0)
        return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD are served.\n");
    if (strcmp(url, "/events") == 0 && !head) return serve_events(s, c);
    if (strcmp(url, "/") != 0 && strcmp(url, "/data.json") != 0)
        return refuse(s, c, MHD_HTTP_NOT_FOUND, "There is nothing here; the page is at /\n");
    pthread_mutex_lock(&s->lock);
    enum MHD_Result result = answer(c, MHD_HTTP_OK, url[1] ? s->data : s->page);
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* ---- the server ---- */

static fth_err make_response(const fth_server *s, const char *text, size_t size, const char *type,
                             struct MHD_Response **out) {
    *out = MHD_create_response_from_buffer(size, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!*out) return fth_fail(FTH_NO_MEMORY, "no memory for the page");
    add_headers(s, *out, type);
    return FTH_OK;
}

fth_err fth_server_publish(fth_server *s, const char *page, size_t page_size, const char *data,
                           size_t data_size) {
    struct MHD_Response *new_page = NULL, *new_data = NULL;
    fth_err err = make_response(s, page, page_size, "text/html; charset=utf-8", &new_page);
    if (err == FTH_OK)
        err = make_response(s, data, data_size, "application/json; charset=utf-8", &new_data);
    if (err != FTH_OK) {
        if (new_page) MHD_destroy_response(new_page);
        return err;
    }
    pthread_mutex_lock(&s->lock);
    struct MHD_Response *old_page = s->page, *old_data = s->data;
    s->page = new_page;
    s->data = new_data;
    s->version++;
    wake_all(s);
    pthread_mutex_unlock(&s->lock);
    if (old_page) MHD_destroy_response(old_page);
    if (old_data) MHD_destroy_response(old_data);
    return FTH_OK;
}

void fth_server_beat(fth_server *s) {
    pthread_mutex_lock(&s->lock);
    s->beats++;
    wake_all(s);
    pthread_mutex_unlock(&s->lock);
}

int fth_server_port(const fth_server *s) {
    return s->port;
}

static fth_err copy_names(fth_server *s, const fth_server_spec *spec) {
    s->policy = strdup(spec->policy);
    s->names = calloc(spec->n_names + 1, sizeof *s->names);
    bool good = s->policy && s->names;
    for (size_t i = 0; good && i < spec->n_names; i++) {
        s->names[i] = strdup(spec->names[i]);
        good = s->names[i];
        s->n_names = i + 1;
    }
    return good ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a server");
}

static fth_err find_address(const fth_server_spec *spec, struct sockaddr_storage *out,
                            socklen_t *size) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    const char *host = strcmp(spec->host, "localhost") == 0 ? "127.0.0.1" : spec->host;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)spec->port);
        *size = sizeof *v4;
        return FTH_OK;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)spec->port);
        *size = sizeof *v6;
        return FTH_OK;
    }
    return fth_fail(FTH_USAGE, "--host %.80s: must be localhost or a numeric address, as 0.0.0.0",
                    spec->host);
}

/* Opened here and not by the library, which does not tell why a port cannot be had. */
static fth_err open_socket(fth_server *s, const fth_server_spec *spec, int *out) {
    struct sockaddr_storage address;
    socklen_t size;
    FTH_TRY(find_address(spec, &address, &size));
    int on = 1, fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fth_fail(FTH_FAILED, "no socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 128) != 0) {
        int reason = errno;
        close(fd);
        if (reason == EADDRINUSE)
            return fth_fail(FTH_USAGE,
                            "--port %d: is in use by another program; must be a free port, 0 "
                            "takes any",
                            spec->port);
        return fth_fail(FTH_USAGE, "--host %.80s --port %d: cannot be opened: %s", spec->host,
                        spec->port, strerror(reason));
    }
    size = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &size);
    s->port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                 : ((struct sockaddr_in6 *)&address)->sin6_port);
    *out = fd;
    return FTH_OK;
}

/* listening -1: connections come by hand. */
static fth_err start(fth_server *s, int listening) {
    const unsigned by_port = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD;
    s->daemon = MHD_start_daemon(
        MHD_ALLOW_SUSPEND_RESUME | (listening < 0 ? (unsigned)MHD_USE_NO_LISTEN_SOCKET : by_port),
        0, NULL, NULL, serve, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, listening < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET,
        listening, MHD_OPTION_END);
    return s->daemon ? FTH_OK : fth_fail(FTH_FAILED, "the HTTP server cannot be started");
}

fth_err fth_server_new(const fth_server_spec *spec, fth_server **out) {
    fth_server *s = calloc(1, sizeof *s);
    int fd = -1;
    *out = NULL;
    if (!s) return fth_fail(FTH_NO_MEMORY, "no memory for a server");
    pthread_mutex_init(&s->lock, NULL);
    fth_err err = copy_names(s, spec);
    if (err == FTH_OK && !spec->by_hand) err = open_socket(s, spec, &fd);
    if (err == FTH_OK) err = fth_server_publish(s, "", 0, "{}", 2);
    if (err == FTH_OK) err = start(s, fd);
    if (err != FTH_OK) {
        if (fd >= 0) close(fd);
        fth_server_free(s);
        return err;
    }
    *out = s;
    return FTH_OK;
}

fth_err fth_server_take(fth_server *s, int fd) {
    const struct sockaddr_in from = {.sin_family = AF_INET};
    if (MHD_add_connection(s->daemon, fd, (const struct sockaddr *)&from, sizeof from) == MHD_YES)
        return FTH_OK;
    return fth_fail(FTH_FAILED, "a connection cannot be served: %s", strerror(errno));
}

int fth_server_run(fth_server *s) {
    MHD_run(s->daemon);
    return (int)MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
        ->num_connections;
}

void fth_server_free(fth_server *s) {
    if (!s) return;
    if (s->daemon) {
        int listening =
            MHD_quiesce_daemon(s->daemon); /* no new viewers; the socket is ours again */
        if (listening >= 0) close(listening);
        pthread_mutex_lock(&s->lock);
        s->closing = true;
        wake_all(s);
        pthread_mutex_unlock(&s->lock);
        MHD_stop_daemon(s->daemon);
    }
    if (s->page) MHD_destroy_response(s->page);
    if (s->data) MHD_destroy_response(s->data);
    for (size_t i = 0; i < s->n_names; i++) free(s->names[i]);
    free(s->names);
    free(s->policy);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
