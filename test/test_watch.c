/* links: watch inspect base */
/* Which Host headers are answered, and what the terminal shows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "watch/canvas.h"
#include "watch/host.h"
#include "watch/server.h"
#include "watch/terminal.h"

static void hosts(void **state) {
    static const struct {
        const char *header;
        bool allowed;
    } cases[] = {{"localhost", true},
                 {"localhost:8765", true},
                 {"LOCALHOST:1", true},
                 {"127.0.0.1:8765", true},
                 {"[::1]:8765", true},
                 {"192.168.1.7", true},
                 {"box", true},
                 {"BOX:80", true},
                 {"lab.example:9", true},
                 {"evil.example", false},
                 {"localhost.evil.com", false},
                 {"127.0.0.1.evil.com", false},
                 {"localhost:80x", false},
                 {"", false},
                 {":80", false},
                 {"[::1", false},
                 {"[evil]", false},
                 {"box@evil", false},
                 {"::1", false},
                 {"[::1]x", false}};
    const char *const names[] = {"box", "lab.example"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (fth_host_allowed(cases[i].header, names, 2) != cases[i].allowed)
            fail_msg("Host: %s", cases[i].header);
    assert_false(fth_host_allowed(NULL, names, 2));
    assert_true(fth_host_is_loopback("localhost") && fth_host_is_loopback("127.9.9.9") &&
                fth_host_is_loopback("::1"));
    assert_false(fth_host_is_loopback("0.0.0.0") || fth_host_is_loopback("::"));
}

static void ports(void **state) {
    (void)state;
    fth_server *one, *two;
    fth_server_spec spec = {.host = "localhost", .policy = "default-src 'none'"};
    assert_int_equal(fth_server_new(&spec, &one), FTH_OK);
    assert_true(fth_server_port(one) > 0);
    spec.port = fth_server_port(one);
    assert_int_equal(fth_server_new(&spec, &two), FTH_USAGE);
    assert_null(two);
    assert_non_null(strstr(fth_error_message(), "is in use"));
    spec.host = "nowhere";
    assert_int_equal(fth_server_new(&spec, &two), FTH_USAGE);
    spec.host = "198.51.100.1"; /* an address for documents, never of this machine */
    assert_int_equal(fth_server_new(&spec, &two), FTH_USAGE);
    assert_int_equal(fth_server_publish(one, "a", 1, "b", 1), FTH_OK);
    fth_server_beat(one);
    fth_server_free(one);
    fth_server_free(NULL);
}

/* Connects and sends a request. */
static int ask(const fth_server *server, const char *request) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)fth_server_port(server)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval limit = {.tv_sec = 20};
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    return fd;
}

/* Reads until the text has come, or the end. */
static bool gets_text(int fd, const char *text) {
    static char all[20000];
    size_t n = 0;
    while (n + 1 < sizeof all) {
        ssize_t got = read(fd, all + n, sizeof all - n - 1);
        if (got <= 0) break;
        n += (size_t)got;
        all[n] = '\0';
        if (strstr(all, text)) return true;
    }
    return false;
}

static void answers(void **state) {
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "the page"},
        {"GET /data.json HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "the data"},
        {"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "Content-Length: 8"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
         "Content-Security-Policy: default-src 'none'"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "X-Content-Type-Options: nosniff"},
        {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"},
        {"GET / HTTP/1.1\r\nHost: box\r\n\r\n", "HTTP/1.1 200"},
        {"GET / HTTP/1.0\r\n\r\n", " 403"},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405"},
        {"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "Allow: GET, HEAD"},
        {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404"},
        {"GET /%2e%2e/log.jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404"},
        {"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", "event: changed"},
    };
    (void)state;
    const char *const names[] = {"box"};
    fth_server *server;
    fth_server_spec spec = {
        .host = "127.0.0.1", .names = names, .n_names = 1, .policy = "default-src 'none'"};
    assert_int_equal(fth_server_new(&spec, &server), FTH_OK);
    assert_int_equal(fth_server_publish(server, "the page", 8, "the data", 8), FTH_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = ask(server, cases[i].request);
        if (!gets_text(fd, cases[i].answer)) fail_msg("%s", cases[i].request);
        close(fd);
    }
    fth_server_free(server);
}

/* Many viewers sleep until there is news, get it, and go while others stay. */
static void many_viewers(void **state) {
    (void)state;
    enum { VIEWERS = 100 };
    int fd[VIEWERS];
    fth_server *server;
    fth_server_spec spec = {.host = "localhost", .policy = "x"};
    assert_int_equal(fth_server_new(&spec, &server), FTH_OK);
    for (int i = 0; i < VIEWERS; i++) {
        fd[i] = ask(server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_true(gets_text(fd[i], "data: 1\n"));
    }
    for (int i = 0; i < VIEWERS; i += 2) close(fd[i]);
    assert_int_equal(fth_server_publish(server, "a", 1, "b", 1), FTH_OK);
    for (int i = 1; i < VIEWERS; i += 2) assert_true(gets_text(fd[i], "data: 2\n"));
    fth_server_beat(server);
    for (int i = 1; i < VIEWERS; i += 2) assert_true(gets_text(fd[i], ":\n\n"));
    fth_server_free(server); /* with half of them still there */
    for (int i = 1; i < VIEWERS; i += 2) close(fd[i]);
}

static void a_canvas(void **state) {
    (void)state;
    fth_canvas c;
    fth_str text = {0};
    assert_int_equal(fth_canvas_init(&c, 4, 1, true, false), FTH_OK);
    fth_canvas_line(&c, 0, 3, 7, 3, 0);
    fth_canvas_line(&c, -5, 9, 3, 1e9, 0); /* outside: left out */
    fth_canvas_line(&c, NAN, 0, 1, 1, 0);
    fth_canvas_letter(&c, 2, 0, 'o', 1);
    assert_int_equal(fth_canvas_row(&c, 0, &text), FTH_OK);
    assert_string_equal(text.text, "\u28c0o\u28c0\u28c0");
    fth_str_fini(&text);
    fth_canvas_fini(&c);
}

static void the_terminal(void **state) {
    (void)state;
    char folder[] = "/tmp/fathom-watch-XXXXXX", path[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    const char log[] =
        "{\"type\":\"start\",\"update\":0,\"config\":\"max-update: 20\\nencoder-layers: 2\\n\"}\n"
        "{\"type\":\"train\",\"update\":10,\"nll_loss\":3,\"wps\":1000}\n"
        "{\"type\":\"train\",\"update\":20,\"nll_loss\":2,\"wps\":1000}\n"
        "{\"type\":\"valid\",\"update\":20,\"nll_loss\":2.5}\n"
        "{\"type\":\"layers\",\"update\":10,\"stack\":\"encoder\",\"name\":\"g\",\"values\":[1,1,"
        "\"nan\",5]}\n"
        "{\"type\":\"layers\",\"update\":20,\"stack\":\"encoder\",\"name\":\"g\",\"values\":[9,9,5,"
        "5]}\n";
    assert_int_equal(fth_file_write(path, log, strlen(log)), FTH_OK);
    const char *folders[] = {folder, "/tmp/fathom-no-such-run"};
    fth_run_views views;
    bool changed;
    fth_str text = {0};
    assert_int_equal(fth_run_views_init(&views, folders, 2), FTH_OK);
    assert_int_equal(fth_run_views_poll(&views, &changed), FTH_OK);
    fth_terminal t = {.columns = 110, .rows = 24, .quantity = ""};
    assert_int_equal(fth_terminal_draw(&t, &views, &text), FTH_OK);
    assert_non_null(strstr(text.text, "update 20 of 20, loss 2, best valid 2.5000"));
    assert_non_null(strstr(text.text, "fathom-no-such-run: missing"));
    assert_non_null(strstr(text.text, "2 |!+\n")); /* layer 2: a fault, then in the middle */
    assert_non_null(strstr(text.text, "1 |.@\n")); /* layer 1: lowest, highest */
    assert_null(strchr(text.text, '\033'));
    fth_str_clear(&text);
    t = (fth_terminal){
        .columns = 10, .rows = 3, .colour = true, .unicode = true, .quantity = "none"};
    assert_int_equal(fth_terminal_draw(&t, &views, &text), FTH_OK); /* too small a screen */
    assert_non_null(strstr(text.text, "no run has logged none"));
    fth_str_fini(&text);
    fth_run_views_fini(&views);
    fth_remove_tree(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hosts),    cmocka_unit_test(ports),
                                       cmocka_unit_test(answers),  cmocka_unit_test(many_viewers),
                                       cmocka_unit_test(a_canvas), cmocka_unit_test(the_terminal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
