/* Places of the program in words: the source line of an address of code, the name of a kernel. Read from the program's own
 * debugging information with libdw, in this process. */
#define _GNU_SOURCE
#include "report.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char unknown[] = "an unknown line";

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) abort();
    return copy;
}

bool source_line_is_known(const char *line) { return strcmp(line, unknown) != 0; }

/* Debugging information that a distribution keeps apart, or a server has: the kernels' is in the program. */
static int no_separate_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                            const char *link, GElf_Word crc, char **found) {
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
    return -1;
}

/* The program and its libraries as they lie in memory; NULL when that cannot be read. */
static Dwfl *program(void) {
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_separate_file};
    static Dwfl *dwfl;
    if (dwfl != NULL) return dwfl;
    dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL) return NULL;
    dwfl_report_begin(dwfl);
    bool reported = dwfl_linux_proc_report(dwfl, getpid()) == 0;
    if (dwfl_report_end(dwfl, NULL, NULL) != 0 || !reported) {
        dwfl_end(dwfl);
        dwfl = NULL;
    }
    return dwfl;
}

/* "steps/01_naive/naive.cu:42", or NULL for a line of the simulator's or the compiler's own headers. */
static char *line_of_kernel(const char *path, int number) {
    static const char *const folders[] = {BINARY_ROOT "/", SOURCE_ROOT "/"};
    if (path == NULL || number <= 0) return NULL;
    if (strstr(path, "/simt/include/") != NULL || strstr(path, "/include/c++/") != NULL) return NULL;
    for (int i = 0; i < 2; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) path += strlen(folders[i]);
    while (strncmp(path, "./", 2) == 0) path += 2;
    char *text;
    if (asprintf(&text, "%s:%d", path, number) < 0) abort();
    return text;
}

static int attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute found;
    Dwarf_Word value;
    return dwarf_attr(die, name, &found) != NULL && dwarf_formudata(&found, &value) == 0 ? (int)value : 0;
}

/* The innermost line that is the kernel's own: that of the address, or that of a call which was inlined there. */
static char *find_line(Dwarf_Die *unit, Dwarf_Addr address) {
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    int number = 0;
    if (line == NULL || dwarf_lineno(line, &number) != 0) return NULL;
    char *found = line_of_kernel(dwarf_linesrc(line, NULL, NULL), number);
    Dwarf_Die *innermost = NULL, *scopes = NULL;
    Dwarf_Files *files;
    if (found == NULL && dwarf_getsrcfiles(unit, &files, NULL) == 0 && dwarf_getscopes(unit, address, &innermost) > 0) {
        int count = dwarf_getscopes_die(&innermost[0], &scopes);
        for (int i = 0; i < count && found == NULL; i++)
            if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
                found = line_of_kernel(
                    dwarf_filesrc(files, (size_t)attribute(&scopes[i], DW_AT_call_file), NULL, NULL),
                    attribute(&scopes[i], DW_AT_call_line));
    }
    free(innermost);
    free(scopes);
    return found;
}

/* A return address belongs to the call before it. */
char *source_line(const void *pc) {
    char *found = NULL;
    pthread_mutex_lock(&lock);
    if (pc != NULL && program() != NULL) {
        Dwarf_Addr bias, address = (Dwarf_Addr)(uintptr_t)pc - 1;
        Dwarf_Die *unit = dwfl_addrdie(program(), address, &bias);
        if (unit != NULL) found = find_line(unit, address - bias);
    }
    pthread_mutex_unlock(&lock);
    return found != NULL ? found : copy_text(unknown);
}

extern char *__cxa_demangle(const char *mangled, char *text, size_t *room, int *status); /* the C++ library's */

/* "void fa2_forward<64>(float const*, ...)" is how a template's instance is called; a plain function has no "void". */
void kernel_name(const struct launch *launch, char *text, size_t room) {
    snprintf(text, room, "%s", launch->name);
    if (strchr(launch->name, '<') == NULL) return;
    pthread_mutex_lock(&lock);
    Dwarf_Addr address = (Dwarf_Addr)(uintptr_t)launch->kernel;
    Dwfl_Module *module = program() != NULL ? dwfl_addrmodule(program(), address) : NULL;
    const char *symbol = module != NULL ? dwfl_module_addrname(module, address) : NULL;
    char *name = symbol != NULL ? __cxa_demangle(symbol, NULL, NULL, NULL) : NULL;
    if (name != NULL) {
        name[strcspn(name, "(")] = '\0';
        snprintf(text, room, "%s", strncmp(name, "void ", 5) == 0 ? name + 5 : name);
    }
    free(name);
    pthread_mutex_unlock(&lock);
}
