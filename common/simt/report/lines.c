/* Places of the program in words: the source line of an address of code, the name of a kernel. Read from the program's own
 * debugging information with libdw, in this process. */
#include "report.h"

#include <dwarf.h>
#include <execinfo.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
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

static bool is_runtime_source(const char *path) {
    return strncmp(path, SOURCE_ROOT "/common/simt/", strlen(SOURCE_ROOT "/common/simt/")) == 0 ||
           strstr(path, "/simt/include/") != NULL;
}

/* "steps/01_naive/naive.cu:42", or NULL for a line of the simulator's or the compiler's own headers. */
static char *line_of_kernel(const char *path, int number) {
    static const char *const folders[] = {BINARY_ROOT "/", SOURCE_ROOT "/"};
    if (path == NULL || number <= 0) return NULL;
    if (is_runtime_source(path) || strstr(path, "/include/c++/") != NULL) return NULL;
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

static bool is_header(const char *path) {
    const char *end = path != NULL ? strrchr(path, '.') : NULL;
    return end != NULL && strcmp(end, ".cu") != 0;
}

/* Lines of calls that were inlined around an address, or NULL: the innermost one that stands in another file than `not_in`, and
 * the innermost one that stands in no header. No call of the simulator's own headers, and none in a wrapper of an instruction
 * (rewrite/ptx.c); `in_wrapper`: the address lies in one itself. */
struct calls {
    const char *not_in;
    char *nearest, *of_kernel;
    bool in_wrapper;
};

static void replace(char **kept, const char *line) {
    free(*kept);
    *kept = copy_text(line);
}

static void note_call(struct calls *calls, Dwarf_Die *call, Dwarf_Files *files) {
    const char *path = dwarf_filesrc(files, (size_t)attribute(call, DW_AT_call_file), NULL, NULL);
    char *line = calls->in_wrapper ? NULL : line_of_kernel(path, attribute(call, DW_AT_call_line));
    if (line != NULL && (calls->not_in == NULL || strcmp(path, calls->not_in) != 0)) replace(&calls->nearest, line);
    if (line != NULL && !is_header(path)) replace(&calls->of_kernel, line);
    free(line);
    const char *name = dwarf_diename(call); /* a lambda's is artificial, too */
    calls->in_wrapper = dwarf_hasattr_integrate(call, DW_AT_artificial) && name != NULL && strcmp(name, "operator()") != 0;
}

/* Go down to the innermost call around the address. False: none of the scope's children holds it. */
static bool find_calls(Dwarf_Die *scope, Dwarf_Addr address, Dwarf_Files *files, struct calls *calls) {
    Dwarf_Die child;
    for (int status = dwarf_child(scope, &child); status == 0; status = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        if (tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine) continue;
        bool here = dwarf_haspc(&child, address) == 1;
        if (here && tag == DW_TAG_inlined_subroutine) note_call(calls, &child, files);
        if (find_calls(&child, address, files, calls) || here) return true;
    }
    return false;
}

/* The functions of a unit that have code. Found once: the walk past its types takes far longer than all else of an answer. */
struct functions {
    struct functions *next;
    const void *unit; /* where its debugging information begins */
    size_t count;
    Dwarf_Die *all;
};

/* A lambda's code is a child of the function that it was written in, though it lies elsewhere. */
static void add_functions(struct functions *functions, Dwarf_Die *scope) {
    Dwarf_Die child;
    for (int status = dwarf_child(scope, &child); status == 0; status = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram && (dwarf_hasattr(&child, DW_AT_low_pc) || dwarf_hasattr(&child, DW_AT_ranges))) {
            functions->all = realloc(functions->all, (functions->count + 1) * sizeof *functions->all);
            if (functions->all == NULL) abort();
            functions->all[functions->count++] = child;
        }
        if (tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_subprogram ||
            tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine)
            add_functions(functions, &child);
    }
}

static const struct functions *functions_of(Dwarf_Die *unit) {
    static struct functions *known;
    struct functions *found = known;
    while (found != NULL && found->unit != unit->addr) found = found->next;
    if (found != NULL) return found;
    found = calloc(1, sizeof *found);
    if (found == NULL) abort();
    *found = (struct functions){.next = known, .unit = unit->addr};
    add_functions(found, unit);
    return known = found;
}

/* Of a line of a header: alone; behind it the one that calls it from another file and, where that is a header, too, the
 * kernel's; only the kernel's. Or the path of a file of the simulated device's own; or the function that the address is of. */
enum wanted { ALONE, WITH_CALL, KERNEL_ONLY, RUNTIME, FUNCTION };

/* The innermost source line in the kernel's own source: the line of the address, or of a call that was inlined there. */
static char *find_line(Dwarf_Die *unit, Dwarf_Addr address, enum wanted wanted) {
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    int number = 0;
    if (line == NULL || dwarf_lineno(line, &number) != 0) return NULL;
    const char *path = dwarf_linesrc(line, NULL, NULL);
    if (wanted == RUNTIME) return path != NULL && is_runtime_source(path) ? copy_text(path) : NULL;
    char *own = line_of_kernel(path, number), text[900] = "";
    Dwarf_Files *files;
    if ((own != NULL && !is_header(path)) || dwarf_getsrcfiles(unit, &files, NULL) != 0) return own;
    struct calls calls = {.not_in = own != NULL ? path : NULL};
    const struct functions *functions = functions_of(unit);
    for (size_t i = 0; i < functions->count; i++)
        if (dwarf_haspc(&functions->all[i], address) == 1) find_calls(&functions->all[i], address, files, &calls);
    char *parts[] = {calls.in_wrapper ? NULL : own, calls.nearest, calls.of_kernel};
    if (wanted == KERNEL_ONLY) parts[0] = calls.of_kernel, parts[1] = own;
    const char *last = "";
    size_t length = 0;
    for (int i = 0; i < 3 && (length == 0 || wanted == WITH_CALL) && length < sizeof text; i++) {
        if (parts[i] == NULL || strcmp(parts[i], last) == 0) continue;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? ", called at " : "", parts[i]);
        last = parts[i];
    }
    free(own), free(calls.nearest), free(calls.of_kernel);
    return *text != '\0' ? copy_text(text) : NULL;
}

extern char *__cxa_demangle(const char *mangled, char *text, size_t *room, int *status); /* the C++ library's */

/* The name of the value `value` of the enumeration `type`, somewhere in the scope; or NULL. */
static const char *find_enumerator(Dwarf_Die *scope, const char *type, int value) {
    Dwarf_Die child;
    const char *found = NULL;
    bool is_type = dwarf_tag(scope) == DW_TAG_enumeration_type && dwarf_diename(scope) != NULL;
    if (is_type && strcmp(dwarf_diename(scope), type) != 0) return NULL;
    for (int status = dwarf_child(scope, &child); status == 0 && found == NULL; status = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        if (is_type && attribute(&child, DW_AT_const_value) == value) found = dwarf_diename(&child);
        if (tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_enumeration_type)
            found = find_enumerator(&child, type, value);
    }
    return found;
}

/* k<(mode)1> becomes k<B>. */
static char *name_enumerators(char *name, Dwarf_Die *unit) {
    for (char *open = name; unit != NULL && (open = strchr(open, '(')) != NULL; open++) {
        char *close = strchr(open, ')'), *type = close, *end, *named;
        if (close == NULL) break;
        while (type > open + 1 && type[-1] != ':') type--;
        int value = (int)strtol(close + 1, &end, 10);
        *close = '\0';
        const char *enumerator = end > close + 1 ? find_enumerator(unit, type, value) : NULL;
        *close = ')';
        if (enumerator == NULL) continue;
        if (asprintf(&named, "%.*s%s%s", (int)(open - name), name, enumerator, end) < 0) abort();
        open = named + (open - name);
        free(name);
        name = named;
    }
    return name;
}

/* "void fa2_forward<64>(float const*, ...)" is how a template's instance is called; a plain function has no "void", and that of C
 * is not encoded. */
static char *find_function(Dwarf_Addr address) {
    Dwarf_Addr bias;
    Dwfl_Module *module = dwfl_addrmodule(program(), address);
    const char *symbol = module != NULL ? dwfl_module_addrname(module, address) : NULL;
    char *name = symbol != NULL ? __cxa_demangle(symbol, NULL, NULL, NULL) : NULL;
    if (name == NULL) return symbol != NULL ? copy_text(symbol) : NULL;
    size_t length = 0;
    for (int angles = 0; name[length] != '\0' && (name[length] != '(' || angles > 0); length++)
        angles += (name[length] == '<') - (name[length] == '>');
    name[length] = '\0';
    char *bare = copy_text(strncmp(name, "void ", 5) == 0 ? name + 5 : name);
    free(name);
    return name_enumerators(bare, dwfl_addrdie(program(), address, &bias));
}

struct query {
    const void *pc;
    enum wanted wanted;
    char *text;
};

/* A return address belongs to the call before it. */
static void *answer(void *data) {
    struct query *query = data;
    pthread_mutex_lock(&lock);
    if (query->wanted == FUNCTION && program() != NULL) {
        query->text = find_function((Dwarf_Addr)(uintptr_t)query->pc);
    } else if (query->pc != NULL && program() != NULL) {
        Dwarf_Addr bias, address = (Dwarf_Addr)(uintptr_t)query->pc - 1;
        Dwarf_Die *unit = dwfl_addrdie(program(), address, &bias);
        if (unit != NULL) query->text = find_line(unit, address - bias, query->wanted);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* libdw needs more stack than a fiber or a signal handler has: a thread of its own. */
static char *ask(const void *pc, enum wanted wanted) {
    struct query query = {pc, wanted, NULL};
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, &query) == 0) pthread_join(thread, NULL);
    return query.text;
}

bool is_runtime_code(const void *pc) {
    char *path = ask(pc, RUNTIME);
    free(path);
    return path != NULL;
}

static char *line_of(const void *pc, enum wanted wanted) {
    char *text = ask(pc, wanted);
    return text != NULL ? text : copy_text(unknown);
}

char *source_line(const void *pc) { return line_of(pc, WITH_CALL); }
char *source_line_alone(const void *pc) { return line_of(pc, ALONE); }
char *source_line_of_kernel(const void *pc) { return line_of(pc, KERNEL_ONLY); }

char *line_of_frames(void *const *frames, int count) {
    for (int i = 0; i < count && frames[i] != NULL; i++) {
        char *line = source_line(frames[i]);
        if (source_line_is_known(line)) return line;
        free(line);
    }
    return copy_text(unknown);
}

char *calling_line(void) {
    enum { FRAMES = 64 };
    void *frames[FRAMES];
    return line_of_frames(frames, backtrace(frames, FRAMES));
}

void kernel_name(const struct launch *launch, char *text, size_t room) {
    char *name = strchr(launch->name, '<') != NULL ? ask(launch->kernel, FUNCTION) : NULL;
    snprintf(text, room, "%s", name != NULL ? name : launch->name);
    free(name);
}
