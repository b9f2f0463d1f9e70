/* gnuplot.c: writes a script to the gnuplot of the machine and says what it answers. */
#include "figure/gnuplot.h"

#include <stdio.h>
#include <stdlib.h>

fth_err fth_gnuplot_style(fth_str *script) {
    /* Okabe and Ito's colours, the darker ones first */
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#000000", "#e69f00", "#56b4e9", "#999999"};
    for (int i = 0; i < 8; i++)
        FTH_TRY(fth_str_addf(script, "set linetype %d lc rgb '%s'\n", i + 1, colours[i]));
    return fth_str_addf(script, "set grid lc rgb '#cccccc'\nset key top right\n");
}

fth_err fth_gnuplot_quoted(fth_str *script, const char *text) {
    for (; *text; text++)
        FTH_TRY(fth_str_addf(script, *text == '\'' ? "'%c" : "%c",
                             *text == '\n' || *text == '\\' ? ' ' : *text));
    return FTH_OK;
}

fth_err fth_gnuplot_run(const fth_str *script) {
    if (system("command -v gnuplot > /dev/null 2>&1") != 0)
        return fth_fail(FTH_NOT_FOUND, "gnuplot is not installed: no figure is drawn (Debian's "
                                       "package gnuplot-nox has it)");
    fflush(stdout);
    FILE *pipe = popen("gnuplot 1>&2", "w");
    if (!pipe) return fth_fail(FTH_FAILED, "gnuplot cannot be started");
    fwrite(script->text, 1, script->length, pipe);
    if (pclose(pipe) != 0) return fth_fail(FTH_FAILED, "gnuplot failed");
    return FTH_OK;
}
