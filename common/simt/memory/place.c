/* What memory an address lies in: the one place that decides it. */
#include "device_memory.h"

#include <link.h>
#include <pthread.h>

/* Variables that rewrite/shared.c has put into a section of the program, by their kind. */
#define SECTION(name) extern char __start_##name[] __attribute__((weak)), __stop_##name[] __attribute__((weak))
SECTION(simt_device);
SECTION(simt_constant);
SECTION(simt_managed);

static struct section {
    enum memory_kind kind;
    uintptr_t start, stop;
} sections[16];
static size_t section_count;

static void add_section(enum memory_kind kind, uintptr_t start, uintptr_t stop) {
    if (start != stop && section_count < sizeof sections / sizeof *sections)
        sections[section_count++] = (struct section){kind, start, stop};
}

/* Tables that the compiler made of constants may be read as well; other variables of the host may not. */
static int add_literals(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    bool is_own = false; /* the program, or the library that holds the kernels; others are not theirs */
    for (int i = 0; i < info->dlpi_phnum; i++)
        is_own |=
            info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)__ehdr_start;
    for (int i = 0; is_own && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if ((segment->p_type == PT_LOAD && (segment->p_flags & PF_W) == 0) || segment->p_type == PT_GNU_RELRO)
            add_section(LITERAL, start, start + segment->p_memsz);
    }
    return is_own;
}

static void find_sections(void) {
    add_section(VARIABLE, (uintptr_t)__start_simt_device, (uintptr_t)__stop_simt_device);
    add_section(CONSTANT, (uintptr_t)__start_simt_constant, (uintptr_t)__stop_simt_constant);
    add_section(MANAGED, (uintptr_t)__start_simt_managed, (uintptr_t)__stop_simt_managed);
    dl_iterate_phdr(add_literals, NULL);
}

struct memory_place memory_place(uintptr_t address, size_t bytes) {
    static pthread_once_t found_sections = PTHREAD_ONCE_INIT;
    size_t offset = simt_worker != NULL ? shared_offset_of(simt_worker, address) : SIZE_MAX;
    if (offset < SHARED_BYTES_MAX) return (struct memory_place){SHARED, NULL, shared_contains(simt_worker, offset, bytes)};
    offset = simt_self != NULL ? address - simt_self->stack : SIZE_MAX;
    if (offset < STACK_BYTES) return (struct memory_place){LOCAL, NULL, bytes <= STACK_BYTES - offset};
    const struct allocation *found = memory_find(address);
    if (found != NULL) return (struct memory_place){found->kind, found, bytes <= found->bytes - (address - found->start)};
    pthread_once(&found_sections, find_sections);
    for (size_t i = 0; i < section_count; i++)
        if (address >= sections[i].start && address < sections[i].stop)
            return (struct memory_place){sections[i].kind, NULL, bytes <= sections[i].stop - address};
    return (struct memory_place){HOST, NULL, true};
}

bool memory_is_private(uintptr_t address) {
    return shared_offset_of(simt_worker, address) < SHARED_BYTES_MAX || address - simt_self->stack < STACK_BYTES;
}
