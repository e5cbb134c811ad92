/* What the simulation is told: by its exports, or by CUDA_FORK_GUARD_SIM when it is loaded, for programs that were
 * exec'ed. "devices=2;slow=cuInit:500;fail=cuInit:999,cuMemAlloc_v2:2:1;version=12020" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const int default_devices = 1;
static const int default_version = 12080;

int cfg_sim_devices(int count) {
    if (count < 0 || count > SIM_MAX_DEVICES)
        return -1;
    sim_set_installed(count);
    return 0;
}

int cfg_sim_version(int version) {
    if (version <= 0)
        return -1;
    sim_set_version(version);
    return 0;
}

int cfg_sim_slow(const char* entry, int milliseconds) {
    return sim_set_slow(sim_entry_named(entry, strlen(entry)), milliseconds) ? 0 : -1;
}

int cfg_sim_fail(const char* entry, int code, int times) {
    return sim_set_fail(sim_entry_named(entry, strlen(entry)), code, times) ? 0 : -1;
}

/* Reads a number that `ends` (or the end of the text) must follow, and moves past it. */
static bool number(const char** text, const char* ends, int* value) {
    char* end = NULL;
    long read = strtol(*text, &end, 10);
    if (end == *text || (*end != '\0' && strchr(ends, *end) == NULL) || read < 0 || read > 1000000000L)
        return false;
    *text = end;
    *value = (int)read;
    return true;
}

/* "NAME:A" or "NAME:A:B", as many as there are commas. */
static bool faults(const char* text, bool (*set)(enum sim_entry, int, int)) {
    for (;;) {
        size_t length = strcspn(text, ":;,");
        enum sim_entry entry = sim_entry_named(text, length);
        text += length;
        int values[2] = {0, 0};
        for (int index = 0; index == 0 || (index == 1 && *text == ':'); index++) {
            if (*text != ':')
                return false;
            text++;
            if (!number(&text, ":,;", &values[index]))
                return false;
        }
        if (!set(entry, values[0], values[1]))
            return false;
        if (*text != ',')
            return *text == '\0' || *text == ';';
        text++;
    }
}

static bool set_slow(enum sim_entry entry, int milliseconds, int unused) {
    return unused == 0 && sim_set_slow(entry, milliseconds);
}

static bool apply(const char* text) {
    int value = 0;
    size_t length = strcspn(text, "=");
    const char* argument = text[length] == '=' ? text + length + 1 : "";
    if (strncmp(text, "slow=", 5) == 0)
        return faults(argument, set_slow);
    if (strncmp(text, "fail=", 5) == 0)
        return faults(argument, sim_set_fail);
    if (strncmp(text, "devices=", 8) == 0)
        return number(&argument, ";", &value) && cfg_sim_devices(value) == 0;
    if (strncmp(text, "version=", 8) == 0)
        return number(&argument, ";", &value) && cfg_sim_version(value) == 0;
    return false;
}

/* Everything as at load, then the settings; the first one that makes no sense ends it. */
int cfg_sim_configure(const char* settings) {
    sim_clear_faults();
    sim_set_installed(default_devices);
    sim_set_version(default_version);
    while (*settings != '\0') {
        size_t length = strcspn(settings, ";");
        if (length > 0 && !apply(settings))
            return -1;
        settings += length;
        if (*settings == ';')
            settings++;
    }
    return 0;
}

__attribute__((constructor)) static void configure_at_load(void) {
    const char* settings = getenv("CUDA_FORK_GUARD_SIM");
    if (settings != NULL && cfg_sim_configure(settings) != 0)
        fprintf(stderr, "simulated libcuda: CUDA_FORK_GUARD_SIM=%s makes no sense\n", settings);
}
