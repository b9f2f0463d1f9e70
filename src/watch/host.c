/* host.c: allows addresses, localhost and the names that were given, with or without a port. */
#include "watch/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { NAME_SIZE = 256 };

/* The name without its port and brackets; false when it is none. */
static bool split(const char *header, char *name /* [NAME_SIZE] */) {
    bool bracket = header[0] == '[';
    const char *begin = header + bracket;
    size_t n = strcspn(begin, bracket ? "]" : ":");
    if (n == 0 || n >= NAME_SIZE || (bracket && begin[n] != ']')) return false;
    memcpy(name, begin, n);
    name[n] = '\0';
    const char *port = begin + n + bracket;
    if (*port == '\0') return true;
    return *port == ':' && strspn(port + 1, "0123456789") == strlen(port + 1);
}

static bool is_address(const char *name) {
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

bool fth_host_allowed(const char *header, const char *const *names, size_t n) {
    char name[NAME_SIZE];
    if (!header || !split(header, name)) return false;
    if (strcasecmp(name, "localhost") == 0 || is_address(name)) return true;
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

bool fth_host_is_loopback(const char *host) {
    unsigned char bytes[sizeof(struct in6_addr)];
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) return true;
    return inet_pton(AF_INET, host, bytes) == 1 && bytes[0] == 127;
}
