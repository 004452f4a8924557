/* Places of the program in words: the source line of an address of code, the name of a kernel. */
#define _GNU_SOURCE
#include "report.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) abort();
    return copy;
}

/* A return address belongs to the call before it. */
static uintptr_t address_in_program(const void *pc) {
    Dl_info module;
    if (pc == NULL || dladdr(pc, &module) == 0) return 0;
    return (uintptr_t)pc - 1 - (uintptr_t)module.dli_fbase;
}

/* addr2line puts the folder of the compilation before a relative name. */
static const char *within_project(const char *path) {
    static const char *const folders[] = {BINARY_ROOT "/", SOURCE_ROOT "/"};
    for (int i = 0; i < 2; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) path += strlen(folders[i]);
    while (strncmp(path, "./", 2) == 0) path += 2;
    return path;
}

/* One run of addr2line for all. It answers each address with the address itself and then a line for each function that is
 * inlined there, the innermost first. */
void source_lines(const void *const *pcs, int count, char **lines) {
    char list[] = "/tmp/simt_lines_XXXXXX", command[200];
    for (int i = 0; i < count; i++) lines[i] = NULL;
    int descriptor = mkstemp(list);
    FILE *addresses = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (addresses != NULL) {
        for (int i = 0; i < count; i++) fprintf(addresses, "0x%lx\n", (unsigned long)address_in_program(pcs[i]));
        fclose(addresses);
        snprintf(command, sizeof command, "addr2line -a -i -e /proc/%d/exe <%s 2>/dev/null", (int)getpid(), list);
        FILE *output = popen(command, "r");
        char text[1024];
        int at = -1;
        while (output != NULL && fgets(text, sizeof text, output) != NULL) {
            text[strcspn(text, " \n")] = '\0'; /* drops "(discriminator 2)" too */
            bool ours = strstr(text, "simt_device.h") != NULL || strstr(text, "cuda_pipeline.h") != NULL ||
                        strstr(text, "/include/c++/") != NULL;
            if (strncmp(text, "0x", 2) == 0)
                at++;
            else if (at >= 0 && at < count && lines[at] == NULL && !ours && text[0] != '?')
                lines[at] = copy_text(within_project(text));
        }
        if (output != NULL) pclose(output);
        unlink(list);
    }
    for (int i = 0; i < count; i++)
        if (lines[i] == NULL) lines[i] = copy_text("an unknown line");
}

/* "void fa2_forward<64>(float const*, ...)" is how a template's instance is called; a plain function has no "void". */
void kernel_name(const struct launch *launch, char *text, size_t room) {
    char command[200], line[1024] = "";
    snprintf(text, room, "%s", launch->name);
    if (strchr(launch->name, '<') == NULL) return;
    snprintf(command, sizeof command, "addr2line -f -C -e /proc/%d/exe 0x%lx 2>/dev/null", (int)getpid(),
             (unsigned long)address_in_program(launch->kernel) + 1);
    FILE *output = popen(command, "r");
    bool found = output != NULL && fgets(line, sizeof line, output) != NULL;
    if (output != NULL) pclose(output);
    if (!found || line[0] == '?') return;
    line[strcspn(line, "(\n")] = '\0';
    snprintf(text, room, "%s", strncmp(line, "void ", 5) == 0 ? line + 5 : line);
}

char *source_line(const void *pc) {
    char *line;
    source_lines(&pc, 1, &line);
    return line;
}
