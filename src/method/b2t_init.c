/* b2t_init.c: scales value, output and FFN matrices as the b2t methods want. */
#include "method/b2t_init.h"

#include <math.h>
#include <string.h>

fth_init fth_b2t_init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->layer < 0 || !fth_role_is_matrix(p->role)) return base;
    int layers = fth_stack_layers(s->config, p->stack);
    double by_depth = 1 / sqrt((double)layers);
    if (!fth_option_given(s, "init_scale"))
        return fth_init_scaled(base, layers <= 18 ? 1 : by_depth);
    bool by_rule = strcmp(fth_option_text(s, "init_scale"), "auto") == 0;
    return fth_init_scaled(base, by_rule ? by_depth : fth_option_number(s, "init_scale"));
}
