/* host.h: is a Host header one of ours? */
#ifndef FTH_WATCH_HOST_H
#define FTH_WATCH_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* header is the value of Host ("localhost:8765"). Allowed: localhost, any numeric address (a name
 * is what an attacker would need), the words of names[n]. Case does not count, the port is not
 * looked at. NULL is not allowed. */
bool fth_host_allowed(const char *header, const char *const *names, size_t n);

/* Is it an address of this machine alone: localhost, 127.x.x.x, ::1? */
bool fth_host_is_loopback(const char *host);

#endif
