/* depth_init.c: beta by the depths of the two stacks (DeepNet, table I), on value, output and FFN
 * matrices. */
#include "method/depth_init.h"

#include <math.h>

double fth_depth_beta(const fth_config *c, fth_stack stack) {
    double n = c->encoder_layers, m = c->decoder_layers;
    if (c->arch != FTH_ENCDEC) return pow(8 * (c->arch == FTH_ENC ? n : m), -0.25);
    return stack == FTH_ENCODER ? 0.87 * pow(pow(n, 4) * m, -1.0 / 16) : pow(12 * m, -0.25);
}

fth_init fth_depth_rule(const fth_param *p, fth_init base, double beta) {
    switch (p->role) {
    case FTH_ROLE_Q:
    case FTH_ROLE_K: return fth_xavier_normal(1);
    case FTH_ROLE_V:
    case FTH_ROLE_O:
    case FTH_ROLE_FC1:
    case FTH_ROLE_FC2: return fth_xavier_normal(beta);
    default: return base;
    }
}
