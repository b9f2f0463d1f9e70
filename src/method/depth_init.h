/* depth_init.h: the gain beta that two methods share (DeepNet, table I). */
#ifndef FTH_METHOD_DEPTH_INIT_H
#define FTH_METHOD_DEPTH_INIT_H

#include "method/method.h"

/* beta of a stack in this architecture. */
double fth_depth_beta(const fth_config *c, fth_stack stack);

/* XN(beta) for W_v W_o W_1 W_2, XN(1) for W_q W_k, the baseline elsewhere. */
fth_init fth_depth_rule(const fth_param *p, fth_init base, double beta);

#endif
