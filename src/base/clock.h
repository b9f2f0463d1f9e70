/* clock.h: the clock of the machine that never goes backwards. */
#ifndef FTH_BASE_CLOCK_H
#define FTH_BASE_CLOCK_H

/* Seconds since some moment before the program began. */
double fth_now(void);

#endif
